"""Time and memory of what the performance page names, each in a process of its own, on one core; and how they grow.

    python benchmarks/speed.py                       (or: make benchmarks)
    python benchmarks/speed.py --only thresh --dry   (each once, and nothing is written)

writes benchmarks/results/speed.csv, a row a case with median, least and most of its runs, and two figures of growth.
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
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.book import dated
from evolvingdp.book.style import MARKERS, PALETTE, THEORY, canvas, house
from evolvingdp.continual_mean import algorithms, choosing
from evolvingdp.continual_mean import streams as mean_streams
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.prefix_sums import Buffered, Filter, height
from evolvingdp.core import brown
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.noise import Gaussian, Tape
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import heavy_simulation, thresh_protocol, thresh_simulation
from evolvingdp.evolving import streams as bit_streams
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals import crews, once, reserve
from evolvingdp.evolving.streams import BitStream, WordStream
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.heavy_hitters.bitstogram import Bitstogram
from evolvingdp.heavy_hitters.count_sketch import FreqOracle
from evolvingdp.heavy_hitters.pem import PEM
from evolvingdp.heavy_hitters.planning import planned
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.rappor_decoding import decode
from evolvingdp.heavy_hitters.streams import brown_counts, brown_keys
from evolvingdp.heavy_hitters.tree_hist import Algorithm3, TreeHist
from evolvingdp.heavy_hitters.word_tree import WordTree
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
    return brown_counts(n_users, seeded("data", n_users))


def one_each(keys: np.ndarray, n_users: int) -> np.ndarray:
    """One key a user, in random order."""
    users = np.repeat(keys, held(n_users))
    seeded("order").shuffle(users)
    return users


def bare_numpy(n_users: int, rows: int = 256, width: int = 2048) -> Work:
    """The steps of `FreqOracle.collect`, nothing else, at the size of a chunk where they run fastest."""
    keys, chunk, cells = one_each(brown_keys(), n_users), 1 << 18, rows * width
    shift, keep = np.uint64(65 - width.bit_length()), np.exp(2.0) / (np.exp(2.0) + 1)

    def work() -> object:
        rng = np.random.default_rng(0)
        a, b, c, d = rng.integers(0, 2**64, size=(4, rows), dtype=np.uint64)
        sums = np.zeros(cells)
        for first in range(0, len(keys), chunk):
            part = keys[first : first + chunk]
            slots = rng.integers(0, cells, size=len(part))
            row = slots >> (width.bit_length() - 1)
            cell = (a[row] * part + b[row]) >> shift
            sign = (c[row] * part + d[row]) >> np.uint64(63)
            bits = (np.bitwise_count((slots & (width - 1)) & cell.view(np.int64)) ^ sign.astype(np.uint8)) & np.uint8(1)
            bits ^= rng.random(len(part)) > keep
            sums += np.bincount(slots, weights=1 - 2 * bits.astype(np.int8), minlength=cells)
        return sums

    return work


def oracle(compression: str = "hadamard") -> FreqOracle:
    return FreqOracle(MultiplyShift.draw(256, 2048, seeded("hashes")), 2.0, compression)


def oracle_per_user(n_users: int) -> Work:
    asked, keys = oracle(), one_each(brown_keys(), n_users)
    return lambda: asked.collect(keys, seeded("slots"), seeded("noise"))


def oracle_simulated(n_users: int, compression: str = "hadamard") -> Work:
    asked, counts, keys = oracle(compression), held(n_users), brown_keys()
    return lambda: asked.simulate(keys, counts, seeded("simulation"))


def search(kind: str, n_users: int) -> TreeHist | Algorithm3 | PEM:
    """For words that 15 sqrt(n) users hold."""
    letters, threshold = WordTree((2, 2, 2)), 15.0 * math.isqrt(n_users)
    if kind == "PEM":
        return PEM(letters, 2.0, threshold)
    if kind == "projective":
        return planned(2.0, n_users, threshold)
    if kind == "split":
        return TreeHist(letters, 2.0, threshold)
    return Algorithm3.draw(letters, 2.0, threshold, 285, 4096, seeded("hashes"))


def searched(kind: str, n_users: int, part: str) -> Work:
    """`part`: "collect" reports of all users, "both" with the search after them, or "simulate" both from the counts."""
    method, words, counts = search(kind, n_users), brown.words()["word"], held(n_users)
    leaves = method.tree.encode(words)
    users = one_each(leaves, n_users) if part != "simulate" else leaves

    def work() -> object:
        if isinstance(method, PEM):
            return method.simulate(leaves, counts, seeded("simulation"))
        drawn = method if isinstance(method, Algorithm3) else method.draw_hashes(seeded("hashes"))
        if part == "simulate":
            return drawn.simulate_search(leaves, counts, seeded("simulation"))
        reports = drawn.collect(users, seeded("slots"), seeded("noise"))
        return drawn.search(reports, n_users) if part == "both" else reports

    return work


def asked_of_every_report(n_users: int, n_candidates: int) -> Work:
    """What PEM's search costs: the support of each candidate asks every report of a level."""
    method = search("PEM", n_users)
    assert isinstance(method, PEM)
    leaves = method.tree.encode(brown.words()["word"])
    reports = method.oracle.report(np.resize(leaves, n_users), seeded("slots"), seeded("noise"))
    return lambda: method.oracle.support(reports, leaves[:n_candidates])


