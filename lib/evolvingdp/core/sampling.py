"""Exact sampling of large counts: what n users do, without drawing n users.

Every function draws from the exact law, `rare_count` to within 1e-12; none approximates by a normal.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, gammaincc, gammainccinv, ndtr, ndtri

from evolvingdp.core import checks

_WORDS = 16  # up to 64 * _WORDS fair coins are counted by popcount, more by numpy's binomial sampler
_NORMAL = 1e-5  # skewness: of less none
_FEW = 8  # users a part: up to here dealing them one by one is cheaper than drawing a binomial a part


@checks.draws
def fair_binomial(trials: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.int64]:
    """Bin(trials, 1/2) entrywise, any shape: the number of ones in `trials` fair bits.

    Counting bits of random words is several times faster than a general sampler while the counts stay below a thousand,
    which is where the Hadamard splitting of many users spends its time.
    """
    flat = np.ravel(trials)
    if 2 * np.count_nonzero(flat) < len(flat):  # the first splits of few words
        held = np.flatnonzero(flat)
        result = np.zeros(len(flat), dtype=np.int64)
        result[held] = fair_binomial(flat[held], rng)
        return result.reshape(np.shape(trials))
    words, rest = flat >> 6, (flat & 63).astype(np.uint64)
    large = words > _WORDS
    of_large = rng.binomial(flat[large], 0.5)
    coins = rng.integers(0, 2**64, size=len(flat), dtype=np.uint64)
    coins >>= np.uint64(1)
    coins >>= np.uint64(63) - rest
    successes = np.bitwise_count(coins).astype(np.int64)  # of `rest` coins
    successes[large] = of_large
    some = np.flatnonzero((words > 0) & ~large)
    if len(some):
        ends = np.cumsum(words[some])
        ones = np.bitwise_count(rng.integers(0, 2**64, size=ends[-1], dtype=np.uint64))
        # modulo 2^16, which no count reaches: numpy's reduceat is slower than a running sum of small integers
        successes[some] += np.diff(np.cumsum(ones, dtype=np.uint16)[ends - 1], prepend=np.uint16(0))
    return successes.reshape(np.shape(trials))


@checks.draws
def split_evenly(counts: NDArray[np.integer], parts: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Send every one of `counts` (d,) users to a uniform part, independently: int64 (d, parts), rows sum to counts.

    Words of few users are dealt user by user, words of many by a multinomial: both are the same law.
    """
    counts = np.asarray(counts, dtype=np.int64)
    few = counts <= _FEW * parts
    item = np.repeat(np.arange(len(counts)), np.where(few, counts, 0))
    part = rng.integers(0, parts, size=len(item))
    part *= len(counts)
    part += item
    by_part = np.bincount(part, minlength=len(counts) * parts).reshape(parts, len(counts))
    if not few.all():
        by_part[:, ~few] = rng.multinomial(counts[~few], np.full(parts, 1 / parts)).T
    return by_part.T  # a part's users lie together in memory: that is how they are read


def blocks(length: int, size: int) -> Iterator[NDArray[np.int64]]:
    """range(length) in consecutive pieces of at most `size`."""
    for first in range(0, length, size):
        yield np.arange(first, min(first + size, length))


def pieces(loads: NDArray[np.integer], most: int) -> list[NDArray[np.int64]]:
    """range(len(loads)) in consecutive pieces, whose `loads` (n,) >= 0 add up to hardly more than `most`, or to one load."""
    return np.split(np.arange(len(loads)), 1 + np.flatnonzero(np.diff(np.cumsum(loads) // most)))


def binomial_sf(count: ArrayLike, trials: ArrayLike, chance: ArrayLike) -> NDArray[np.float64]:
    """The probability that Bin(trials, chance) is above a whole `count`; arrays of shapes that go together.  As
    `scipy.stats.binom.sf`, whose module takes longer to load than all the rest."""
    count, trials = np.asarray(count, dtype=float), np.asarray(trials, dtype=float)
    inside = (count >= 0) & (count < trials)
    above = betainc(np.where(inside, count + 1, 1.0), np.where(inside, trials - count, 1.0), chance)
    return np.asarray(np.where(inside, above, count < 0))


def binomial_quantile(share: ArrayLike, trials: ArrayLike, chance: ArrayLike) -> NDArray[np.float64]:
    """The least count that Bin(trials, chance) reaches, or stays below, with this probability; shapes go together."""
    share, trials, chance = np.broadcast_arrays(share, np.asarray(trials, dtype=float), np.clip(chance, 0, 1))
    mean, z = trials * chance, ndtri(share)

    def enough(count: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.asarray((count >= 0) & (binomial_sf(trials - count - 1, trials, 1 - chance) >= share))

    near = np.ceil(mean + np.sqrt(mean * (1 - chance)) * z + (1 - 2 * chance) * (z * z - 1) / 6 - 0.5)
    found = np.clip(near, 0, trials)  # by Cornish and Fisher, and then by single steps
    while (more := ~enough(found)).any():
        found = found + more
    while (less := enough(found - 1)).any():
        found = found - less
    return np.asarray(found)


def skewed_sf(errors: float, skew: float) -> float:
    """The probability of more than so many standard `errors` by a gamma law of mean 0 and this skewness, 0 or more; and
    `skewed_isf`, where it has fallen to a `share`.  As `scipy.stats.pearson3`, which takes ten times as long."""
    if skew < _NORMAL:
        return float(ndtr(-errors))
    return float(gammaincc(4 / skew**2, max(0.0, 4 / skew**2 + 2 / skew * errors)))


def skewed_isf(share: float, skew: float) -> float:
    if skew < _NORMAL:
        return float(-ndtri(share))
    return float(gammainccinv(4 / skew**2, share) - 4 / skew**2) * skew / 2


@checks.draws
def rare_count(trials: int, share: float, rng: np.random.Generator) -> int:
    """Binomial(trials, share), also where 1 - share rounds to 1: then Poisson, `share` at most away in total variation."""
    return int(rng.poisson(trials * share) if share < 1e-12 else rng.binomial(trials, share))


@checks.draws
def others(taken: NDArray[np.int64], total: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """`count` different ones of the numbers below `total` that are not `taken`, which increase; in no order."""
    ranks = rng.choice(total - len(taken), size=count, replace=False, shuffle=False)
    return np.asarray(ranks + np.searchsorted(taken - np.arange(len(taken)), ranks, side="right"))
