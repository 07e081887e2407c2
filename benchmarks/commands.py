"""What commands cost: those of the artifact appendix, what a change waits for, and a sweep beside its points.

    python benchmarks/commands.py artifact [COMMAND...]   (or: make artifact)   each command of book/artifact.md, alone
    python benchmarks/commands.py loop                    (or: make loop)       in a clean clone of the last commit
    python benchmarks/commands.py sweep [POINTS...]       (with: make benchmarks)

Writes benchmarks/results/{artifact,loop,sweep}.csv, which the book shows. Processor seconds are those of all processes that
a command has started.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from measure import RESULTS, asked, write

from evolvingdp.book import checkout
from evolvingdp.book.checkout import params_of, run_of

ROOT = Path(__file__).resolve().parents[1]
MAIN = [sys.executable, "-m", "evolvingdp"]
ARTIFACT = re.compile(r"^\|[^|]*\| `([^`]*)` \|", re.MULTILINE)  # the second column of the page's table
LOOP = {
    "set-up: environment, bytecode, lint's and types' first run": "make lint",
    "`make book`, nothing computed yet": "make book",
    "`make book`, nothing changed": "make book",
    "`make check`": "make check",
    "`make test`": "make test",
    "`evolvingdp --help`": ".venv/bin/evolvingdp --help",
    "a refused parameter": ".venv/bin/evolvingdp run evolving/thresh -p epsilon 0",
}
SWEPT = "continual_mean/binary_tree"
TINY = {"repetitions": 2, "branching_sweep": (2, 3), "horizon": 64}  # the smallest runs there are


@dataclass(frozen=True)
class Cost:
    """Seconds of the processor, those of browsers apart, of the clock; the largest process in MB; whether it failed."""

    processor: float
    browsers: float
    clock: float
    memory: float
    failed: bool


def cost(command: list[str], folder: Path, **variables: str) -> Cost:
    """Of all processes: what a command leaves behind becomes a child of this process, and is waited for (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    started, clock, status, memory, seconds = time.perf_counter(), 0.0, 0, 0.0, {False: 0.0, True: 0.0}
    number = subprocess.Popen(command, cwd=folder, env=os.environ | variables, stdout=subprocess.DEVNULL).pid
    with contextlib.suppress(ChildProcessError):  # there is none left
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT):
            name = Path(f"/proc/{ended.si_pid}/comm")
            browser = name.exists() and name.read_text().startswith("chrom")
            _, code, used = os.wait4(ended.si_pid, 0)
            seconds[browser] += used.ru_utime + used.ru_stime
            memory = max(memory, used.ru_maxrss * 1024 / 1e6)
            if ended.si_pid == number:
                clock, status = time.perf_counter() - started, code
    return Cost(seconds[False], seconds[True], clock, memory, status != 0)


def must(spent: Cost, command: str) -> Cost:
    return spent if not spent.failed else sys.exit(f"{command} failed")


def artifact(chosen: list[str]) -> None:
    """Each run starts with an empty cache."""
    path, stamp = RESULTS / "artifact.csv", RESULTS / "artifact.json"
    for command in chosen or dict.fromkeys(ARTIFACT.findall((ROOT / "book" / "artifact.md").read_text())):
        with tempfile.TemporaryDirectory() as folder:
            program, *words = (word.replace("my-run", f"{folder}/my-run") for word in shlex.split(command))
            start = MAIN if program == "evolvingdp" else [sys.executable]
            spent = must(cost([*start, *words], ROOT, EVOLVINGDP_CACHE=f"{folder}/cache"), command)
            written = sum(file.stat().st_size for file in Path(folder, "my-run").rglob("*") if file.is_file())
        row = {"command": command, "CPU minutes": f"{spent.processor / 60:.1f}"}
        row |= {"memory (MB)": str(round(spent.memory)), "disk (MB)": f"{written / 1e6:.1f}"}
        table = pd.read_csv(path, dtype=str) if path.is_file() else pd.DataFrame(columns=list(row))
        table = pd.concat([table[table.command != command], pd.DataFrame([row])])
        known = json.loads(stamp.read_text())["notebooks"] if stamp.is_file() else {}
        ran = [word for word in command.split() if "/" in word and command.startswith("evolvingdp")]
        codes = {notebook: checkout.made_of(notebook)["library"] for notebook in ran}
        write("artifact", table, "make artifact", known | codes)


def loop(_: list[str]) -> None:
    git = ["git", "rev-parse", "--short", "HEAD"]
    at = "at " + subprocess.run(git, cwd=ROOT, text=True, capture_output=True, check=True).stdout.strip()
    os.environ.pop("EVOLVINGDP_CACHE", None)
    rows: list[dict[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        for what, command in LOOP.items():
            spent = cost(command.split(), clone)
            if spent.failed and what != "a refused parameter":
                sys.exit(f"{command} failed")
            told = f"{spent.processor:.2f}" if spent.processor < 10 else f"{spent.processor:.0f}"
            rows.append({at: what, "processor (s)": told, "clock (s)": f"{spent.clock:.1f}"})
            if spent.browsers:
                apart = f"browsers within {what}, not counted above"
                rows.append({at: apart, "processor (s)": f"{spent.browsers:.0f}", "clock (s)": ""})
            write("loop", pd.DataFrame(rows), "make loop")  # what has been measured stays where a later command fails


def sweep(points: list[str]) -> None:
    """Processor time a point and memory, for up to ten thousand points, beside what a point costs outside of any sweep."""
    work, params = run_of(SWEPT), params_of(SWEPT).make(overrides=TINY)
    work(params, 0)
    started = time.process_time()
    for seed in range(200):
        work(params, seed)
    own, rows = (time.process_time() - started) / 200, []
    given = [word for name, value in TINY.items() for word in ("-p", name, str(value).strip("()").replace(" ", ""))]
    for number in map(int, points or ("100", "1000", "10000")):
        with tempfile.TemporaryDirectory() as folder:
            what = ["sweep", SWEPT, "--grid", "epsilon=1,2", "--repeat", str(number // 2), *given, "--workers", "1"]
            spent = must(cost([*MAIN, *what, "--out", f"{folder}/out"], ROOT), "sweep")
        row: dict[str, object] = {"points": f"{number:,}", "CPU seconds": round(spent.processor)}
        row |= {"CPU ms a point": round(1000 * spent.processor / number, 1)}
        row |= {"of which the point itself (ms)": round(1000 * own, 1), "largest process (MB)": round(spent.memory)}
        rows.append(row)
    write("sweep", pd.DataFrame(rows), "make benchmarks")


if __name__ == "__main__":
    what, *given = asked(__doc__, words=[]).words
    {"artifact": artifact, "loop": loop, "sweep": sweep}[what](given)