def bitstogram(n_users: int, per_user: bool = False) -> Work:
    drawn = Bitstogram(2.0, 15_000.0).draw_hashes(seeded("hashes"))
    messages = drawn.settings.encode(brown.words()["word"].to_numpy(dtype=str))
    users, counts = one_each(messages, n_users if per_user else 1), held(n_users)

    def work() -> object:
        noise = seeded("noise")
        reports = drawn.collect(users, noise, noise) if per_user else drawn.simulate(messages, counts, noise)
        return drawn.search(reports, n_users)

    return work


def rappor(n_users: int, per_user: bool = False) -> Work:
    drawn = Rappor.one_shot(2.0, n_bits=64, n_cohorts=128).draw_hashes(seeded("hashes"))
    keys, counts = brown_keys(), held(n_users)
    users = one_each(keys, n_users if per_user else 1)
    cohorts = drawn.assign(len(users), seeded("cohorts"))

    def work() -> object:
        noise = seeded("noise")
        reports = drawn.collect(users[:, None], cohorts, noise) if per_user else drawn.simulate(keys, counts, noise)
        return decode(drawn, reports, keys)

    return work


# ---- evolving data: epsilon = 1, three changes ----


def changing(n_users: int, horizon: int, epoch_length: int) -> BitStream:
    """Three changes at a fifth, a half and four fifths of the horizon."""
    changes = {max(2, round(share * horizon)): mean for share, mean in ((0.2, 0.5), (0.5, 0.25), (0.8, 0.65))}
    return BitStream.make([n_users], bit_streams.steps(horizon, 0.3, changes), epoch_length)


def drifting(n_users: int, horizon: int, epoch_length: int) -> BitStream:
    return BitStream.make([n_users], bit_streams.drift(horizon, 0.3, 0.7), epoch_length)


def thresh(data: BitStream, per_user: bool = False) -> Work:
    method = Thresh.tuned(data.n_users, data.horizon, data.epoch_length, 1.0, changes=3)
    if per_user:
        return lambda: thresh_protocol.run(method, data, bits=np.random.default_rng(0), private=seeded("noise"))
    return lambda: thresh_simulation.simulate(method, data, seeded("simulation"))


def thresh_of(n_users: int, horizon: int, epoch_length: int, per_user: bool = False) -> Work:
    return thresh(changing(n_users, horizon, epoch_length), per_user)


