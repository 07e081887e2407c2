"""Scenes of numpy's numbers: whatever type a number or an array has, mechanisms see the same number.

A float32 raised to e^89 is infinite, and an int8 wraps: who takes one is told less noise than others are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from evolvingdp.audit import coverage
from evolvingdp.audit.recorded.scene import Scene, fingerprint, outcome
from evolvingdp.continual_mean import algorithms, choosing, offline, per_step, windows
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.sums import trees
from evolvingdp.core import accounting, checks, sampling
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.noise import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from evolvingdp.core.olh import OLH
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import thresh_protocol
from evolvingdp.evolving.rivals import memoized, once, signs, tree
from evolvingdp.evolving.streams import BitStream
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.heavy_hitters import bitstogram, count_sketch, pem, rappor, tree_hist
from evolvingdp.heavy_hitters.binary_code import BinaryCode
from evolvingdp.heavy_hitters.sketches.projective import ProjectiveOracle
from evolvingdp.heavy_hitters.trust.prefix_counts import PrefixCounts
from evolvingdp.heavy_hitters.word_tree import WordTree
from evolvingdp.sparse_vector import histograms, privacy
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.find_step import FindStep
from evolvingdp.sparse_vector.integer_noise import IntegerNoise
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

_NUMBERS = (
    *(kind(3) for kind in (np.float16, np.float32, np.float64, np.longdouble, np.int8, np.uint8, np.int64, np.uint64)),
    *(np.array(3, dtype=kind) for kind in (np.float32, float, np.uint8, int)),
)
_FLOATS = (3.0, np.float16(3), np.float32(3), np.longdouble(3), np.array(3, dtype=np.float32))  # the first is Python's
_WHOLE = (3, np.uint8(3), np.int64(3), np.uint64(3), np.array(3, dtype=np.uint8))
_OTHERS = (3, 3.5, True, np.bool_(True), np.array(True), np.array([3.0]), "3", None, 1j, np.complex128(1))


def _seen(*args: Any, **kwargs: Any) -> list[str]:
    return [type(value).__name__ for value in (*args, *kwargs.values())]


@checks.plain
@dataclass
class _Made:
    number: Any
    other: Any = None

    @classmethod
    def twice(cls, number: Any, *, other: Any) -> _Made:
        return cls(_seen(number), _seen(other))


_PLAIN = checks.plain(_seen)


def plain(_: np.random.Generator) -> Iterator[Any]:
    """Every way in: by place and by name, of a function, a class and its class methods; and who has them."""
    for number in (*_NUMBERS, *_OTHERS):
        yield _PLAIN(number, number, named=number), _PLAIN(named=number), _Made.twice(number, other=number)
        yield [_seen(made.number, made.other) for made in (_Made(number, number), _Made(number=number, other=number))]
    for module in coverage.modules():
        own = [(name, value) for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        codes = [(name, getattr(vars(one).get("__init__", one), "__code__", None)) for name, one in own if callable(one)]
        # not the code itself: that of a changed `plain` is another
        yield module.__name__, [name for name, code in codes if code and code.co_qualname == _PLAIN.__code__.co_qualname]


def _alike(rng: np.random.Generator, call: Callable[..., Any], numbers: Iterable[Any]) -> list[bool | str]:
    """Whether `call`, on one seed, returns of all `numbers` what it does of the first."""
    seed = int(rng.integers(1 << 32))
    told = [outcome(fingerprint, "x", lambda _, one=one: [call(one, stream(seed))]) for one in numbers]
    return [one if isinstance(one, str) else one == told[0] for one in told]


def alike(rng: np.random.Generator) -> Iterator[Any]:
    """Of numbers that all types hold: what is computed of them has no fewer digits, and does not wrap."""
    letters, hashes = WordTree((1, 1), 2), MultiplyShift.draw(2, 4, rng)
    made: tuple[Callable[..., Any], ...] = (  # of a number, and of one that must be an integer
        lambda x, n: (SignFlip(x), SignFlip(x).flip), lambda x, n: (OLH(x, n), OLH(x, n).keep),
        *(lambda x, n, law=law: (law(x), law(x).variance) for law in (Laplace, Gaussian, DiscreteLaplace, DiscreteGaussian)),
        lambda x, n: count_sketch.FreqOracle(hashes, x).client, lambda x, n: tree_hist.TreeHist(letters, x, x, n),
        lambda x, n: pem.PEM(letters, x, x, (0.5, 0.5)), lambda x, n: rappor.Rappor.one_shot(x, n_hashes=n),
        lambda x, n: PrefixCounts(letters, x, x, n, (0.5, 0.5)),
        lambda x, n: bitstogram.Bitstogram(x, x, 1, BinaryCode(7, 7), rows=n),
        lambda x, n: Thresh.tuned(10**8, 64, 1000, x, changes=n), lambda x, n: tree.ChangeTree(90, 12, x, n),
        lambda x, n: once.Once(60, 12, 9, x, n), lambda x, n: memoized.Memoized.rappor(50, n, x * 2, x),
        lambda x, n: BinaryMechanism(9, x, x, uses=n, gap=n), lambda x, n: trees.Tree(90, n),
        lambda x, n: per_step.PerStepLaplace(n, x), lambda x, n: windows.Days(algorithms.bands(9, n, x), n, n),
        lambda x, n: algorithms.bands(9, n, x), lambda x, n: choosing.recommended(90, n, x, 1e-6),
        lambda x, n: AboveThreshold(x, n, x, x, True), lambda x, n: ThresholdMonitorEvolving(IntegerNoise(x), x, n),
        lambda x, n: histograms.Histogram("laplace", x, x), lambda x, n: privacy.delta_of_epsilon(x, x * 9, n),
        lambda x, n: FindStep.calibrated(x, 1e-6, n, x, n), lambda x, n: signs.best(n, x).flip_chances,
        lambda x, n: accounting.basic(x, n), lambda x, n: accounting.advanced(x, 1e-6, n),
        lambda x, n: accounting.optimal(x, 1e-6, n), lambda x, n: accounting.delta_of_gaussian(x, x),
        lambda x, n: accounting.delta_of_reports(x, x, n), lambda x, n: accounting.gaussian_mu(x, 1e-6),
        lambda x, n: accounting.delta_of_concentrated(x, x), lambda x, n: accounting.concentrated_rho(x, 1e-6),
    )  # fmt: skip
    for make in made:
        yield [_alike(rng, lambda x, _: repr(make(x, 3)), kinds) for kinds in (_FLOATS, _WHOLE)]  # noqa: B023
        yield _alike(rng, lambda n, _: repr(make(3.0, n)), (3, *_FLOATS[-1:], *_WHOLE))  # noqa: B023


_INTEGERS = (np.int64, np.int8, np.uint8, np.int16, np.uint32, np.uint64)


def arrays(rng: np.random.Generator) -> Iterator[Any]:
    """Integers of all types, whose sums and multiples the small ones do not hold."""
    keys, counts = np.array([3, 17, 5, 90]), np.array([100, 90, 60, 3])
    letters, hashes = WordTree((1, 1), 2), MultiplyShift.draw(3, 8, rng)
    leaves = letters.encode(["ab", "ba", "ac", "bd"])
    sketches = [count_sketch.FreqOracle(hashes, 2.0, how) for how in count_sketch.COMPRESSIONS]
    searches = (pem.PEM(letters, 4.0, 50.0, (0.5, 0.5)), PrefixCounts(letters, 4.0, 50.0, 1, (0.5, 0.5)))
    voting, bits = Thresh(4, 3, 120, 100.0, 1.5, 2.0, 3, 3, 0.02), np.array([[0, 1, 1], [1, 1, 1]])
    protocol = tree_hist.TreeHist(letters, 8.0, 50.0, 2, 8).draw_hashes(rng)
    clients = rappor.Rappor(8, 1, 3).draw_hashes(rng)
    settings = algorithms.bands(4, 8, 2.0)
    calls: tuple[Callable[..., Any], ...] = (
        *(lambda k, r, o=o: o.collect(keys.astype(k), r, r).sums for o in sketches),
        *(lambda k, r, o=o: o.simulate(keys.astype(k), counts.astype(k), r).sums for o in sketches),
        lambda k, r: ProjectiveOracle.draw(2, 8, 1.0, r).simulate(keys.astype(k), counts.astype(k), r).sums,
        *(lambda k, r, o=o: o.simulate(leaves.astype(k), counts.astype(k), r).words for o in searches),
        lambda k, r: protocol.simulate(leaves.astype(k), counts.astype(k), r).levels[0].sums,
        lambda k, r: clients.simulate(keys.astype(k), counts.astype(k), r),
        lambda k, r: OLH(1.0).report(keys.astype(k), r, r), lambda k, r: OLH(1.0).simulate_support(counts.astype(k), 900, r),
        lambda k, r: sampling.split_evenly(counts.astype(k), 3, r), lambda k, r: sampling.fair_binomial(counts.astype(k), r),
        lambda k, r: thresh_protocol.step(voting, thresh_protocol.start(voting), counts.astype(k), r)[1],
        lambda k, r: once.step(once.Once(4, 3, 120, 1.0), once.start(once.Once(4, 3, 120, 1.0), r), counts.astype(k), r)[1],
        lambda k, r: BitStream.make(counts.astype(k), np.zeros((4, 3)), 9).counts(1, r),
        lambda k, r: memoized.collect(memoized.Memoized(2, 3, 1.0), bits.astype(k), r),
        lambda k, r: tree.collect(tree.ChangeTree(2, 3, 1.0, 2), bits.astype(k), r),
        lambda k, r: BinaryMechanism(4, 1.0, 100.0).release(counts.astype(k), r),
        lambda k, r: offline.release(settings, np.arange(4).astype(k), bits[[0, 1, 0, 1], 0].astype(k), r),
        lambda k, r: per_step.PerStepLaplace(4, 1.0).release(np.arange(4).astype(k), bits[[0, 1, 0, 1], 0].astype(k), r),
        *(lambda k, r, o=o: histograms.Histogram(o, 2.0, 40.0).noisy(counts.astype(k), r) for o in histograms.HISTOGRAMS),
        *(lambda k, r, o=o: histograms.Histogram(o, 2.0, 40.0).release(counts.astype(k), r) for o in histograms.HISTOGRAMS),
    )  # fmt: skip
    for call in calls:
        yield _alike(rng, call, _INTEGERS)


def scenes() -> dict[str, Scene]:
    warnings.simplefilter("ignore")
    return {f"numbers_{scene.__name__}": scene for scene in (plain, alike, arrays)}
