"""Time and memory of what the performance page names, each in a process of its own, on one core.

    python benchmarks/speed.py                       (or: make benchmarks)
    python benchmarks/speed.py --only thresh --dry   (each once, and nothing is written)

writes benchmarks/results/speed.csv, a row a case with median, least and most of its runs.
Processor seconds: what else the machine does must not count.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.book import dated
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
from evolvingdp.heavy_hitters.word_tree import WordTree
from evolvingdp.notebooks.heavy_hitters.streams import brown_counts, brown_keys
from evolvingdp.sparse_vector import shifting, shifting_simulation
from evolvingdp.sparse_vector.calibration import calibrate
from evolvingdp.sparse_vector.stable import stable_monitor
from evolvingdp.sparse_vector.streams.example import ShiftingStream, example_sizes
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

Work = Callable[[], object]
RESULTS = Path(__file__).parent / "results"


def seeded(*name: str | int) -> np.random.Generator:
    return stream(0, "benchmark", *name)


# ---- heavy hitters: Brown's words, epsilon = 2 ----


def held(n_users: int) -> np.ndarray:
    """How many of the users hold each word."""
    return np.asarray(brown_counts(n_users, seeded("data", n_users)))


def one_each(keys: np.ndarray, n_users: int) -> np.ndarray:
    """One key a user, in random order."""
    users = np.repeat(keys, held(n_users))
    seeded("order").shuffle(users)
    return users


def oracle() -> FreqOracle:
    return FreqOracle(MultiplyShift.draw(256, 2048, seeded("hashes")), 2.0)


def oracle_per_user(n_users: int) -> Work:
    asked, keys = oracle(), one_each(brown_keys(), n_users)
    return lambda: asked.collect(keys, seeded("slots"), seeded("noise"))


def oracle_simulated(n_users: int) -> Work:
    asked, counts, keys = oracle(), held(n_users), brown_keys()
    return lambda: asked.simulate(keys, counts, seeded("simulation"))


def search(kind: str, n_users: int) -> TreeHist:
    """For words that 15 sqrt(n) users hold."""
    letters, threshold = WordTree((2, 2, 2)), 15.0 * math.isqrt(n_users)
    if kind == "projective":
        return planned(2.0, n_users, threshold)
    return TreeHist(letters, 2.0, threshold)


def searched(kind: str, n_users: int, part: str) -> Work:
    """`part`: "both" reports of all users and the search, or "simulate" both from the counts."""
    method, words, counts = search(kind, n_users), brown.words()["word"], held(n_users)
    leaves = method.tree.encode(words)
    users = one_each(leaves, n_users) if part != "simulate" else leaves

    def work() -> object:
        drawn = method.draw_hashes(seeded("hashes"))
        if part == "simulate":
            return drawn.simulate_search(leaves, counts, seeded("simulation"))
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


def thresh_of(n_users: int, horizon: int, epoch_length: int, per_user: bool = False) -> Work:
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
MEANS: dict[str, Callable[[int], Any]] = {
    "Algorithm 6": lambda n: algorithms.full(USERS, CAP, 2.0),
    "recommended, pure": lambda n: choosing.recommended(USERS, CAP, 2.0, horizon=n),
}


def coins(n_steps: int) -> np.ndarray:
    return mean_streams.bits(0.3, n_steps, seeded("bits"))


def running_sums(n_steps: int, sums: Callable[[int], Any] | None = None) -> Work:
    elements, delta = coins(n_steps), 1e-6 if sums else 0.0
    return lambda: BinaryMechanism(n_steps, 1.0, delta=delta, sums=sums and sums(n_steps)).release(elements, seeded("noise"))


def mean(name: str, n_steps: int, one_by_one: bool = False) -> Work:
    settings, samples = MEANS[name](n_steps), coins(n_steps)
    users = mean_streams.arrivals("random", USERS, CAP, n_steps, seeded("users"))
    if not one_by_one:
        return lambda: settings.release(users, samples, seeded("noise"))
    arriving = list(zip(users.tolist(), samples.tolist(), strict=True))

    def work() -> object:
        state = settings.start(seeded("noise"))
        for user, sample in arriving:
            settings.step(state, user, sample)
        return state

    return work


# ---- sparse vector: epsilon = 1, delta = 10^-6, 2^32 elements ----


def example(n_users: int) -> tuple[Any, ShiftingStream]:
    """The plan for Example 1.4, and its stream, whose smallest groups are the plan's error."""
    events, calibration = 1000, calibrate(1.0, 1e-6, 3)
    for _ in range(20):
        found = shifting.planned_monitor(calibration, n_users, 2**32, events, 0.05)
        sizes = example_sizes(n_users, found.error)
        before, events = events, max(1, sum(n_users // size for size in sizes.values()))
        if events == before:
            break
    data = ShiftingStream.make(n_users, sizes, seeded("stream", n_users), n_elements=2**32)
    return shifting.planned_monitor(calibration, data.horizon, 2**32, data.n_events, 0.05), data


def example_simulated(n_users: int) -> Work:
    plan, data = example(n_users)
    shifting_simulation.simulate(plan.monitor, data, seeded("first"))
    return lambda: shifting_simulation.simulate(plan.monitor, data, seeded("simulation"))


def stable_simulated(n_users: int) -> Work:
    chosen, (_, data) = stable_monitor(1.0, 1e-6, 3, n_users), example(n_users)
    shifting_simulation.simulate(chosen, data, seeded("first"))
    return lambda: shifting_simulation.simulate(chosen, data, seeded("simulation"))


def elements(n_users: int, n_elements: int) -> Work:
    """A step of all users: the queries of all elements."""
    chosen = ThresholdMonitorEvolving.calibrated(calibrate(1.0, 1e-6, 3), 800.0)
    holding, state = np.random.default_rng(0).integers(0, n_elements, size=n_users), chosen.start(n_users)
    return lambda: chosen.step_elements(state, holding, n_elements, seeded("batch"))


Case = tuple[str, str, float, Callable[..., Work], tuple[Any, ...]]  # table, what, size, how to make the work, of what
CASES: list[Case] = [
    ("frequency oracle", "per user: client and server", 1e7, oracle_per_user, (10**7,)),
    ("frequency oracle", "simulation, one bit a user, n = 10^9", 1e9, oracle_simulated, (10**9,)),
    ("heavy hitters", "per user, clients, server, search: projective reports", 1e7, searched, ("projective", 10**7, "both")),
    ("heavy hitters", "simulation and search: one bit, users split, joint fit", 1e7, searched, ("split", 10**7, "simulate")),
    ("heavy hitters", "Bitstogram, simulation and search", 1e9, bitstogram, (10**9,)),
    ("thresh", "simulation, three changes, T = 1024, ell = 10^6", 1e6, thresh_of, (10**6, 1024, 10**6)),
    ("thresh", "the same, n = 10^9", 1e9, thresh_of, (10**9, 1024, 10**6)),
    ("thresh", "HEAVYTHRESH, two changes, d = 10^5, T = 64, ell = 10^6", 1e6, heavy_thresh, (10**6, 10**5, 64, 2.0)),
    ("thresh", "user by user, T = 64, ell = 10^6", 1e6, thresh_of, (10**6, 64, 10**6, True)),
    ("rivals", "each user once", 1e7, each_once, (10**7, 1024)),
    ("continual means", "binary mechanism", 1e7, running_sums, (10**7,)),
    ("continual means", "eight buffers, Gaussian", 1e7, running_sums, (10**7, Buffered)),
    *(("continual means", name, 1e7, mean, (name, 10**7)) for name in MEANS),
    ("continual means", "recommended, pure, one by one", 2e5, mean, ("recommended, pure", 200_000, True)),
    ("sparse vector", "Example 1.4, n = m = 10^9, simulated", 1, example_simulated, (10**9,)),
    ("sparse vector", "the same, StableMonitor, n = m = 10^9", 1, stable_simulated, (10**9,)),
    ("sparse vector", "online, all 10^7 queries of a step of 10^6 users (step_elements)", 1e7, elements, (10**6, 10**7)),
]  # fmt: skip


def measured(place: int, repeats: int) -> tuple[list[float], float]:
    """Processor seconds of each run, and the peak memory of this process in GB."""
    *_, make, of = CASES[place]
    work, seconds = make(*of), []
    for _ in range(repeats):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def short(number: float) -> str:
    """Two digits: 1.2e7."""
    return f"{number:.2g}".replace("e+0", "e").replace("e+", "e")


def row(case: Case, seconds: list[float], memory: float) -> dict[str, str]:
    table, what, size, *_ = case
    middle = float(np.median(seconds))
    return {
        "table": table, "what": what, "size": short(size), "seconds": f"{middle:.2g}", "least": f"{min(seconds):.2g}",
        "most": f"{max(seconds):.2g}", "a second": short(size / middle) if size > 1 else "",
        "peak memory (GB)": f"{memory:.2f}",
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="a table")
    parser.add_argument("--dry", action="store_true", help="each once, and nothing is written")
    asked = parser.parse_args()
    for library in ("OPENBLAS", "OMP", "MKL"):  # one core: inherited by the processes
        os.environ[f"{library}_NUM_THREADS"] = "1"
    rows = []
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for place, case in enumerate(CASES):
            if asked.only in (None, case[0]):
                rows.append(row(case, *pool.apply(measured, (place, 1 if asked.dry else 5))))
                print(rows[-1], flush=True)
    if asked.dry:
        return
    table, file = pd.DataFrame(rows), RESULTS / "speed.csv"
    if asked.only and file.is_file():
        known = pd.read_csv(file, dtype=str, keep_default_na=False)
        table = pd.concat([known[known.table != asked.only], table])
    table.to_csv(file, index=False, lineterminator="\n")
    dated.stamp("speed", Path(__file__), "make benchmarks", RESULTS)


if __name__ == "__main__":
    main()
