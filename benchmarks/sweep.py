"""What a sweep costs beside its points: processor time a point and memory, for up to ten thousand points."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
from measure import write

from evolvingdp.publish.sweeping import run

TINY = ["-p", "repetitions", "2", "-p", "branching_sweep", "2,3", "-p", "horizon", "64"]
MAIN = "import sys; from evolvingdp.publish.cli import main; main(sys.argv[1:])"


def cost(points: int, folder: Path) -> dict[str, object]:
    """A sweep of the smallest runs there are, from its command to its summary."""
    what = ["sweep", "continual_mean/binary_tree", "--grid", "epsilon=1,2", "--repeat", str(points // 2), *TINY]
    command = [sys.executable, "-c", MAIN, *what, "--workers", "1", "--out", str(folder / str(points))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as sweep:
        _, code, used = os.wait4(sweep.pid, 0)  # of the command, and of its worker
        sweep.returncode = os.waitstatus_to_exitcode(code)
    if sweep.returncode:
        sys.exit(f"exit code {sweep.returncode}")
    own = pd.read_csv(folder / str(points) / "timing.csv").seconds.sum()
    spent = used.ru_utime + used.ru_stime
    return {
        "points": f"{points:,}",
        "CPU seconds": round(spent),
        "CPU ms a point": round(1000 * spent / points, 1),
        "of which in the point (ms)": round(1000 * own / points, 1),
        "largest process (MB)": round(used.ru_maxrss * 1024 / 1e6),
    }


def main() -> None:
    assert callable(run.run)
    with tempfile.TemporaryDirectory() as folder:
        rows = [cost(points, Path(folder)) for points in map(int, sys.argv[1:] or (100, 1_000, 10_000))]
    table = pd.DataFrame(rows)
    print(table)
    write("sweep", table)


if __name__ == "__main__":
    main()
