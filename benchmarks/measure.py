"""Time and memory of a piece of work, each in a process of its own, on one core."""

from __future__ import annotations

import multiprocessing
import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from evolvingdp.publish.rendering import dated

Work = Callable[[], object]
RESULTS = Path(__file__).parent / "results"


def all_cases(module: str, names: list[str], repeats: int = 5) -> dict[str, tuple[float, float]]:
    """Seconds (median of `repeats`) and peak memory in GB of module.CASES[name], each in a fresh process."""
    for library in ("OPENBLAS", "OMP", "MKL"):  # one core: inherited by the processes
        os.environ[f"{library}_NUM_THREADS"] = "1"
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        return {name: pool.apply(_measure, (module, name, repeats)) for name in names}


def _measure(module: str, name: str, repeats: int) -> tuple[float, float]:
    work: Work = __import__(module).CASES[name][1]()
    return float(np.median(seconds(work, repeats))), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def seconds(work: Work, repeats: int) -> list[float]:
    """Processor seconds of each of `repeats` runs, in this process: what else the machine does must not count."""
    result = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        result.append(time.process_time() - started)
    return result


def row(what: str, users: int, seconds: float, memory: float) -> dict[str, str]:
    """A row of a table without a peer."""
    return {
        "what": what,
        "users": short(users),
        "seconds": f"{seconds:.2f}",
        "users a second": short(users / seconds),
        "peak memory (GB)": f"{memory:.2f}",
    }


def write(name: str, table: pd.DataFrame) -> None:
    """The table of the script that runs, printed, and dated in benchmarks/results/, where the performance page reads it."""
    (RESULTS / f"{name}.csv").write_text(table.to_csv(index=False, lineterminator="\n"))
    dated.stamp(name, Path(sys.argv[0]), f"python benchmarks/{Path(sys.argv[0]).name}", RESULTS)
    print(table.to_string(index=False))
    print(f"numpy {np.__version__}, {platform.machine()}, one core")


def short(number: float) -> str:
    """Two digits: 1.2e7."""
    return f"{number:.2g}".replace("e+0", "e").replace("e+", "e")
