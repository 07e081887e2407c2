"""`make faults`: `book`, `run` and `sweep` stopped at random moments: nothing half, nothing left, then the same bytes.

Each trial starts the command on a small checkout of its own; after a random time it meets a fault:

SIGTERM, SIGKILL    the command gets the signal; what it started must end within five seconds
a process killed    a worker, a kernel or the renderer
the disk full       a file system of a random size, which is full sooner or later (where `unshare` may mount one)
read-only           from then on no folder of the checkout can be written

Then no finished point of a sweep may be lost, and the same command must end with the bytes of a run that nobody disturbed.
`book` starts from a finished build of other words, so that a page that is left would show.  Writes
benchmarks/results/faults.csv, which the book shows, and prints what went wrong; with --only COMMAND it writes nothing.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pandas as pd
import psutil
from measure import asked, write

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.append(str(REPOSITORY / "tests"))
import toy  # noqa: E402

COMMANDS = {
    "book": ["--preset", "quick", "--workers", "1"],
    "run": [toy.TOY, "--out", "out"],
    "sweep": [toy.TOY, "--grid", "epsilon=1,2,3", "--repeat", "4", "--workers", "1", "--out", "out"],
}
MADE = {"book": ("_build/html", ".html .csv .svg"), "run": ("out", ".csv .svg .tex"), "sweep": ("out", ".csv .parquet")}
FAULTS = ("SIGTERM", "SIGKILL", "a process killed", "the disk full", "read-only")
# a file system of a size with the checkout in it; what is there at the end is copied out of it
ROOM = 'mount -t tmpfs -o size="$1" tmpfs "$2" && cp -a "$3"/. "$2" && cd "$2" || exit 99; shift 3; "$@"; code=$?; '
FULL = ROOM + 'cp -a . "$KEPT"; exit $code'


def checkout(folder: Path, words: str) -> Path:
    """A checkout of the library and the small book of tests/toy.py, of which a page says `words`."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for part in ("lib", "data"):
        shutil.copytree(REPOSITORY / part, folder / part, ignore=ignored, dirs_exist_ok=True)
    subprocess.run([sys.executable, "-m", "compileall", "-q", folder / "lib"], check=True)  # as set-up leaves it
    for name in ("requirements.lock", "CITATION.cff"):
        shutil.copy(REPOSITORY / name, folder)
    return toy.book(folder, words)


def start(what: str, copy: Path, room: tuple[int, Path] | None = None) -> subprocess.Popen[str]:
    """The command in `copy`; `room`: in a file system with so many kB to spare, which is copied to that path at the end."""
    command = [sys.executable, "-m", "evolvingdp", what, *COMMANDS[what]]
    inside = copy.with_name("room") if room else copy
    environment = os.environ | {"PYTHONPATH": f"{inside}/lib", "EVOLVINGDP_CACHE": f"{inside}/.cache"}
    if room:
        size = sum(4 * (1 + file.stat().st_size // 4096) for file in copy.rglob("*") if file.is_file()) + room[0]
        inside.mkdir(exist_ok=True)
        environment["KEPT"] = str(room[1])
        command = ["unshare", "-rm", "sh", "-c", FULL, "sh", f"{size}k", str(inside), str(copy), *command]
    elif os.geteuid() == 0:  # who may write anywhere meets no folder that is read-only
        command = ["setpriv", "--bounding-set", "-dac_override", "--inh-caps", "-all", *command]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=copy, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def made(what: str, copy: Path) -> dict[str, str]:
    """The results as digests of their files; run times, which the pages tell, count as nothing."""
    root, kinds = copy / MADE[what][0], tuple(MADE[what][1].split())
    files = [path for path in root.rglob("*") if path.suffix in kinds and path.is_file() and "points" not in path.parts]
    files = [path for path in files if path.name != "timing.csv"]  # seconds, too
    timeless = {path: re.sub(rb"in [\d.]+ s\b", b"", path.read_bytes()) for path in files}
    return {path.relative_to(root).as_posix(): hashlib.sha256(content).hexdigest() for path, content in timeless.items()}


def points(copy: Path) -> set[str]:
    return {path.name for path in copy.glob("out/points/[!.]*")}


def writable(copy: Path, may: bool) -> None:
    for folder in [*(path for path in copy.rglob("*") if path.is_dir() and "lib" not in path.parts), copy]:
        with suppress(FileNotFoundError):
            folder.chmod(0o755 if may else 0o555)


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
    with start(what, copy, room) as disturbed:
        if not room:
            time.sleep(chance.uniform(0.0, seconds))
        wrong = [] if room else meet(fault, disturbed, copy, chance)
        try:
            said = disturbed.communicate(timeout=120)[1]
        except subprocess.TimeoutExpired:
            disturbed.kill()
            said, wrong = "", [*wrong, "hangs"]
    writable(copy, True)
    if room:
        shutil.rmtree(copy)
        room[1].rename(copy)
    if "Traceback" in said:
        wrong.append(f"a traceback: {said.strip().splitlines()[-1][:200]}")
    before = points(copy)
    with start(what, copy) as again:
        told = again.communicate(timeout=300)[1]
    if again.returncode:
        wrong.append(f"does not continue: {' '.join(told.split())[-300:]}")
    elif (ours := made(what, copy)) != wanted:
        wrong.append(f"other bytes: {', '.join(sorted(name for name, _ in ours.items() ^ wanted.items())[:6])}")
    if what == "sweep" and f"{len(before)} finished before" not in told and len(before) < len(points(copy)):
        wrong.append(f"a point lost of {len(before)}: {told[:200]}")
    return wrong


def undisturbed(what: str, copy: Path) -> float:
    began = time.perf_counter()
    with start(what, copy) as alone:
        told = alone.communicate()[1]
    if alone.returncode:
        raise SystemExit(told)
    return time.perf_counter() - began


def trials(what: str, faults: list[str], number: int, seed: int) -> list[dict[str, object]]:
    """A row a fault: how many trials, and how many went wrong."""
    counts = {fault: [0, 0] for fault in faults}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        source, copy = checkout(home / "source", "Old words."), home / "copy"
        if what == "book":
            undisturbed(what, source)
        checkout(source, "Words.")
        shutil.copytree(source, home / "whole")  # what an older build leaves beside the pages is there, too
        seconds, wanted = undisturbed(what, home / "whole"), made(what, home / "whole")
        assert wanted
        for place in range(number):
            fault, chance = faults[place % len(faults)], random.Random(f"{seed}/{what}/{place}")
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(source, copy)
            wrong = trial(what, copy, fault, chance, seconds, wanted)
            counts[fault] = [counts[fault][0] + 1, counts[fault][1] + bool(wrong)]
            print(f"{what} {place + 1}/{number}, {fault}: {'; '.join(wrong) or 'as it should'}", flush=True)
    return [{"command": what, "fault": each, "trials": n, "went wrong": wrong} for each, (n, wrong) in counts.items()]


def main() -> None:
    given = asked(__doc__, trials=30, only="", seed=0)
    may_mount = not subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode
    faults = [fault for fault in FAULTS if may_mount or fault != "the disk full"]
    chosen = [given.only] if given.only else [*COMMANDS]
    rows = [row for what in chosen for row in trials(what, faults, given.trials, given.seed)]
    if not given.only:
        write("faults", pd.DataFrame(rows), "make faults")


if __name__ == "__main__":
    main()