def heavy_thresh(n_users: int, n_words: int, horizon: int, epsilon: float, epoch_length: int = 10**6) -> Work:
    """.6 of the mass on five words, which are drawn anew at a third and at two thirds of the horizon."""
    laws, rng = np.full((3, n_words), 0.4 / (n_words - 5)), seeded("dictionary")
    for law in laws:
        law[rng.choice(n_words, size=5, replace=False)] = (0.2, 0.15, 0.1, 0.1, 0.05)
    which = np.minimum(3 * np.arange(horizon) // horizon, 2)[None, :]
    method = HeavyThresh.tuned(n_users, horizon, epoch_length, epsilon, n_words, changes=2)
    data = WordStream.make([n_users], laws / laws.sum(axis=1, keepdims=True), which, epoch_length)
    return lambda: heavy_simulation.simulate(method, data, seeded("simulation"))


def words(n_users: int, horizon: int, n_words: int, epoch_length: int) -> WordStream:
    """Three changes between two laws."""
    laws = np.ones((2, n_words)) + n_words * np.eye(2, n_words)
    which = (4 * np.arange(horizon) // horizon % 2)[None, :]
    return WordStream.make([n_users], laws / laws.sum(axis=1, keepdims=True), which, epoch_length)


def rival(name: str, n_users: int, horizon: int, n_words: int = 0) -> tuple[Any, Any, Any]:
    """Module, settings and data."""
    if name == "once":
        return once, once.Once(n_users, horizon, 1.0), changing(n_users, horizon, 1)
    if name == "reserve":
        return reserve, reserve.Reserve(n_users, horizon, 1.0, 3), changing(n_users, horizon, 1)
    if name == "crew":
        return crews, crews.Crews.plan(n_users, horizon, 10**6, 1.0, changes=3), changing(n_users, horizon, 10**6)
    if name == "word":
        return once, once.Once(n_users, horizon, 4.0, n_words), words(n_users, horizon, n_words, 1)
    return crews, crews.Crews.plan(n_users, horizon, 10**6, 4.0, n_words, changes=3), words(n_users, horizon, n_words, 10**6)


def rival_simulated(*which: Any) -> Work:
    module, settings, data = rival(*which)
    return lambda: module.simulate(settings, data, seeded("noise"))


def rival_per_user(*which: Any) -> Work:
    module, settings, data = rival(*which)
    names = ("words", "public", "private")
    return lambda: module.run(settings, data, **{name: seeded(name) for name in names})


def detection(n_users: int, horizon: int) -> Work:
    _, settings, data = rival("once", n_users, horizon)
    tally = once.simulate(settings, data, seeded("noise"))
    return lambda: settings.detect(tally, online=True)


# ---- continual means: bits; at user level 100,000 users of at most 1,024 samples, epsilon = 2 ----

USERS, CAP = 100_000, 1024
MEANS: dict[str, Callable[[int], Any]] = {
    "Algorithm 2": lambda n: algorithms.naive(USERS, CAP, 2.0, horizon=n),
    "Algorithm 6": lambda n: algorithms.full(USERS, CAP, 2.0),
    "recommended, pure": lambda n: choosing.recommended(USERS, CAP, 2.0, horizon=n),
    "recommended, Gaussian": lambda n: choosing.recommended(USERS, CAP, 2.0, 1e-6, horizon=n),
    "users alike, pure": lambda n: choosing.users_alike(USERS, CAP, 2.0, horizon=n),
    "users alike, Gaussian": lambda n: choosing.users_alike(USERS, CAP, 2.0, 1e-6, horizon=n),
}


ONE_BY_ONE = ("Algorithm 2", "recommended, pure", "recommended, Gaussian")


def coins(n_steps: int) -> np.ndarray:
    return mean_streams.bits(0.3, n_steps, seeded("bits"))


def running_sums(n_steps: int, sums: Callable[[int], Any] | None = None) -> Work:
    elements, delta = coins(n_steps), 1e-6 if sums else 0.0
    return lambda: BinaryMechanism(n_steps, 1.0, delta=delta, sums=sums and sums(n_steps)).release(elements, seeded("noise"))


def sums_online(n_steps: int) -> Work:
    elements, mechanism = coins(n_steps).tolist(), BinaryMechanism(n_steps, 1.0)

    def work() -> object:
        state = mechanism.start(seeded("noise"))
        return [mechanism.step(state, element)[1] for element in elements]

    return work


def textbook(n_steps: int) -> Work:
    """The peer: Chan, Shi and Song's mechanism as textbooks have it, a loop over steps that keeps one sum per level."""
    elements = coins(n_steps).tolist()

    def work() -> object:
        rng, scale = seeded("noise"), height(n_steps) / 1.0
        exact, noisy = [0.0] * 64, [0.0] * 64
        released = []
        for step, element in enumerate(elements, start=1):
            lowest = (step & -step).bit_length() - 1
            exact[lowest] = sum(exact[:lowest]) + element
            exact[:lowest] = noisy[:lowest] = [0.0] * lowest
            noisy[lowest] = exact[lowest] + rng.laplace(0.0, scale)
            released.append(sum(noisy[level] for level in range(step.bit_length()) if step >> level & 1))
        return released

    return work


def noise_of(sums: Any, n_steps: int) -> Work:
    return lambda: sums.all(n_steps, Tape(Gaussian(1.0), seeded("noise")))


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


def example(n_users: int, reports: int = 3) -> tuple[Any, ShiftingStream]:
    """The plan for Example 1.4, and its stream, whose smallest groups are the plan's error."""
    events, calibration = 1000, calibrate(1.0, 1e-6, 3)
    for _ in range(20):
        found = shifting.plan(calibration, n_users, 2**32, events, 0.05)
        sizes = example_sizes(n_users, found.error)
        before, events = events, max(1, sum(n_users // size for size in sizes.values()))
        if events == before:
            break
    data = ShiftingStream.make(n_users, sizes, seeded("stream", n_users), n_elements=2**32)
    return shifting.plan(calibrate(1.0, 1e-6, reports), data.horizon, 2**32, data.n_events, 0.05), data


def example_simulated(n_users: int, reports: int = 3) -> Work:
    plan, data = example(n_users, reports)
    shifting_simulation.simulate(plan.monitor, data, seeded("first"))
    return lambda: shifting_simulation.simulate(plan.monitor, data, seeded("simulation"))


def stable_simulated(n_users: int) -> Work:
    chosen, (_, data) = stable_monitor(1.0, 1e-6, 3, n_users), example(n_users)
    shifting_simulation.simulate(chosen, data, seeded("first"))
    return lambda: shifting_simulation.simulate(chosen, data, seeded("simulation"))


def queries(n_users: int, kind: str) -> Work:
    """`step` with a predicate of the users' data, or with a value in [0, 1] for each, one of 10^5 after the other."""
    chosen = ThresholdMonitorEvolving.calibrated(calibrate(1.0, 1e-6, 3, queries=kind), 800.0 + n_users)
    draw = np.random.default_rng(0)
    data = draw.integers(0, 4, size=n_users) if kind == "binary" else draw.random((50, n_users))
    predicates = [partial(np.equal, element) for element in range(4)]

    def work() -> None:
        state, rng = chosen.start(n_users), seeded("general")
        for number in range(10**5):
            if kind == "binary":
                state, _ = chosen.step(state, data, predicates[number % 4], rng)
            else:
                state, _ = chosen.step(state, data[number % 50], np.asarray, rng)

    return work


def batch(n_users: int, kind: str, threshold: float) -> Work:
    """`run` of 10^6 queries with a value a user and query, of which some are answered yes."""
    chosen = ThresholdMonitorEvolving.calibrated(calibrate(1.0, 1e-6, 3, queries=kind), threshold)
    draw = np.random.default_rng(0).random((10**6, n_users))
    values, state = draw < 0.5 if kind == "binary" else draw, chosen.start(n_users)
    return lambda: chosen.run(state, values, seeded("table"))


def elements(n_users: int, n_elements: int) -> Work:
    """A step of all users: the queries of all elements."""
    chosen = ThresholdMonitorEvolving.calibrated(calibrate(1.0, 1e-6, 3), 800.0)
    holding, state = np.random.default_rng(0).integers(0, n_elements, size=n_users), chosen.start(n_users)
    return lambda: chosen.step_elements(state, holding, n_elements, seeded("batch"))


Case = tuple[str, str, float, Callable[..., Work], tuple[Any, ...]]  # table, what, size, how to make the work, of what
CASES: list[Case] = [
    ("frequency oracle", "bare numpy, same steps", 1e7, bare_numpy, (10**7,)),
    ("frequency oracle", "per user: client and server", 1e7, oracle_per_user, (10**7,)),
    ("frequency oracle", "simulation, one bit a user, n = 10^7", 1e7, oracle_simulated, (10**7,)),
    ("frequency oracle", "simulation, one bit a user, n = 10^9", 1e9, oracle_simulated, (10**9,)),
    ("frequency oracle", "simulation, uncompressed, n = 10^9", 1e9, oracle_simulated, (10**9, "none")),
    ("heavy hitters", "per user, both reports: Algorithm 3, two letters", 1e7, searched, ("printed", 10**7, "collect")),
    ("heavy hitters", "per user, one report: one bit, users split, joint fit", 1e7, searched, ("split", 10**7, "collect")),
    ("heavy hitters", "per user, clients, server, search: projective reports", 1e7, searched, ("projective", 10**7, "both")),
    ("heavy hitters", "per user, search: PEM with OLH, a thousand candidates", 1e6, asked_of_every_report, (10**6, 1000)),
    ("heavy hitters", "simulation and search: Algorithm 3, two letters", 1e7, searched, ("printed", 10**7, "simulate")),
    ("heavy hitters", "simulation and search: one bit, users split, joint fit", 1e7, searched, ("split", 10**7, "simulate")),
    ("heavy hitters", "the same, n = 10^9", 1e9, searched, ("split", 10**9, "simulate")),
    ("heavy hitters", "simulation and search: PEM with OLH, n = 10^9", 1e9, searched, ("PEM", 10**9, "simulate")),
    ("heavy hitters", "Bitstogram per user: clients, server, search", 1e6, bitstogram, (10**6, True)),
    ("heavy hitters", "Bitstogram, simulation and search", 1e9, bitstogram, (10**9,)),
    ("heavy hitters", "RAPPOR per user: clients, server, decoding of the dictionary", 1e6, rappor, (10**6, True)),
    ("heavy hitters", "RAPPOR, simulation and decoding of the dictionary", 1e9, rappor, (10**9,)),
    ("thresh", "simulation, three changes, T = 1024, ell = 10^6", 1e6, thresh_of, (10**6, 1024, 10**6)),
    ("thresh", "the same, n = 10^9", 1e9, thresh_of, (10**9, 1024, 10**6)),
    ("thresh", "the same, T = 8192", 1e6, thresh_of, (10**6, 8192, 10**6)),
    ("thresh", "simulation, drift, T = 1024, ell = 10^6", 1e9, lambda *n: thresh(drifting(*n)), (10**9, 1024, 10**6)),
    ("thresh", "HEAVYTHRESH, two changes, d = 10^5, T = 64, ell = 10^6", 1e6, heavy_thresh, (10**6, 10**5, 64, 2.0)),
    ("thresh", "user by user, T = 64, ell = 10^6", 1e6, thresh_of, (10**6, 64, 10**6, True)),
    ("rivals", "each user once", 1e7, rival_simulated, ("once", 10**7, 1024)),
    ("rivals", "change detection online", 1e7, detection, (10**7, 1024)),
    ("rivals", "THRESH, roles by lot", 1e7, rival_simulated, ("crew", 10**7, 1024)),
    ("rivals", "one word a user, d = 1000", 1e7, rival_simulated, ("word", 10**7, 1024, 1000)),
    ("rivals", "HEAVYTHRESH, roles by lot, d = 1000", 1e7, rival_simulated, ("word crew", 10**7, 1024, 1000)),
    ("rivals", "user by user: each user once", 1e5, rival_per_user, ("once", 10**5, 64)),
    ("rivals", "user by user: THRESH, roles by lot", 1e5, rival_per_user, ("crew", 10**5, 64)),
    ("rivals", "user by user: one word a user, d = 16", 1e5, rival_per_user, ("word", 10**5, 16, 16)),
    ("continual means", "binary mechanism", 1e7, running_sums, (10**7,)),
    ("continual means", "square root, Gaussian", 1e7, running_sums, (10**7, Filter)),
    ("continual means", "eight buffers, Gaussian", 1e7, running_sums, (10**7, Buffered)),
    ("continual means", "binary mechanism, one by one", 1e6, sums_online, (10**6,)),
    ("continual means", "the peer: a textbook's loop", 1e6, textbook, (10**6,)),
    ("continual means", "noise of a banded matrix, 256 bands", 1e6, noise_of, (Filter(10**6, width=256), 10**6)),
    *(("continual means", name, 1e7, mean, (name, 10**7)) for name in MEANS if name != "recommended, Gaussian"),
    *(("continual means", f"{name}, one by one", 2e5, mean, (name, 200_000, True)) for name in ONE_BY_ONE),
    ("sparse vector", "Example 1.4, n = m = 10^6, simulated", 1, example_simulated, (10**6,)),
    ("sparse vector", "the same, n = m = 10^9", 1, example_simulated, (10**9,)),
    ("sparse vector", "the same, StableMonitor, n = m = 10^9", 1, stable_simulated, (10**9,)),
    ("sparse vector", "the same, n = m = 10^6, k = 1 (all counters)", 1, example_simulated, (10**6, 1)),
    ("sparse vector", "online, one by one (step), {0, 1}, 10 users", 1e5, queries, (10, "binary")),
    ("sparse vector", "the same, 1000 users", 1e5, queries, (1000, "binary")),
    ("sparse vector", "online, one by one (step), [0, 1], 10 users", 1e5, queries, (10, "interval")),
    ("sparse vector", "online, a batch of queries (run), {0, 1}, 10 users", 1e6, batch, (10, "binary", 200.0)),
    ("sparse vector", "the same, every second answer a yes", 1e6, batch, (10, "binary", 0.0)),
    ("sparse vector", "online, a batch of queries (run), [0, 1], 10 users", 1e6, batch, (10, "interval", 200.0)),
    ("sparse vector", "online, all 10^7 queries of a step of 10^6 users (step_elements)", 1e7, elements, (10**6, 10**7)),
]  # fmt: skip

SUMS: dict[str, Callable[[int], Work]] = {
    "binary mechanism": running_sums, "Algorithm 6": partial(mean, "Algorithm 6"),
    "recommended, pure": partial(mean, "recommended, pure"), "users alike, pure": partial(mean, "users alike, pure"),
    "users alike, Gaussian": partial(mean, "users alike, Gaussian"), "a textbook's loop": textbook,
}  # fmt: skip
EPOCHS: dict[str, Callable[[int, int], Work]] = {
    "THRESH, three changes, ell = 10^6": lambda n, horizon: thresh_of(n, horizon, 10**6),
    "THRESH, drift, ell = 10^4": lambda n, horizon: thresh(drifting(n, horizon, 10**4)),
    "HEAVYTHRESH, two changes, d = 10^4, ell = 10^6": lambda n, horizon: heavy_thresh(n, 10_000, horizon, 8.0),
}
GROWING: list[Case] = [
    *(("against n", what, n, make, (n, 256)) for what, make in EPOCHS.items() for n in (10**6, 10**7, 10**8, 10**9)),
    *(("against T", what, t, make, (10**6, t)) for what, make in EPOCHS.items() for t in (64, 256, 1024, 4096)),
    *(("against steps", what, n, make, (n,)) for what, make in SUMS.items() for n in (10**4, 10**5, 10**6, 10**7)),
]


def measured(place: int, repeats: int) -> tuple[list[float], float]:
    """Processor seconds of each run, and the peak memory of this process in GB."""
    *_, make, of = [*CASES, *GROWING][place]
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


@house
def draw(rows: pd.DataFrame, tables: dict[str, str], slope: float, file: str) -> None:
    """A panel a table: seconds against size, with a band from the fastest to the slowest run."""
    figure, axes = canvas(8.5 if len(tables) > 1 else 6.5, 4.0, columns=len(tables), sharey=True)
    panels = np.ravel(axes)
    for ax, (table, label) in zip(panels, tables.items(), strict=True):
        for number, (what, line) in enumerate(rows[rows.table == table].groupby("what", sort=False)):
            x, colour = line["size"], PALETTE[number]
            ax.fill_between(x, line.least, line.most, color=colour, alpha=0.2, linewidth=0)
            ax.plot(x, line.seconds, color=colour, marker=MARKERS[number], label=what)
        ax.set(xscale="log", yscale="log", xlabel=label)
    last = np.unique(rows[rows.table == [*tables][-1]]["size"])
    panels[-1].plot(last, slope * last, label="in proportion", **THEORY)
    panels[0].set(ylabel="seconds of a run, one core")
    figure.legend(*panels[-1].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize="x-small")
    figure.savefig(RESULTS / file, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="a table")
    parser.add_argument("--dry", action="store_true", help="each once, and nothing is written")
    asked = parser.parse_args()
    for library in ("OPENBLAS", "OMP", "MKL"):  # one core: inherited by the processes
        os.environ[f"{library}_NUM_THREADS"] = "1"
    rows = []
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for place, case in enumerate([*CASES, *GROWING]):
            if asked.only in (None, case[0]):
                repeats = 1 if asked.dry else 5 if place < len(CASES) else 11
                rows.append(row(case, *pool.apply(measured, (place, repeats))))
                print(rows[-1], flush=True)
    if asked.dry:
        return
    table, file = pd.DataFrame(rows), RESULTS / "speed.csv"
    if asked.only and file.is_file():
        known = pd.read_csv(file, dtype=str, keep_default_na=False)
        table = pd.concat([known[known.table != asked.only], table])
    table.to_csv(file, index=False, lineterminator="\n")
    figures(file)
    dated.stamp("speed", Path(__file__), "make benchmarks", RESULTS)


def figures(file: Path) -> None:
    rows = pd.read_csv(file)
    draw(rows, {"against n": "users $n$ ($T$ = 256)", "against T": "epochs $T$ ($n = 10^6$)"}, 2e-5, "thresh-growth.svg")
    draw(rows, {"against steps": "steps of the stream"}, 2e-8, "continual-mean-growth.svg")


if __name__ == "__main__":
    main()
