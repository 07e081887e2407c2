"""Time and memory of what the performance page names, each in a process of its own, on one core.

    python benchmarks/speed.py                       (or: make benchmarks)
    python benchmarks/speed.py --only thresh --dry   (each once, and nothing is written)

writes benchmarks/results/speed.csv, a row a case with median, least and most of its runs.
Processor seconds: what else the machine does must not count.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from typing import Any

import job
import measure
import numpy as np
import pandas as pd

from evolvingdp.book.running import ONE_CORE
from evolvingdp.continual_mean import algorithms, choosing
from evolvingdp.continual_mean import streams as mean_streams
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.prefix_sums import Buffered
from evolvingdp.core import brown
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import heavy_simulation, protocol, thresh_simulation
from evolvingdp.evolving import streams as bit_streams
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals import once
from evolvingdp.evolving.streams import BitStream, WordStream
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.heavy_hitters.bitstogram import Bitstogram
from evolvingdp.heavy_hitters.count_sketch import FreqOracle
from evolvingdp.heavy_hitters.planning import planned
from evolvingdp.heavy_hitters.tree_hist import TreeHist
from evolvingdp.notebooks.heavy_hitters.streams import brown_counts, brown_keys
from evolvingdp.notebooks.sparse_vector import methods
from evolvingdp.sparse_vector.calibration import calibrate
from evolvingdp.sparse_vector.shifting_simulation import simulate
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

Work = Callable[[], object]


def seeded(*name: str | int) -> np.random.Generator:
    return stream(0, "benchmark", *name)


# ---- heavy hitters: Brown's words, epsilon = 2 ----


def held(n_users: int) -> np.ndarray:
    """How many of the users hold each word."""
    return np.asarray(brown_counts(n_users, seeded("data", n_users)))


def one_each(keys: np.ndarray, n_users: int) -> np.ndarray:
    """One key a user, in random order."""
    users = np.repeat(keys, held(n_users), axis=0)
    seeded("order").shuffle(users)
    return users


def oracle(n_users: int, per_user: bool) -> Work:
    asked, keys = FreqOracle(MultiplyShift.draw(256, 2048, seeded("hashes")), 2.0), brown_keys()
    if not per_user:
        counts = held(n_users)
        return lambda: asked.simulate(keys, counts, seeded("simulation"))
    users = one_each(keys, n_users)
    return lambda: asked.collect(users, seeded("slots"), seeded("noise"))


def searched(method: TreeHist, n_users: int) -> Work:
    """For words that 15 sqrt(n) users hold: reports of all users and the search."""
    users = one_each(method.tree.encode(brown.words()["word"]), n_users)

    def work() -> object:
        drawn = method.draw_hashes(seeded("hashes"))
        return drawn.search(drawn.collect(users, seeded("slots"), seeded("noise")), n_users)

    return work


def bitstogram(n_users: int) -> Work:
    drawn = Bitstogram(2.0, 15_000.0).draw_hashes(seeded("hashes"))
    messages = drawn.settings.encode(brown.words()["word"].to_numpy(dtype=str))
    counts = held(n_users)
    return lambda: drawn.search(drawn.simulate(messages, counts, seeded("noise")), n_users)


# ---- evolving data: epsilon = 1, three changes ----


def changing(n_users: int, horizon: int, epoch_length: int) -> BitStream:
    """Three changes at a fifth, a half and four fifths of the horizon."""
    changes = {max(2, round(share * horizon)): mean for share, mean in ((0.2, 0.5), (0.5, 0.25), (0.8, 0.65))}
    return BitStream.make([n_users], bit_streams.steps(horizon, 0.3, changes), epoch_length)


def thresh_of(n_users: int, horizon: int, epoch_length: int = 10**6, per_user: bool = False) -> Work:
    data = changing(n_users, horizon, epoch_length)
    method = Thresh.tuned(n_users, horizon, epoch_length, 1.0, changes=3)
    if per_user:
        return lambda: protocol.run(method, data, **{name: seeded(name) for name in ("words", "public", "private")})
    return lambda: thresh_simulation.simulate(method, data, seeded("simulation"))


def heavy_thresh(n_users: int, n_words: int, horizon: int, epsilon: float, epoch_length: int = 10**6) -> Work:
    """.6 of the mass on five words, which are drawn anew at a third and at two thirds of the horizon."""
    laws, rng = np.full((3, n_words), 0.4 / (n_words - 5)), seeded("dictionary")
    for law in laws:
        law[rng.choice(n_words, size=5, replace=False)] = (0.2, 0.15, 0.1, 0.1, 0.05)
    which = np.minimum(3 * np.arange(horizon) // horizon, 2)[None, :]
    method = HeavyThresh.tuned(n_users, horizon, epoch_length, epsilon, n_words, changes=2)
    data = WordStream.make([n_users], laws / laws.sum(axis=1, keepdims=True), which, epoch_length)
    return lambda: heavy_simulation.simulate(method, data, seeded("simulation"))


def each_once(n_users: int, horizon: int) -> Work:
    settings, data = once.Once(n_users, horizon, 1.0), changing(n_users, horizon, 1)
    return lambda: once.simulate(settings, data, seeded("noise"))


# ---- continual means: bits; at user level 100,000 users of at most 1,024 samples, epsilon = 2 ----

USERS, CAP = 100_000, 1024


def recommended(n_steps: int) -> Any:
    return choosing.recommended(USERS, CAP, 2.0, horizon=n_steps)


def coins(n_steps: int) -> np.ndarray:
    return mean_streams.bits(0.3, n_steps, seeded("bits"))


def running_sums(n_steps: int, sums: Callable[[int], Any] | None = None) -> Work:
    elements, delta = coins(n_steps), 1e-6 if sums else 0.0
    return lambda: BinaryMechanism(n_steps, 1.0, delta=delta, sums=sums and sums(n_steps)).release(elements, seeded("noise"))


def mean(settings: Any, n_steps: int, one_by_one: bool = False) -> Work:
    samples = coins(n_steps)
    users = mean_streams.arrivals("random", USERS, CAP, n_steps, seeded("users"))
    if not one_by_one:
        return lambda: settings.release(users, samples, seeded("noise"))
    arriving = list(zip(users.tolist(), samples.tolist(), strict=True))

    def work() -> object:
        state = settings.start(seeded("noise"))
        for user, sample in arriving:
            state, _ = settings.step(state, user, sample)
        return state

    return work


# ---- sparse vector: epsilon = 1, delta = 10^-6, 2^32 elements ----


def example(n_users: int, stable: bool) -> Work:
    """Example 1.4, whose smallest groups are the error of ThresholdMonitor's plan."""
    target = methods.Target(1.0, 1e-6, 0.05, 2**32)
    data = methods.example_stream(target, n_users, seeded("stream", n_users))
    monitor = methods.stable(target, n_users, 3) if stable else methods.monitor(target, data, 3).monitor
    simulate(monitor, data, seeded("first"))
    return lambda: simulate(monitor, data, seeded("simulation"))


