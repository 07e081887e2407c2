"""Ours against the public packages that do the same job, each in an environment of its own, in one run.

    python benchmarks/compare.py                (or: make peers)
    python benchmarks/compare.py noise median   (these tasks; what was measured of the others stays)

writes benchmarks/results/peers.csv (a row a run), peers_packages.csv and peers-growth.svg, from which the
book's performance page is made.  Pins are in benchmarks/peers/<package>.txt; others.py runs there, ours.py here.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measure
import numpy as np
import others
import ours
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from evolvingdp.book import dated, style
from evolvingdp.book.running import ONE_CORE
from evolvingdp.core.seeds import stream
from evolvingdp.notebooks.heavy_hitters.streams import random_words

HERE = Path(__file__).parent
PEERS = HERE / "peers"
OURS = "ours"
LIMIT = 10.0  # CPU seconds: a method that is expected to need more at the next size is not run there
PATIENCE = 240.0  # wall seconds of a job

Command = tuple[str, ...]  # python of an environment, the script that runs there, its package
Measure = Callable[[Any, Any, Mapping[str, Any]], float]  # data, answer, settings -> error


@dataclass(frozen=True)
class Method:
    """`against`: the method of ours that does the same job; empty for ours."""

    package: str
    name: str
    against: str = ""


@dataclass(frozen=True)
class Task:
    """One job at several sizes: the same data for all methods, one way to measure the error of their answers."""

    name: str
    sizes: tuple[int, ...]
    data: Callable[[int, np.random.Generator], Any]
    error: Measure
    settings: Mapping[str, Any]
    repetitions: int = 3

    @property
    def methods(self) -> tuple[Method, ...]:
        """Ours, then those of other packages."""
        theirs = [Method(package, name, against) for task, package, name, against, _ in others.METHODS if task == self.name]
        return (*(Method(OURS, name) for task, name in ours.METHODS if task == self.name), *theirs)


def zipf_values(domain: int) -> Callable[[int, np.random.Generator], Any]:
    mass = np.arange(1, domain + 1) ** -1.2
    return lambda n, rng: rng.choice(domain, size=n, p=mass / mass.sum())


def zipf_words(n: int, rng: np.random.Generator) -> Any:
    mass = 1 / np.arange(1, 33)
    return rng.choice(random_words(32, stream(0, "peers", "dictionary")), size=n, p=mass / mass.sum())


def bits(n: int, rng: np.random.Generator) -> Any:
    return (rng.random(({1_000: 16, 4_000: 8}.get(n, 4), n)) < 0.3).astype(np.int64)


def array_means(n: int, rng: np.random.Generator) -> Any:
    """200 times the means of n arrays of 2^10 bits."""
    return rng.binomial(1 << 10, 0.3, size=(200, n)) / (1 << 10)


def rms(errors: Any) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


def frequency_error(data: Any, answer: Any, settings: Mapping[str, Any]) -> float:
    """Over the domain, in users."""
    return rms(np.asarray(answer) - np.bincount(data, minlength=settings["domain"]))


def words_error(data: Any, answer: Any, settings: Mapping[str, Any]) -> float:
    """Over the truly most frequent words, a missed one counting as zero."""
    words, counts = np.unique(data, return_counts=True)
    top = np.argsort(-counts, kind="stable")[: settings["top"]]
    found = dict(zip(answer["words"], answer["estimates"], strict=True))
    return rms([found.get(str(words[i]), 0.0) - counts[i] for i in top])


def counts_error(data: Any, answer: Any, settings: Mapping[str, Any]) -> float:
    """Over all steps of all streams."""
    return rms(np.asarray(answer) - np.cumsum(data, axis=1))


def around(truth: float) -> Measure:
    return lambda data, answer, settings: rms(np.asarray(answer) - truth)


def noise_needed(data: Any, answer: Any, settings: Mapping[str, Any]) -> float:
    """The scale of Laplace noise that each of n queries of sensitivity 1 needs."""
    return 1 / float(answer)


def nothing(n: int, rng: np.random.Generator) -> Any:
    return np.zeros(0)


TASKS = (
    Task("frequency", (1_000, 5_000, 25_000), zipf_values(256), frequency_error, {"epsilon": 2.0, "domain": 256}, 5),
    Task("heavy hitters", (3_000, 9_000, 27_000), zipf_words, words_error, {"epsilon": 4.0, "top": 8}),
    Task("counting", (1_000, 4_000, 16_000), bits, counts_error, {"epsilon": 1.0, "delta": 1e-6}),
    Task("noise", (1_000, 10_000, 100_000), nothing, around(0.0), {"epsilon": 0.1}),
    Task("accounting", (10, 100, 1_000), nothing, noise_needed, {"epsilon": 1.0, "delta": 1e-6}),
    Task("median", (100, 1_000, 10_000), array_means, around(0.3), {"epsilon": 1.0}),
)


def ask(command: Command, job: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of a process of its own, on one core, in the package's own environment.

    Raises RuntimeError with the last line of what went wrong, also after PATIENCE seconds.
    """
    given: dict[str, Any] = {"input": json.dumps(job), "env": os.environ | ONE_CORE, "timeout": PATIENCE}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, **given)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"stopped after {PATIENCE:.0f} s") from error
    except subprocess.CalledProcessError as error:
        raise RuntimeError((error.stderr.strip().splitlines() or ["no message"])[-1]) from error
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def packages() -> list[str]:
    """The peers: those with pins."""
    return sorted(path.stem for path in PEERS.glob("*.txt"))


