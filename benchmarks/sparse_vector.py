"""Time and memory of ThresholdMonitor: simulation of Example 1.4, online queries, calibration.

    python benchmarks/sparse_vector.py      (or: make benchmarks)

writes benchmarks/results/sparse_vector.csv, which the book's performance page shows.
"""

from __future__ import annotations

from collections.abc import Callable

import measure
import numpy as np
import pandas as pd

from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector.baselines import simulate_threshold
from evolvingdp.sparse_vector.calibration import calibrate
from evolvingdp.sparse_vector.methods import TEXTBOOK, Target, example_plan, example_stream, monitor, repeated
from evolvingdp.sparse_vector.privacy import delta_of_epsilon
from evolvingdp.sparse_vector.shifting_simulation import simulate
from evolvingdp.sparse_vector.streams import ShiftingStream
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

TARGET = Target(1.0, 1e-6, 0.05, 2**32)
ONE_BY_ONE, BATCH = 10**5, 10**7


def example(n_users: int) -> ShiftingStream:
    return example_stream(TARGET, n_users, stream(0, "benchmark", "stream", n_users))


def simulated(n_users: int, reports: int = 3) -> measure.Work:
    data = example(n_users)
    chosen = monitor(TARGET, data, reports).monitor
    simulate(chosen, data, stream(0, "benchmark", "first"))
    return lambda: simulate(chosen, data, stream(0, "benchmark", "simulation"))


def repeated_threshold(n_users: int) -> measure.Work:
    data = example(n_users)
    method = repeated(TARGET, data, TEXTBOOK, data.horizon * data.n_elements)
    return lambda: simulate_threshold(method, data, stream(0, "benchmark", "svt"))


def online() -> measure.Work:
    """Queries in {0, 1} met by two users each, one after the other."""
    chosen = ThresholdMonitorEvolving.calibrated(calibrate(1.0, 1e-6, 3), 800.0)
    users = [(query % 1000, (query + 1) % 1000) for query in range(ONE_BY_ONE)]

    def work() -> None:
        state, rng = chosen.start(1000), stream(0, "benchmark", "online")
        for pair in users:
            state, _ = chosen.step_users(state, pair, rng)

    return work


def batch() -> measure.Work:
    """A step of 10^6 users: the queries of all of 10^7 elements."""
    chosen = ThresholdMonitorEvolving.calibrated(calibrate(1.0, 1e-6, 3), 800.0)
    held = np.random.default_rng(0).integers(0, BATCH, size=10**6)
    state = chosen.start(10**6)
    return lambda: chosen.step_elements(state, held, BATCH, stream(0, "benchmark", "batch"))


CASES: dict[str, tuple[int, Callable[[], measure.Work]]] = {
    "Example 1.4, n = m = 10^6, simulated": (1, lambda: simulated(10**6)),
    "the same, n = m = 10^9": (1, lambda: simulated(10**9)),
    "the same, n = m = 10^6, k = 1 (all counters)": (1, lambda: simulated(10**6, 1)),
    "the same, AboveThreshold repeated, n = m = 10^6": (1, lambda: repeated_threshold(10**6)),
    "the stream of n = m = 10^9": (1, lambda: lambda: example(10**9)),
    "online, query by query, 10^5": (ONE_BY_ONE, online),
    "online, one step of 10^6 users, 10^7 queries": (BATCH, batch),
    "plan of Example 1.4 with its calibration": (1, lambda: lambda: example_plan(TARGET, 10**6)),
    "delta of epsilon, k = 1000": (1, lambda: lambda: delta_of_epsilon(1.0, 267.8, 1000)),
}


def main() -> None:
    measured = measure.all_cases("sparse_vector", list(CASES), repeats=5)
    rows = []
    for name, (queries, _) in CASES.items():
        seconds, memory = measured[name]
        rate = f"{queries / seconds:.2g}".replace("e+0", "e") if queries > 1 else ""
        rows.append(
            {"what": name, "seconds": f"{seconds:.2g}", "queries a second": rate, "peak memory (GB)": f"{memory:.2f}"}
        )
    measure.write("sparse_vector", pd.DataFrame(rows))


if __name__ == "__main__":
    main()
