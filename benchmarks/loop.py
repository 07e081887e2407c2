"""What a change waits for: set-up, the book, the tests and the command line, in a clean clone of the last commit.

    python benchmarks/loop.py      (or: make loop)

writes benchmarks/results/loop.csv, which the book's performance page shows.  Half an hour on two free cores; seconds of the
processor are those of all processes that a command has started.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import measure
import pandas as pd

REPOSITORY = Path(__file__).parent.parent
COMMANDS = {
    "set-up: environment, bytecode, lint's and types' first run": "make lint",
    "`make book`, nothing computed yet": "make book",
    "`make book`, nothing changed": "make book",
    "`make check`": "make check",
    "`make test`": "make test",
    "`evolvingdp --help`": ".venv/bin/evolvingdp --help",
    "a refused parameter": ".venv/bin/evolvingdp run evolving/thresh -p epsilon 0",
}
DONE = re.compile(r"^(\w+/\w+): done in ([\d.]+) s", re.MULTILINE)


def timed(command: str, folder: Path) -> tuple[float, float, float, str]:
    """Seconds of the processor, those of browsers that it had started, of the clock, and what `command` printed."""
    started, clock, failed, seconds = time.perf_counter(), 0.0, 0, {False: 0.0, True: 0.0}
    with tempfile.TemporaryFile("w+") as printed:
        number = subprocess.Popen(command.split(), cwd=folder, text=True, stdout=printed, stderr=subprocess.STDOUT).pid
        with contextlib.suppress(ChildProcessError):  # there is none left
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT):
                name = Path(f"/proc/{ended.si_pid}/comm")
                browser = name.exists() and name.read_text().startswith("chrom")
                _, status, used = os.wait4(ended.si_pid, 0)
                seconds[browser] += used.ru_utime + used.ru_stime
                if ended.si_pid == number:
                    clock, failed = time.perf_counter() - started, status
        printed.seek(0)
        said = printed.read()
    if failed and "-p epsilon 0" not in command:
        raise SystemExit(f"{command} failed:\n{said[-5000:]}")
    return seconds[False], seconds[True], clock, said


def adopt() -> None:
    """Let what a command leaves behind become a child of this process: the process that kernels are forked from, which
    waits for them, is waited for by nobody, and its seconds would be counted nowhere (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def main() -> None:
    adopt()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=REPOSITORY, text=True, capture_output=True, check=True
    )
    os.environ.pop("EVOLVINGDP_CACHE", None)
    rows: list[dict[str, str]] = []

    def add(what: str, processor: float | None, clock: float | None) -> None:
        told = "" if processor is None else f"{processor:.2f}" if processor < 10 else f"{processor:.0f}"
        rows.append(
            {
                f"at {commit.stdout.strip()}": what,
                "processor (s)": told,
                "clock (s)": "" if clock is None else f"{clock:.1f}",
            }
        )
        print(rows[-1], flush=True)

    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", REPOSITORY, clone], check=True)
        try:
            for what, command in COMMANDS.items():
                processor, browsers, clock, printed = timed(command, clone)
                add(what, processor, clock)
                if browsers:
                    add(f"browsers within {what}, not counted above", browsers, None)
                for notebook, seconds in DONE.findall(printed):
                    add(f"its notebook `{notebook}`, one of two at a time", None, float(seconds))
        finally:  # what has been measured stays where a later command fails
            measure.write("loop", pd.DataFrame(rows))


if __name__ == "__main__":
    main()