def version(package: str) -> str:
    """Of the pin."""
    found = re.search(rf"^{re.escape(package)}==(\S+)", (PEERS / f"{package}.txt").read_text(), re.MULTILINE)
    assert found is not None, f"{package}.txt does not pin {package}"
    return found[1]


def install(package: str, folder: Path) -> Command:
    """An environment with the pins, made once.  Raises RuntimeError with the installer's message."""
    environment, pins = folder / package, PEERS / f"{package}.txt"
    python, stamp = environment / "bin" / "python", environment / "pins.txt"
    if not stamp.is_file() or stamp.read_text() != pins.read_text():
        uv = str(Path(sys.executable).with_name("uv"))
        for command in (
            [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(environment)],
            [uv, "pip", "sync", "--quiet", "--python", str(python), "--require-hashes", str(pins)],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(" ".join(done.stderr.split())[:200])
        stamp.write_text(pins.read_text())
    return (str(python), str(HERE / "others.py"), package)


def compare(task: Task, methods: Sequence[Method], commands: Mapping[str, Command]) -> Iterator[dict[str, Any]]:
    """A row per run, times per stream; methods take turns, so that whatever else the machine does hits all of them."""
    methods, stopped = [method for method in methods if method.package in commands], dict[Method, str]()
    for n, larger in zip(task.sizes, (*task.sizes[1:], task.sizes[-1]), strict=True):
        seconds: dict[Method, list[float]] = {method: [] for method in methods}
        for repetition in range(task.repetitions):
            data = task.data(n, stream(0, "peers", task.name, n, repetition))
            for method in methods:
                row: dict[str, Any] = {"task": task.name, "n": n, "package": method.package, "method": method.name}
                row |= {"against": method.against, "repetition": repetition, "note": stopped.get(method, "")}
                if method in stopped and repetition:
                    continue  # one row says why
                if method not in stopped:
                    try:
                        row |= _one(task, n, method, commands[method.package], data, repetition)
                        seconds[method].append(row["cpu"] * streams_of(data))
                    except RuntimeError as error:
                        row["note"] = stopped[method] = f"not run from n = {n:,}: {error}"
                yield row
        for method in [method for method in methods if seconds[method] and method not in stopped and larger > n]:
            expected = float(np.median(seconds[method])) * larger / n
            if expected > LIMIT:
                stopped[method] = f"not run beyond n = {n:,}: about {expected:.0f} s expected"


def _one(task: Task, n: int, method: Method, command: Command, data: Any, repetition: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npy"
        np.save(file, data)
        job = {"task": task.name, "method": method.name, "n": n, "seed": repetition + 1, "data": str(file)}
        done = ask(command, job | dict(task.settings))
    error = task.error(data, done["answer"], task.settings)
    return {"cpu": done["cpu"] / streams_of(data), "memory": done["memory"], "numpy": done["numpy"], "error": error}


def streams_of(data: Any) -> int:
    """How many times the job is done at once: rows of two-dimensional data are streams of their own."""
    return len(data) if data.ndim == 2 else 1


@style.house
def draw(table: pd.DataFrame, file: Path) -> None:
    """CPU seconds against n, a panel a task; ours in black."""
    tasks = [task for task in ("frequency", "heavy hitters", "counting", "noise") if task in set(table["task"])]
    figure = Figure(figsize=(6.5, 5.5))
    axes = figure.subplots(2, 2).ravel()
    names = [OURS, *sorted(set(table[table["task"].isin(tasks)]["package"]) - {OURS})]
    looks = {name: {"color": "black" if name == OURS else style.PALETTE[i]} for i, name in enumerate(names)}
    for ax, task in zip(axes, tasks, strict=False):
        part = table[(table["task"] == task) & table["cpu"].notna()]
        for (package, _), line in part.groupby(["package", "method"], sort=False):
            look = looks[package] | {"marker": style.MARKERS[names.index(package)], "markersize": 4}
            ax.plot(line.groupby("n")["cpu"].median(), **look, linewidth=2 if package == OURS else 1)
        ax.set(xscale="log", yscale="log", title=task, xlabel="n", ylabel="CPU seconds")
        for axis in (ax.xaxis, ax.yaxis):  # within a decade the labels of minor ticks overlap
            axis.set_minor_formatter(NullFormatter())
    handles = [axes[0].plot([], [], label=name, marker=style.MARKERS[i], **looks[name])[0] for i, name in enumerate(names)]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    names = [task.name for task in TASKS]
    chosen = measure.asked(__doc__, tasks=[]).tasks or names
    if unknown := [name for name in chosen if name not in names]:
        sys.exit(f"no task {unknown[0]!r}: there are {', '.join(map(repr, names))}")
    commands: dict[str, Command] = {OURS: (sys.executable, str(HERE / "ours.py"))}
    rows, facts = list[dict[str, Any]](), []
    for package in packages():
        problem = ""
        try:
            commands[package] = install(package, HERE.parent / ".cache" / "peers")
        except RuntimeError as error:
            problem = str(error)
        facts.append({"package": package, "version": version(package), "problem": problem})
    for task in [task for task in TASKS if task.name in chosen]:
        for row in compare(task, task.methods, commands):
            print({name: row.get(name) for name in ("task", "n", "package", "method", "cpu", "error", "note")}, flush=True)
            rows.append(row)
        save(pd.DataFrame(rows), pd.DataFrame(facts), measure.RESULTS)  # what has been measured is not lost
        done = list(dict.fromkeys(row["task"] for row in rows))
        command = "make peers" if len(done) == len(TASKS) else f"make peers, and again for {' and '.join(done)}"
        dated.stamp("peers", HERE / "ours.py", command, measure.RESULTS)


def described(task: Task) -> str:
    """The settings that all methods of a task share."""
    return ", ".join(f"{name} = {value:g}" for name, value in task.settings.items()) + "."


def save(table: pd.DataFrame, facts: pd.DataFrame, folder: Path) -> None:
    """With what is known of other tasks; a package's numpy is that of its environment."""
    numpy = table.dropna(subset="numpy").groupby("package")["numpy"].first()
    if (folder / "peers.csv").is_file():
        earlier = pd.read_csv(folder / "peers.csv")
        table = pd.concat([table, earlier[~earlier["task"].isin(table["task"])]])
        table = table.sort_values("task", key=lambda names: names.map([task.name for task in TASKS].index), kind="stable")
        numpy = numpy.combine_first(pd.read_csv(folder / "peers_packages.csv").set_index("package")["numpy"])
    facts = facts.assign(numpy=facts["package"].map(numpy), python=platform.python_version(), machine=platform.machine())
    tasks = pd.DataFrame([{"task": task.name, "settings": described(task)} for task in TASKS])
    for name, rows in {"peers": table.drop(columns="numpy"), "peers_packages": facts, "peers_tasks": tasks}.items():
        rows.to_csv(folder / f"{name}.csv", index=False, float_format="%.4g", lineterminator="\n")
    draw(table, folder / "peers-growth.svg")


if __name__ == "__main__":
    main()
