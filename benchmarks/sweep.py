"""What a sweep costs beside its points: processor time a point and memory, for up to ten thousand points."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
from measure import write

from evolvingdp.book import sweeping
from evolvingdp.book.checkout import params_of, run_of

NOTEBOOK = "continual_mean/binary_tree"
TINY = {"repetitions": 2, "branching_sweep": (2, 3), "horizon": 64}
MAIN = "import sys; from evolvingdp.book.cli import main; main(sys.argv[1:])"


def alone(points: int = 200) -> float:
    """Processor seconds of one of these points outside of any sweep."""
    work, params = run_of(NOTEBOOK), params_of(NOTEBOOK).make(overrides=TINY)
    work(params, 0)
    started = time.process_time()
    for seed in range(points):
        work(params, seed)
    return (time.process_time() - started) / points


def cost(points: int, folder: Path, own: float) -> dict[str, object]:
    """A sweep of the smallest runs there are, from its command to its summary."""
    what = ["sweep", NOTEBOOK, "--grid", "epsilon=1,2", "--repeat", str(points // 2)]
    for name, value in TINY.items():
        what += ["-p", name, ",".join(map(str, value)) if isinstance(value, tuple) else str(value)]
    command = [sys.executable, "-c", MAIN, *what, "--workers", "1", "--out", str(folder / str(points))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as sweep:
        _, code, used = os.wait4(sweep.pid, 0)  # of the command, and of its worker
        sweep.returncode = os.waitstatus_to_exitcode(code)
    if sweep.returncode:
        sys.exit(f"exit code {sweep.returncode}")
    spent = used.ru_utime + used.ru_stime
    return {
        "points": f"{points:,}",
        "CPU seconds": round(spent),
        "CPU ms a point": round(1000 * spent / points, 1),
        "of which the point itself (ms)": round(1000 * own, 1),
        "largest process (MB)": round(used.ru_maxrss * 1024 / 1e6),
    }


def main() -> None:
    assert callable(sweeping.run)
    with tempfile.TemporaryDirectory() as folder:
        own = alone()
        rows = [cost(points, Path(folder), own) for points in map(int, sys.argv[1:] or (100, 1_000, 10_000))]
    table = pd.DataFrame(rows)
    print(table)
    write("sweep", table)


if __name__ == "__main__":
    main()