def elements(n_users: int, n_elements: int) -> Work:
    """A step of all users: the queries of all elements."""
    chosen = ThresholdMonitorEvolving.calibrated(calibrate(1.0, 1e-6, 3), 800.0)
    holding, state = np.random.default_rng(0).integers(0, n_elements, size=n_users), chosen.start(n_users)
    return lambda: chosen.step_elements(state, holding, n_elements, seeded("batch"))


THRESHOLD = 15.0 * 3162  # of the searches of 10^7 users
Case = tuple[str, str, float, Callable[[], Work]]  # table, what, size, how to make the work
CASES: list[Case] = [
    ("frequency oracle", "per user: client and server", 1e7, lambda: oracle(10**7, True)),
    ("frequency oracle", "simulation, one bit a user, n = 10^9", 1e9, lambda: oracle(10**9, False)),
    ("heavy hitters", "per user, clients, server, search: projective reports", 1e7,
     lambda: searched(planned(2.0, 10**7, THRESHOLD), 10**7)),
    ("heavy hitters", "Bitstogram, simulation and search", 1e9, lambda: bitstogram(10**9)),
    ("thresh", "simulation, three changes, T = 1024, ell = 10^6", 1e6, lambda: thresh_of(10**6, 1024)),
    ("thresh", "the same, n = 10^9", 1e9, lambda: thresh_of(10**9, 1024)),
    ("thresh", "HEAVYTHRESH, two changes, d = 10^5, T = 64, ell = 10^6", 1e6, lambda: heavy_thresh(10**6, 10**5, 64, 2.0)),
    ("thresh", "user by user, T = 64, ell = 10^6", 1e6, lambda: thresh_of(10**6, 64, per_user=True)),
    ("rivals", "each user once", 1e7, lambda: each_once(10**7, 1024)),
    ("continual means", "binary mechanism", 1e7, lambda: running_sums(10**7)),
    ("continual means", "eight buffers, Gaussian", 1e7, lambda: running_sums(10**7, Buffered)),
    ("continual means", "Algorithm 6", 1e7, lambda: mean(algorithms.full(USERS, CAP, 2.0), 10**7)),
    ("continual means", "recommended, pure", 1e7, lambda: mean(recommended(10**7), 10**7)),
    ("continual means", "recommended, pure, one by one", 2e5, lambda: mean(recommended(200_000), 200_000, True)),
    ("sparse vector", "Example 1.4, n = m = 10^9, simulated", 1e9, lambda: example(10**9, False)),
    ("sparse vector", "the same, StableMonitor, n = m = 10^9", 1e9, lambda: example(10**9, True)),
    ("sparse vector", "online, all 10^7 queries of a step of 10^6 users (step_elements)", 1e7,
     lambda: elements(10**6, 10**7)),
]  # fmt: skip


def measured(place: int, repeats: int) -> tuple[list[float], float]:
    """Processor seconds of each run, and the peak memory of this process in GB."""
    work, seconds = CASES[place][3](), []
    for _ in range(repeats):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return seconds, job.peak() / 1e3


def row(case: Case, seconds: list[float], memory: float) -> dict[str, str]:
    def short(number: float) -> str:
        return f"{number:.2g}".replace("e+0", "e").replace("e+", "e")

    (table, what, size, _), middle = case, float(np.median(seconds))
    return {
        "table": table, "what": what, "size": short(size), "seconds": f"{middle:.2g}", "least": f"{min(seconds):.2g}",
        "most": f"{max(seconds):.2g}", "a second": short(size / middle) if size > 1 else "",
        "peak memory (GB)": f"{memory:.2f}",
    }  # fmt: skip


def main() -> None:
    asked = measure.asked(__doc__, only="", dry=False)
    os.environ |= ONE_CORE  # inherited by the processes
    rows = []
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for place, case in enumerate(CASES):
            if asked.only in ("", case[0]):
                rows.append(row(case, *pool.apply(measured, (place, 1 if asked.dry else 5))))
                print(rows[-1], flush=True)
    table, file = pd.DataFrame(rows), measure.RESULTS / "speed.csv"
    if asked.only and file.is_file():
        known = pd.read_csv(file, dtype=str, keep_default_na=False)
        table = pd.concat([known[known.table != asked.only], table])
    if not asked.dry:
        measure.write("speed", table, "make benchmarks")


if __name__ == "__main__":
    main()
