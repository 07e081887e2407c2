"""What nothing has been paid for is refused: settings, and what the doors of the registry (`test_refusals`) do not ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from generators import refusal

from evolvingdp.continual_mean import algorithms, choosing, private_median, windows
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.blocks import Blocks
from evolvingdp.continual_mean.prefix_sums import Buffered, PrefixSums, Tree
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.noise import DiscreteLaplace, Gaussian, Laplace, Tape
from evolvingdp.core.olh import OLH
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import protocol
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.heavy_hitters.bitstogram import Bitstogram
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.tree_hist import TreeHist
from evolvingdp.heavy_hitters.trust.prefix_counts import PrefixCounts
from evolvingdp.heavy_hitters.trust.shuffling import Shuffled, epsilon_of_a_report
from evolvingdp.heavy_hitters.word_tree import WordTree
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

Calls = Iterator[Callable[[], Any]]


def _rng() -> np.random.Generator:
    return stream(0, "refusals")


def _same(value: Any) -> Any:
    return value


def of_sparse_vector() -> Calls:
    """Values out of range, and noise that does not fit."""
    rng = _rng()
    noise = Laplace(1.0)
    binary, interval = ThresholdMonitorEvolving(noise, 0.5, 1), ThresholdMonitorEvolving(noise, 0.5, 1, "interval")
    whole = ThresholdMonitorEvolving(DiscreteLaplace(1.0), 1.0, 1)
    for monitor, wrong in ((binary, (2, -1, 0.5, np.nan)), (interval, (1.5, -0.5, np.nan)), (whole, (0.3,))):
        for value in wrong:
            yield partial(monitor.step, monitor.start(2), [value, 0], _same, rng)
    for law, threshold, queries in ((DiscreteLaplace(1.0), 0.5, "binary"), (DiscreteLaplace(1.0), 1.0, "interval")):
        yield partial(ThresholdMonitorEvolving, law, threshold, 1, queries)
    for queries, moved in (("binary", None), ("interval", 3)):
        yield partial(ThresholdMonitorEvolving, Gaussian(1.0), 0.5, 1, queries, moved)


def of_evolving() -> Calls:
    """Budgets beyond epsilon, and epochs after the horizon."""
    rng, voting = _rng(), Thresh(3, 1, 2, 1.0, 0.2, 0.3, 1, 1, unit=0.01, beta=0.05)
    for vote, estimate, votes, estimates in ((1.0, 0.0, 5, 1), (0.0, 0.6, 0, 2), (0.2, 0.4, 2, 1)):  # beyond epsilon
        yield partial(Thresh, 3, 1, 2, 1.0, vote, estimate, votes, estimates, unit=0.01, beta=0.05)
    heavy = HeavyThresh(voting, 3)
    zeros, three = np.zeros(3, dtype=np.int64), np.array([[2, 0, 0]] * 3)
    over, _ = protocol.step(voting, protocol.start(voting), zeros, rng, rng)
    yield partial(protocol.step, voting, over, zeros, rng, rng)
    late, _ = protocol.step(heavy, protocol.start(heavy), three, rng, rng)
    yield partial(protocol.step, heavy, late, three, rng, rng)


def of_heavy_hitters() -> Calls:
    """Options that nobody knows, budgets that add up to more, bits that are always told, servers without own noise."""
    tree, delta = WordTree((1, 1), length=2), 0.1
    for shares in ((1.0, 1.0), (0.5, 0.6), (1.5, -0.5), (1.0,)):
        yield partial(PrefixCounts, tree, 1.0, 10.0, shares=shares)
    counts, rng = PrefixCounts(tree, 1.0, 10.0, shares=(0.5, 0.5)), _rng()
    yield partial(counts.search, tree.encode(["ab"]), np.array([5]), [rng])
    for ones in ((0.0, 0.5), (0.5, 1.0), (0.5, 0.5), (0.6, 0.4)):
        yield partial(Rappor, one_from_zero=ones[0], one_from_one=ones[1])
    yield partial(Rappor, permanent_noise=-0.5)
    yield partial(Rappor.one_shot, 51.0)
    yield partial(TreeHist, tree, 1.0, 10.0, compression="both")
    yield partial(Bitstogram, 1.0, 10.0, final_share=1.0)
    for epsilon in (0.0, -1.0, np.nan, np.inf):
        for mechanism in (SignFlip, OLH, Rappor.one_shot):
            yield partial(mechanism, epsilon)
    for values in (2**15, 2**16):
        yield partial(OLH, 1.0, values)
    yield partial(OLH, 12.0)
    yield partial(OLH, 40.0, 2)
    yield partial(Shuffled, 16.0, 3, 2)
    yield partial(Shuffled(1.0, 3, 2).total_epsilon, 1e-13)
    for more in (0.0, 1.0):
        yield partial(epsilon_of_a_report, 1.0, more, 3, lambda _: 2, 10.0)
    yield partial(Shuffled(1.0, 3, 2).delta, -delta)


def _unpaid(rng: np.random.Generator) -> Calls:
    """Settings whose noise would not be that of what they add up: options that nobody knows, shares of more than all,
    budgets of another kind, sums that are too short or too large."""
    naive, mean = algorithms.naive, partial(Blocks, 2, 4, 1.0)
    for option in ({"kind": "mean"}, {"excess": "keep"}, {"delta": 0.1}, {"prior_mean": 0.5}, {"kind": "wishful"}):
        yield partial(mean, **option)
    for shares in ((0.5, 0.5, 0.5), (1.5, -0.25, -0.25), (0.5, 0.5)):
        yield partial(mean, shares=shares)
    for option in (
        {"reach": 2.0},
        {"decay": 0.3},
        {"delta": 0.1, "integer": True},
        {"delta": 0.1, "decay": 2},
    ):
        yield partial(UserMean, 2, 2, 1.0, **option)
    for size in ((2**31, 1), (2**30, 2**31), (2, 2)):
        yield partial(naive, *size, 1.0, resolution=2**60)
    yield partial(naive, 2**20, 2**20, 1e-6, integer=True)
    for wrong in (0.0, -1.0, np.nan, np.inf):
        for mechanism in (partial(naive, 2, 2), partial(BinaryMechanism, 2)):
            yield partial(mechanism, wrong)
        yield partial(BinaryMechanism, 2, 1.0, wrong)
    for sums, delta in ((Tree(8, 3, True), 0.1), (Tree(4), 0.0)):
        yield partial(BinaryMechanism, 8, 1.0, delta=delta, sums=sums)
    yield partial(BinaryMechanism, 8, 1.0, delta=0.1, integer=True, sums=Buffered(8))
    yield partial(BinaryMechanism, 8, 1.0, sums=Buffered(8))
    large = BinaryMechanism(2, 1.0, integer=True)
    yield partial(large.release, [2.0**61, 0.0], rng)
    yield partial(large.step, large.start(rng), 2**61)
    yield partial(windows.Days(naive(2, 2, 1.0), 2, 1).release, [0, 0], [1.0, 1.0], [1, 0], rng)
    yield partial(private_median.draw, np.array([0.5, 0.5]), 0.0, 4, rng)


def of_continual_mean() -> Calls:
    """Samples out of range, users and samples beyond the caps, sums that are over."""
    rng = _rng()
    fine, wide = algorithms.naive(2, 2, 1.0, resolution=2**20), algorithms.naive(2**27, 1, 1.0, horizon=16)
    yield partial(fine.release, [0, 1], [1.0, np.nan], rng)
    for sample in (1.5, -0.5, np.nan):
        yield partial(fine.step, fine.start(rng), 0, sample)
    for who in ([0, 2], [0, 0, 0]):
        yield partial(fine.release, who, np.ones(len(who)), rng)
        yield partial(algorithms.per_step, fine, who, np.ones(len(who)), rng)
    yield partial(wide.release, [5] * 10 + [10**8], [1.0] * 11, rng)
    alike, far = choosing.users_alike(2, 2, 1.0), UserMean(2, 9, 1.0, 1e-6, reach=2.0)
    for who, values in (([0, 1], [1.0, 1.5]), ([0, 2], [1.0, 1.0]), ([0, 0, 0], [1.0, 1.0, 1.0])):
        yield partial(alike.release, who, values, rng)
    yield partial(far.release, [0] * 4, [1.0] * 4, rng)  # reaches too far
    yield partial(UserMean(2, 2, 1.0, dimensions=2).release_all, [0, 1], np.array([[1.0, 1.0], [1.0, 1.5]]), rng)
    mechanism = BinaryMechanism(2, 1.0, integer=True)
    yield partial(mechanism.release, [0.5, 1.0], rng)
    yield partial(mechanism.step, mechanism.start(rng), 0.5)
    short: tuple[PrefixSums, ...] = (Tree(2), Tree(2, 3, True), Buffered(2), Buffered(2, 0.5))
    for sums in short:
        yield partial(sums.all, 4, Tape(Laplace(1.0), rng))
        yield partial(sums.online(Tape(Laplace(1.0), rng)).of, 4)
    yield from _unpaid(rng)
    days = windows.Days(algorithms.naive(2, 2, 1.0), 2, 1)
    yield partial(days.day, days.start(rng), [0], [1.5])
    yield partial(days.day, days.start(rng), [2], [1.0])
    for values in ([0.5, 1.5], [0.5, -0.5], [0.5, np.nan]):
        yield partial(private_median.draw, np.array(values), 1.0, 4, rng)
    closed = days.start(rng)
    for _ in range(2):
        closed, _ = days.day(closed, [], [])
    yield partial(days.day, closed, [], [])


@pytest.mark.parametrize("calls", [of_sparse_vector, of_evolving, of_heavy_hitters, of_continual_mean])
def test_what_is_not_paid_for_is_refused(calls):
    refused = [refusal(call) for call in calls()]
    assert len(refused) >= 5
    assert [number for number, kind in enumerate(refused) if not kind] == []
