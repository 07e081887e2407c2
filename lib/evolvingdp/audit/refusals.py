"""What mechanisms must refuse, since nothing has been paid for it: data out of range, and steps after the last."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from evolvingdp.continual_mean import algorithms, choosing, coordinates, offline, online, private_median, windows
from evolvingdp.continual_mean.arranged import arrange
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.per_step import PerStepLaplace
from evolvingdp.continual_mean.prefix_sums import Tree
from evolvingdp.core.noise import Laplace, Tape
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import heavy_protocol, thresh_protocol
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals import crew_thresh, once, once_words
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.sparse_vector.find_step import FindStep
from evolvingdp.sparse_vector.histograms import HistogramEveryStep
from evolvingdp.sparse_vector.integer_noise import IntegerNoise
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.stable_monitor import StableMonitor
from evolvingdp.sparse_vector.successors.values import step_with_value
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitor, ThresholdMonitorEvolving

Calls = Iterator[Callable[[], Any]]


def refused(calls: Calls, loss: Callable[[], float]) -> float:
    """The loss; infinite where one of these calls is not refused."""
    for call in calls:
        try:
            call()
        except (TypeError, ValueError, IndexError):
            continue
        return math.inf
    return loss()


def _rng() -> np.random.Generator:
    return stream(0, "refusals")


def _same(value: Any) -> Any:
    return value


def sparse_vector() -> Calls:
    """Values out of range, users who count twice, another number of users."""
    rng = _rng()
    noise = MonitorNoise(0.1, 0.0)
    binary, interval = ThresholdMonitorEvolving(noise, 0.5, 1), ThresholdMonitorEvolving(noise, 0.5, 1, "interval")
    whole = ThresholdMonitorEvolving(IntegerNoise(1.0, None, 4), 0.5, 1, "interval")
    units = ThresholdMonitorEvolving(IntegerNoise(1.0, None, 1), 0.5, 1, "interval")
    for monitor, wrong in (
        (binary, (2, -1, 0.5, np.nan)), (interval, (1.5, -0.5, np.nan)), (whole, (0.3,)), (units, (0.3,)),
    ):  # fmt: skip
        for value in wrong:
            yield partial(monitor.step, monitor.start(2), [value, 0], _same, rng)
            yield partial(monitor.run, monitor.start(2), np.array([[0, 0], [0, value]]), rng)
    yield partial(binary.step, binary.start(2), [1, 0, 1], _same, rng)
    yield partial(binary.step, binary.start(2), [[1, 0], [0, 1]], _same, rng)
    for users in ([0, 0], [2], [-1], [True]):
        yield partial(binary.step_users, binary.start(2), users, rng)
    yield partial(step_with_value, interval, interval.start(2), [1, 0], _same, rng)
    yield partial(step_with_value, binary, binary.start(2), [2, 0], _same, rng)
    fixed = ThresholdMonitor(binary)
    yield partial(fixed.step, fixed.start([0, 1]), lambda held: [2, 0], rng)
    held: tuple[Any, ...] = ([0], [0, 2], [0, -1], [0, 1, 1])
    every, stable = HistogramEveryStep.calibrated(1.0, 0.01, 2, 2), StableMonitor.calibrated(1.0, 0.01, 2, 2, 1)
    search = FindStep.calibrated(1.0, 0.01, 1, 5.0, 2)
    for inputs in held:
        yield partial(binary.step_elements, binary.start(2), inputs, 2, rng)
        yield partial(every.step, every.start(2), inputs, rng)
        yield partial(stable.step, stable.start(2), inputs, rng)
        yield partial(search.step, search.start(2, rng), inputs, rng)


def evolving() -> Calls:
    """Counts that are none of an epoch, and epochs after the horizon."""
    rng, voting = _rng(), Thresh(3, 1, 2, 1.0, 0.2, 0.3, 1, 1, unit=0.01, beta=0.05)
    for vote, estimate, votes, estimates in ((1.0, 0.0, 5, 1), (0.0, 0.6, 0, 2), (0.2, 0.4, 2, 1)):  # beyond epsilon
        yield partial(Thresh, 3, 1, 2, 1.0, vote, estimate, votes, estimates, unit=0.01, beta=0.05)
    heavy, few, words = HeavyThresh(voting, 3), once.Once(3, 1, 2, 1.0), once_words.OnceWords(3, 1, 2, 1.0)
    crew = Thresh(3, 2, 2, 1.0, 0.5, 0.0, 1, 2, unit=0.01, margin=0.1)
    crews = crew_thresh.CrewThresh(9, 1.0, crew, changes=1, cell=1, spare_cell=1)
    for counts in ([3, 0, 0], [-1, 0, 0], [0.5, 0, 0], [1, 0]):
        given: Any = np.array(counts)
        yield partial(thresh_protocol.step, voting, thresh_protocol.start(voting), given, rng)
        yield partial(once.step, few, once.start(few, rng), given, rng)
        shared = np.resize(given, 9) if len(counts) == 3 else given
        yield partial(crew_thresh.step, crews, crew_thresh.start(crews, rng), shared, rng)
    for row in ([3, 0, -1], [2, 1, -1], [2, 1, 0], [1, 0, 0], [0.5, 1.5, 0], [2, 0]):
        table: Any = np.array([row] * 3)
        yield partial(heavy_protocol.step, heavy, heavy_protocol.start(heavy), table, rng, rng)
    for row in ([0, 0], [2, -1], [2, 0, 0]):
        yield partial(once_words.step, words, once_words.start(words, rng), np.array([row] * 3), rng, rng)
    zeros, ones, three = np.zeros(3, dtype=np.int64), np.array([[2, 0]] * 3), np.array([[2, 0, 0]] * 3)
    over, _ = thresh_protocol.step(voting, thresh_protocol.start(voting), zeros, rng)
    yield partial(thresh_protocol.step, voting, over, zeros, rng)
    late, _ = heavy_protocol.step(heavy, heavy_protocol.start(heavy), three, rng, rng)
    yield partial(heavy_protocol.step, heavy, late, three, rng, rng)
    done, _ = once.step(few, once.start(few, rng), zeros, rng)
    yield partial(once.step, few, done, zeros, rng)
    ended, _ = once_words.step(words, once_words.start(words, rng), ones, rng, rng)
    yield partial(once_words.step, words, ended, ones, rng, rng)


def continual_mean() -> Calls:
    """Samples out of range, users and samples beyond the caps, steps after the horizon."""
    rng = _rng()
    for made in (algorithms.naive(2, 2, 1.0), choosing.users_alike(2, 2, 1.0)):
        for sample in (1.5, -0.5, np.nan):
            yield partial(online.step, made, online.start(made, rng), 0, sample)
            yield partial(offline.release, made, [0, 1], [1.0, sample], rng)
        for user in (2, -1):
            yield partial(online.step, made, online.start(made, rng), user, 1.0)
            yield partial(offline.release, made, [0, user], [1.0, 1.0], rng)
        state = online.start(made, rng)
        for _ in range(2):
            state, _ = online.step(made, state, 0, 1.0)
        yield partial(online.step, made, state, 0, 1.0)
        yield partial(offline.release, made, [0, 0, 0], [1.0, 1.0, 1.0], rng)
    fine, wide = algorithms.naive(2, 2, 1.0, resolution=2**20), algorithms.naive(2**27, 1, 1.0, horizon=16)
    yield partial(offline.release, fine, [0, 1], [1.0, np.nan], rng)
    yield partial(offline.changes, algorithms.naive(2, 2, 1.0), arrange(fine, [0, 1], [1.0, 1.0]), rng)
    yield partial(offline.release, wide, [5] * 10 + [10**8], [1.0] * 11, rng)
    yield partial(coordinates.release, made, [0, 1], np.array([[1.0, 1.0], [1.0, 1.5]]), rng)
    for mechanism in (BinaryMechanism(2, 1.0), BinaryMechanism(2, 1.0, integer=True)):
        yield partial(mechanism.release, [1, 0, 0], rng)
        begun = mechanism.start(rng)
        for element in (1, 0):
            begun, _ = mechanism.step(begun, element)
        yield partial(mechanism.step, begun, 1)
    yield partial(mechanism.release, [0.5, 1.0], rng)
    yield partial(mechanism.step, mechanism.start(rng), 0.5)
    yield partial(Tree(2).all, 4, Tape(Laplace(1.0), rng))
    every = PerStepLaplace(2, 1.0)
    for sample in (1.5, -0.5, np.nan):
        yield partial(every.release, [0, 1], [1.0, sample], rng)
        yield partial(every.step, every.start(rng), 0, sample)
    yield partial(every.release, [0, 1, 0], [1.0, 1.0, 1.0], rng)
    shown = every.start(rng)
    for user in (0, 1):
        shown, _ = every.step(shown, user, 1.0)
    yield partial(every.step, shown, 0, 1.0)
    days = windows.Days(algorithms.naive(2, 2, 1.0), 2, 1)
    yield partial(days.step, days.start(rng), 0, 1.5)
    for values in ([0.5, 1.5], [0.5, -0.5], [0.5, np.nan]):
        yield partial(private_median.draw_between, np.array(values), 1.0, rng)
    for held in (days, windows.Days(algorithms.naive(2, 4, 1.0), 2, 1, Tree(4))):  # also where the sums could go on
        closed = held.start(rng)
        for _ in range(2):
            closed, _ = held.close(closed)
        yield partial(held.close, closed)
        yield partial(held.step, closed, 0, 1.0)
