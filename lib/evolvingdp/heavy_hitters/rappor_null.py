"""How a candidate that nobody reported scores in RAPPOR: the law over its hash functions, which it alone has.

Whatever the clients reported, the cells of such a candidate are uniform and independent of it. The score sums one value
per cell that the candidate sets, so given the values its law is known exactly: a sum over cohorts of sums over random sets
of cells. Nothing is asked of the noise, or of words that nobody thought of. Its tail is the saddlepoint approximation of
Barndorff-Nielsen (r* = w + log(u/w)/w), which counts half of a score's own mass, and never above Chernoff's bound, which is
all of it at the end of the law's range.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

_TILTS = np.sinh(np.linspace(-3.2, 5.2, 60)) / 2  # in deviations of the score: -6 to 45, dense around 0
_STEP = 6  # of the coarse grid
_CHUNK = 1 << 11  # cohorts at a time, times tilts and sizes of sets
_LARGEST_EXPONENT = 600.0
_FARTHEST = 37.0  # deviations: the smallest p-value that a double holds


def tail(values: NDArray[np.float64], n_hashes: int, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(score >= each of `scores`, (laws, n)) under each law, whose cohorts add the `values` (laws, cohorts, bits) of the
    cells of `n_hashes` hashes."""
    at_once = max(1, _CHUNK // values.shape[1])
    parts = [slice(first, first + at_once) for first in range(0, max(1, len(values)), at_once)]
    return np.concatenate([_tail(values[part], n_hashes, scores[part]) for part in parts])


def _tail(values: NDArray[np.float64], n_hashes: int, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    deviation = np.sqrt(n_hashes * np.var(values, axis=2).sum(axis=1))
    reach = np.maximum(n_hashes * np.abs(values).max(axis=(1, 2)), 1e-300)
    largest = _LARGEST_EXPONENT / reach
    tilts = np.clip(_TILTS[:, None] / np.maximum(deviation, 1e-300), -largest, largest)
    if scores.shape[1] == 1:  # of the grid only the part around the score
        moments = _moments(values, n_hashes, tilts[::_STEP])
        below = ((moments[1] / moments[0]).sum(axis=2) < scores[:, 0]).sum(axis=0)
        around = (below - 1) * _STEP + np.arange(-1, _STEP + 2)[:, None]
        tilts = np.take_along_axis(tilts, np.clip(around, 0, len(tilts) - 1), axis=0)
    moments = _moments(values, n_hashes, tilts)
    log_mass = np.log(moments[0]).sum(axis=2)  # the cumulant function of the score, and two derivatives
    mean = (moments[1] / moments[0]).sum(axis=2)
    variance = (moments[2] / moments[0] - np.square(moments[1] / moments[0])).sum(axis=2)
    rate = np.maximum(tilts * mean - log_mass, 0.0)
    w = np.sign(tilts) * np.minimum(np.sqrt(2 * rate), _FARTHEST)
    with np.errstate(divide="ignore", invalid="ignore"):
        normal = w + np.log(tilts * np.sqrt(np.maximum(variance, 0.0)) / w) / w
    usable = np.isfinite(normal) & (np.abs(w) > 1e-4)
    chernoff = np.where(w > 0, -ndtri(np.exp(-np.square(w) / 2)), -np.inf)
    p_values = np.ones(scores.shape)
    for own in np.flatnonzero((deviation > 0) & usable.any(axis=0)):
        kept = usable[:, own]
        known = np.clip(normal[kept, own], chernoff[kept, own], _FARTHEST)
        ends, known = np.maximum.accumulate(mean[kept, own]), np.maximum.accumulate(known)
        place = np.interp(scores[own], ends, known, right=chernoff[kept, own][-1])
        p_values[own] = ndtr(-place)
    return p_values


def _moments(values: NDArray[np.float64], n_hashes: int, tilts: NDArray[np.float64]) -> NDArray[np.float64]:
    """E exp(t X), E X exp(t X) and E X^2 exp(t X) of each cohort's X at each t: (3, tilts, laws, cohorts).

    A set of d cells is uniform among its size, so the first is the d-th elementary symmetric polynomial of exp(t values)
    over the number of such sets, averaged over d; the others are its derivatives.
    """
    n_laws, n_cohorts, n_bits = values.shape
    sizes = _sizes(n_bits, n_hashes)
    polynomials = np.zeros((3, len(sizes), len(tilts), n_laws, n_cohorts))
    polynomials[0, 0] = 1.0
    plain, first, second = polynomials
    for bit in range(n_bits):
        own = values[:, :, bit]
        z = np.exp(tilts[:, :, None] * own)
        second[1:] += z * (second[:-1] + own * (2 * first[:-1] + own * plain[:-1]))
        first[1:] += z * (first[:-1] + own * plain[:-1])
        plain[1:] += z * plain[:-1]
    weights = sizes / [math.comb(n_bits, size) for size in range(len(sizes))]
    return np.asarray(np.tensordot(weights, polynomials, axes=(0, 1)))


def _sizes(n_bits: int, n_hashes: int) -> NDArray[np.float64]:
    """The probabilities that `n_hashes` uniform cells of `n_bits` are 0, 1, ... different ones."""
    law = np.zeros(min(n_hashes, n_bits) + 1)
    law[0] = 1.0
    size = np.arange(len(law))
    for _ in range(n_hashes):
        grown = law * (n_bits - size) / n_bits
        law = law * size / n_bits
        law[1:] += grown[:-1]
    return law
