"""Time and memory of ThresholdMonitor: simulation of Example 1.4, online queries, calibration.

    python benchmarks/sparse_vector.py      (or: make benchmarks)

writes benchmarks/results/sparse_vector.csv, which the book's performance page shows. A scalar query is one function of a
user's data, asked of all users: `step` reads a value a user, so its cost grows with them; `step_users` reads those who meet
the query only; `step_elements` answers all queries of a step in which a user meets one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import measure
import numpy as np
import pandas as pd

from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector.baselines import simulate_threshold
from evolvingdp.sparse_vector.calibration import calibrate
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.methods import (
    REPEATED,
    calibrated,
    example_plan,
    example_stream,
    monitor,
    repeated,
    stable,
)
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.target import Target
from evolvingdp.sparse_vector.integer_noise import IntegerNoise
from evolvingdp.sparse_vector.privacy import delta_of_epsilon
from evolvingdp.sparse_vector.shifting import plan
from evolvingdp.sparse_vector.shifting_simulation import simulate
from evolvingdp.sparse_vector.streams.example import ShiftingStream
from evolvingdp.sparse_vector.streams.general import random_stream
from evolvingdp.sparse_vector.streams.general import simulate as simulate_general
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


def simulated_stable(n_users: int) -> measure.Work:
    data = example(n_users)
    chosen = stable(TARGET, n_users, 3).monitor
    simulate(chosen, data, stream(0, "benchmark", "first"))
    return lambda: simulate(chosen, data, stream(0, "benchmark", "simulation"))


def general_stream() -> measure.Work:
    """10^9 users of 10^5 types, up to two elements each in 20 steps."""
    data = random_stream(10**9, 10**5, 20, 2**32, stream(0, "benchmark", "general stream"))
    chosen = plan(calibrate(1.0, 1e-6, 40), 20, 2**32, 10**4).monitor
    return lambda: simulate_general(chosen, data, stream(0, "benchmark", "general simulation"))


def repeated_threshold(n_users: int) -> measure.Work:
    data = example(n_users)
    method = repeated(TARGET, data, REPEATED)
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


def online_integers() -> measure.Work:
    """The same queries with exact integer noise, a tenth as many."""
    chosen = ThresholdMonitorEvolving(IntegerNoise.calibrated(1.0, 1e-6, 3), 800.0, 3)
    users = [(query % 1000, (query + 1) % 1000) for query in range(ONE_BY_ONE // 10)]

    def work() -> None:
        state, rng = chosen.start(1000), stream(0, "benchmark", "online integers")
        for pair in users:
            state, _ = chosen.step_users(state, pair, rng)

    return work


def general(n_users: int, queries: str) -> measure.Work:
    """`step` with a predicate of the users' data, or with a value in [0, 1] for each, one query after the other."""
    chosen = ThresholdMonitorEvolving.calibrated(calibrate(1.0, 1e-6, 3, queries=queries), 800.0 + n_users)
    draw = np.random.default_rng(0)
    data = draw.integers(0, 4, size=n_users) if queries == "binary" else draw.random((50, n_users))
    predicates = [partial(np.equal, element) for element in range(4)]

    def work() -> None:
        state, rng = chosen.start(n_users), stream(0, "benchmark", "general")
        for number in range(ONE_BY_ONE):
            if queries == "binary":
                state, _ = chosen.step(state, data, predicates[number % 4], rng)
            else:
                state, _ = chosen.step(state, data[number % 50], np.asarray, rng)

    return work


def planned() -> object:
    calibrated.cache_clear()
    return example_plan(TARGET, 10**6)


def table(n_users: int, queries: str, threshold: float) -> measure.Work:
    """`run` of queries with a value a user and query, of which some are answered yes."""
    chosen = ThresholdMonitorEvolving.calibrated(calibrate(1.0, 1e-6, 3, queries=queries), threshold)
    draw = np.random.default_rng(0).random((10**6, n_users))
    values, state = draw < 0.5 if queries == "binary" else draw, chosen.start(n_users)
    return lambda: chosen.run(state, values, stream(0, "benchmark", "table"))


def batch() -> measure.Work:
    """A step of 10^6 users: the queries of all of 10^7 elements."""
    chosen = ThresholdMonitorEvolving.calibrated(calibrate(1.0, 1e-6, 3), 800.0)
    held = np.random.default_rng(0).integers(0, BATCH, size=10**6)
    state = chosen.start(10**6)
    return lambda: chosen.step_elements(state, held, BATCH, stream(0, "benchmark", "batch"))


CASES: dict[str, tuple[int, Callable[[], measure.Work]]] = {
    "Example 1.4, n = m = 10^6, simulated": (1, lambda: simulated(10**6)),
    "the same, n = m = 10^9": (1, lambda: simulated(10**9)),
    "the same, StableMonitor, n = m = 10^9": (1, lambda: simulated_stable(10**9)),
    "the same, n = m = 10^6, k = 1 (all counters)": (1, lambda: simulated(10**6, 1)),
    "the same, AboveThreshold repeated, n = m = 10^6": (1, lambda: repeated_threshold(10**6)),
    "the stream of n = m = 10^9": (1, lambda: lambda: example(10**9)),
    "a general stream, n = 10^9 of 10^5 types, 4 x 10^6 entries": (1, general_stream),
    "online, one by one (step), {0, 1}, 10 users": (ONE_BY_ONE, lambda: general(10, "binary")),
    "the same, 1000 users": (ONE_BY_ONE, lambda: general(1000, "binary")),
    "online, one by one (step), [0, 1], 10 users": (ONE_BY_ONE, lambda: general(10, "interval")),
    "online, one by one, by the users who meet it (step_users)": (ONE_BY_ONE, online),
    "the same, integer noise": (ONE_BY_ONE // 10, lambda: online_integers()),
    "online, a batch of queries (run), {0, 1}, 10 users": (10**6, lambda: table(10, "binary", 200.0)),
    "the same, every second answer a yes": (10**6, lambda: table(10, "binary", 0.0)),
    "online, a batch of queries (run), [0, 1], 10 users": (10**6, lambda: table(10, "interval", 200.0)),
    "online, all 10^7 queries of a step of 10^6 users (step_elements)": (BATCH, batch),
    "plan of Example 1.4 with its calibration": (1, lambda: planned),
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
