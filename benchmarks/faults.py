"""`make faults`: `book`, `run` and `sweep` stopped at random moments: nothing half, nothing left, then the same bytes.

Each trial starts the command on a small checkout of its own; after a random time it meets a fault:

SIGTERM, SIGKILL    the command gets the signal; what it started must end within five seconds
a process killed    a worker, a kernel or the renderer
the disk full       a file system of a random size, which is full sooner or later (where `unshare` may mount one)
read-only           from then on no folder of the checkout can be written
scheduler killed    that of the cluster which a sweep was told to use, with its workers

Then no file of a finished result may be half, and the same command must end with the bytes of a run that nobody disturbed.
`book` starts from a finished build of other sources, so that a page that is left would show.  Each trial is kept in
benchmarks/results/faults_trials.csv; the same command goes on where it was stopped, with the trials of today's code.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import psutil

from evolvingdp.publish.rendering import book
from evolvingdp.publish.rendering.dated import FOLDER, library, stamp
from evolvingdp.publish.running import execute
from evolvingdp.publish.running.job import MANIFEST, read_manifest, touched
from evolvingdp.publish.sources.digest import REPOSITORY
from evolvingdp.publish.sweeping import run as sweep

STOPPED = {"book": book.build, "run": execute.run, "sweep": sweep.run}
RESULTS = REPOSITORY / FOLDER
NOTEBOOK = "continual_mean/binary_tree"
SMALL = ["-p", "repetitions", "2", "-p", "branching_sweep", "2,3", "-p", "horizon", "64"]
COMMANDS = {
    "book": ["--preset", "quick", "--workers", "1"],
    "run": [NOTEBOOK, *SMALL, "--out", "out"],
    "sweep": [NOTEBOOK, "--grid", "epsilon=1,2,3", "--repeat", "4", *SMALL, "--out", "out"],
}
FAULTS = ("SIGTERM", "SIGKILL", "a process killed", "the disk full", "read-only")
SCHEDULER = "scheduler killed"
MADE = {
    "book": ("_build/html", (".html", ".csv", ".svg")),
    "run": ("out", (".csv", ".svg", ".zip", ".tex")),
    "sweep": ("out", ("sweep.parquet", "values.parquet", "claims.parquet", "index.html", "metadata.json")),
}
CODE = f"""import pandas as pd
from evolvingdp.continual_mean.experiments.binary_tree.params import Params
from evolvingdp.experiment import Figure, Result, at_most
from evolvingdp.experiment.style import canvas
from evolvingdp.publish.showing import Page
params = Params.from_namespace(globals())
data = pd.DataFrame({{"step": [1, 2], "mean": [epsilon, 2 * epsilon]}})
result = Result("{NOTEBOOK}", params, seed, data, [at_most("Epsilon is small", epsilon, 9)], {{"loss": epsilon}})
figure, axes = canvas(4, 3)
axes.plot(data["step"], data["mean"])
page = Page(result)
page.figure(Figure("cm-line", figure, data, "A line.", "A line that rises."))
page.close()"""
ROOM = 'mount -t tmpfs -o size="$1" tmpfs "$2" && cp -a "$3"/. "$2" && cd "$2" || exit 99; shift 3; "$@"; code=$?; '
# a file system of its own with the checkout in it; what is there at the end is copied out of it
FULL = ROOM + 'cp -a . "$KEPT"; exit $code'


def checkout(folder: Path, words: str, code: str) -> Path:
    """A checkout in `folder` whose one notebook runs `code`, with a book of three pages, one of which says `words`."""
    for part in ("lib", "data", "book/_static", "book/_extra"):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(REPOSITORY / part, folder / part, ignore=ignored, dirs_exist_ok=True)
    for name in ("requirements.lock", "CITATION.cff", "_config.yml"):
        shutil.copy(REPOSITORY / name, folder)
    notebook = nbformat.read(REPOSITORY / "notebooks" / f"{NOTEBOOK}.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    notebook.cells = [nbformat.v4.new_markdown_cell("# A line", id="title"), *cells]
    notebook.cells.append(nbformat.v4.new_code_cell(code, id="code"))
    path = folder / "notebooks" / f"{NOTEBOOK}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    (folder / "book" / "references.bib").write_text("")
    (folder / "book" / "index.md").write_text(f"# A small book\n\n{words}\n")
    (folder / "book" / "chapter.md").write_text(f"# A chapter\n\nThe loss is {{value}}`{NOTEBOOK} loss .2f`.\n")
    sections = f"      - file: book/chapter\n        sections: [{{file: book/results/{NOTEBOOK}}}]\n"
    (folder / "_toc.yml").write_text(f"format: jb-book\nroot: book/index\nparts:\n  - chapters:\n{sections}")
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(folder / "lib")], check=True)
    return folder


def start(what: str, copy: Path, *more: str, room: tuple[int, Path] | None = None) -> subprocess.Popen[str]:
    """The command in `copy`; `room`: in a file system with so many kB to spare, which is copied to that path at the end."""
    command = [sys.executable, "-c", "from evolvingdp.publish.cli import main; main()", what, *COMMANDS[what], *more]
    environment = os.environ | {"PYTHONPATH": str(copy / "lib"), "EVOLVINGDP_CACHE": str(copy / ".cache")}
    if os.geteuid() == 0 and not room:  # who may write anywhere meets no folder that is read-only
        command = ["setpriv", "--bounding-set", "-dac_override", "--inh-caps", "-all", *command]
    if room:
        size = sum(4 * (1 + file.stat().st_size // 4096) for file in copy.rglob("*") if file.is_file()) + room[0]
        inside = copy.with_name("room")
        inside.mkdir(exist_ok=True)
        environment |= {"PYTHONPATH": f"{inside}/lib", "EVOLVINGDP_CACHE": f"{inside}/.cache", "KEPT": str(room[1])}
        command = ["unshare", "-rm", "sh", "-c", FULL, "sh", f"{size}k", str(inside), str(copy), *command]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=copy, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def made(what: str, copy: Path) -> dict[str, str]:
    """The results as digests of their files; run times, which the pages tell, count as nothing."""
    root, kinds = copy / MADE[what][0], MADE[what][1]
    files = [path for path in root.rglob("*") if path.name.endswith(kinds) and path.is_file()]
    timeless = {path: re.sub(rb"in [\d.]+ s\b", b"", path.read_bytes()) for path in files}
    return {path.relative_to(root).as_posix(): hashlib.sha256(content).hexdigest() for path, content in timeless.items()}


def halves(copy: Path) -> list[str]:
    """Files among the finished results that are not what their manifests say, or cannot be read."""
    found = []
    for path in [*copy.glob(f"out/*/{MANIFEST}"), *copy.glob(f".cache/runs/[!r]*/{MANIFEST}")]:
        home, manifest = path.parent if ".cache" in path.parts else path.parent.parent, read_manifest(path)
        if not manifest:
            found.append(str(path))
            continue
        changed = touched(home, manifest)
        if ".cache" in path.parts:
            found += changed
        else:  # the page itself comes last
            found += [name for name in changed if (home / name).exists() or not name.endswith(".ipynb")]
    for path in copy.glob("out/points/[!.]*"):
        try:
            pd.read_parquet(path)
        except (OSError, ValueError):
            found.append(path.name)
    for path in copy.glob("out/sweep.json"):
        try:
            json.loads(path.read_text())
        except ValueError:
            found.append(path.name)
    return found


def points(copy: Path) -> set[str]:
    return {path.name for path in copy.glob("out/points/[!.]*")}


def writable(copy: Path, may: bool) -> None:
    for folder in [*(path for path in copy.rglob("*") if path.is_dir() and "lib" not in path.parts), copy]:
        with suppress(FileNotFoundError):
            folder.chmod(0o755 if may else 0o555)


def cluster(copy: Path) -> list[subprocess.Popen[bytes]]:
    """A scheduler and a worker, in a session of their own; `copy`/cluster.json has the address."""
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    work = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-dashboard", "--no-nanny"]
    environment = os.environ | {"PYTHONPATH": str(copy / "lib"), "OPENBLAS_NUM_THREADS": "1"}
    none = subprocess.DEVNULL
    return [
        subprocess.Popen([*each, "--scheduler-file", "cluster.json"], cwd=copy, env=environment, stdout=none, stderr=none)
        for each in (dask, work)
    ]


def meet(fault: str, disturbed: subprocess.Popen[str], copy: Path, chance: random.Random) -> list[str]:
    """The fault happens now; what went wrong, in words."""
    family = psutil.Process(disturbed.pid).children(recursive=True) if disturbed.poll() is None else []
    if fault.startswith("SIG"):
        disturbed.send_signal(getattr(signal, fault))
        alive = psutil.wait_procs(family, timeout=5)[1]
        return [f"{process.name()} lives on" for process in alive if process.is_running()]
    if fault == "read-only":
        writable(copy, False)
    else:  # but for Python's own helper, which computes nothing and tells that it was killed
        with suppress(psutil.NoSuchProcess, IndexError):
            chance.choice([each for each in family if "resource_tracker" not in " ".join(each.cmdline())]).kill()
    return []


def trial(what: str, copy: Path, fault: str, chance: random.Random, seconds: float, wanted: dict[str, str]) -> list[str]:
    """What went wrong, in words."""
    room = (chance.choice([0, 60, 250, 1000]), copy.with_name("kept")) if fault == "the disk full" else None
    others = cluster(copy) if fault == SCHEDULER else []
    more = ["--scheduler", "cluster.json"] if others else ["--workers", "1"] if what == "sweep" else []
    with start(what, copy, *more, room=room) as disturbed:
        wrong = []
        if not room:
            time.sleep(chance.uniform(0.0, seconds))
        if others:
            others[0].kill()
        elif not room:
            wrong = meet(fault, disturbed, copy, chance)
        try:
            said = disturbed.communicate(timeout=120)[1]
        except subprocess.TimeoutExpired:
            disturbed.kill()
            said, wrong = "", [*wrong, "hangs"]
    for each in others:
        each.kill()
        each.wait()
    writable(copy, True)
    if room:
        shutil.rmtree(copy)
        room[1].rename(copy)
    if "Traceback" in said:
        wrong.append(f"a traceback: {said.strip().splitlines()[-1][:200]}".replace(str(copy.parent), "..."))
    before = points(copy)
    wrong += [f"half: {name}" for name in halves(copy)]
    with start(what, copy, *(["--workers", "1"] if what == "sweep" else [])) as again:
        told = again.communicate(timeout=300)[1]
    if again.returncode:
        wrong.append(f"does not continue: {' '.join(told.split())[-300:]}")
    elif made(what, copy) != wanted:
        wrong.append("other bytes")
    if what == "sweep" and f"{len(before)} finished before" not in told and len(before) < len(points(copy)):
        wrong.append(f"a point lost of {len(before)}: {told[:200]}")
    return wrong


def undisturbed(what: str, copy: Path) -> float:
    began = time.perf_counter()
    with start(what, copy, *(["--workers", "1"] if what == "sweep" else [])) as alone:
        told = alone.communicate()[1]
    if alone.returncode:
        raise SystemExit(told)
    return time.perf_counter() - began


def trials(what: str, numbers: list[int], seed: int) -> Iterator[dict[str, Any]]:
    """A row for each of these trials."""
    faults = [*FAULTS, SCHEDULER] if what == "sweep" else [*FAULTS]
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        faults.remove("the disk full")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        source, copy = checkout(home / "source", "Old words.", CODE.replace("A line", "An old line")), home / "copy"
        if what == "book":
            undisturbed(what, source)
        checkout(source, "Words.", CODE)
        shutil.copytree(source, home / "whole", ignore=shutil.ignore_patterns("_build", ".cache", "results"))
        seconds, wanted = undisturbed(what, home / "whole"), made(what, home / "whole")
        assert wanted
        for number in numbers:
            fault, chance = faults[number % len(faults)], random.Random(f"{seed}/{what}/{number}")
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(source, copy)
            wrong = trial(what, copy, fault, chance, seconds, wanted)
            yield {"command": what, "number": number, "fault": fault, "wrong": "; ".join(wrong)}


def stored() -> pd.DataFrame:
    columns = ["command", "number", "fault", "wrong", "library", "date"]
    path = RESULTS / "faults_trials.csv"
    return pd.read_csv(path, keep_default_na=False) if path.is_file() else pd.DataFrame(columns=columns)


def keep(row: dict[str, Any]) -> None:
    """Add a trial, and count those of its code for the book."""
    kept = pd.concat([stored(), pd.DataFrame([row])], ignore_index=True)
    kept.to_csv(RESULTS / "faults_trials.csv", index=False, lineterminator="\n")
    same = kept[kept.library == row["library"]].assign(wrong=lambda table: table.wrong != "")
    counts = same.groupby(["command", "fault"], sort=False).wrong.agg(["size", "sum"]).reset_index()
    counts.columns = ["command", "fault", "trials", "went wrong"]
    counts.to_csv(RESULTS / "faults.csv", index=False, lineterminator="\n")
    stamp("faults", Path(__file__), "make faults", RESULTS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=30, help="of each command  [default: 30]")
    parser.add_argument("--only", choices=tuple(STOPPED), action="append")
    parser.add_argument("--seed", type=int, default=0)
    asked, wrong, now = parser.parse_args(), 0, library(Path(__file__))
    for what in asked.only or STOPPED:
        before = stored()
        there = set(before[(before.command == what) & (before.library == now)].number)
        left = [number for number in range(asked.trials) if number not in there]
        for row in trials(what, left, asked.seed) if left else ():
            keep(row | {"library": now, "date": time.strftime("%Y-%m-%d")})
            wrong += bool(row["wrong"])
            print(f"{what} {row['number'] + 1}/{asked.trials}, {row['fault']}: {row['wrong'] or 'as it should'}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main()))
