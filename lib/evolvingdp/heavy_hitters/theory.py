"""What the proofs and elementary statistics say about FreqOracle, as numbers.

Every function returns users (not fractions).  Natural logarithms in tails, base 2 in depths (the paper: "log").
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.core.randomizers import SignFlip


def noise_standard_error(n_users: int, epsilon: float, rows: int, density: float = 1.0) -> float:
    """Standard error of the median of the rows for a rare word, about sqrt(pi/2) a sqrt(n) without hash collisions;
    `density` is that of one row's error at 0, relative to the density without them.

    A row sums n terms that are rows * a * (+-1) with probability 1/rows and else 0.  Their median is rounded to multiples of
    rows * a, which adds the variance of rounding: it matters where rows is not small beside sqrt(n).
    """
    checks.integer_at_least(1, n_users=n_users, rows=rows)
    unit = rows * SignFlip(epsilon).debias
    normal = unit * math.sqrt(n_users / rows) * normal_median_deviation(rows)
    rounding = unit * math.sqrt((1 - 1 / rows) / 12)  # a single row is its own median and is not rounded
    return math.hypot(normal / density, rounding)


def mean_standard_error(n_users: int, epsilon: float) -> float:
    """Standard error of the mean of the rows without hash collisions: a sqrt(n), whatever the number of rows."""
    checks.integer_at_least(1, n_users=n_users)
    return SignFlip(epsilon).debias * math.sqrt(n_users)


def normal_median_deviation(size: int) -> float:
    """Standard deviation of the median of `size` standard normals, to half a per cent; sqrt(pi/(2 size)) in the limit."""
    checks.integer_at_least(1, size=size)
    more = 2 - math.pi / 2 + (math.pi - 3) / size if size % 2 else 3 - math.pi / 2 + (3 * math.pi - 10) / size
    return math.sqrt(math.pi / 2 / (size + more))


def median_error(
    counts: NDArray[np.integer],
    n_users: int,
    epsilon: float,
    rows: int,
    width: int,
    truth: NDArray[np.integer] | int = 0,
) -> NDArray[np.float64]:
    """Standard errors of the median for words held by `truth` users beside `counts` of all words, collisions included.

    A row's error is normal noise of deviation s = a sqrt(n rows) plus, independently, a sum over the other words u of
    +-f(u) with probability 1/width.  The median of many rows has deviation 1 / (2 sqrt(rows) p(0)) with p(0) the integral of
    exp(-s^2 x^2 / 2) prod_u (1 - 1/width + cos(f(u) x) / width)  over  2 pi; the rows share the users who hold the word,
    which lowers the variance by truth.  A limit for many rows and rare collisions: where half of the rows are bad, the error
    is larger by far.
    """
    scale = SignFlip(epsilon).debias * math.sqrt(n_users * rows)
    sizes, multiplicity = np.unique(np.asarray(counts), return_counts=True)
    shifts = sizes / scale
    step = 2 * math.pi / (4 * float(shifts.max(initial=0)) + 40)  # the trapezoid rule's images stay outside the law
    nodes = np.arange(-math.ceil(9 / step), math.ceil(9 / step) + 1) * step
    log_factor = np.zeros_like(nodes)
    for shift, words in zip(shifts, multiplicity, strict=True):
        log_factor += words * np.log1p((np.cos(shift * nodes) - 1) / width)
    at_zero = step * np.sum(np.exp(log_factor - nodes**2 / 2)) / math.sqrt(2 * math.pi)  # p(0) over that of the noise
    error = noise_standard_error(n_users, epsilon, rows, density=float(at_zero))
    return np.sqrt(error**2 - np.asarray(truth, dtype=np.float64))


def paper_rows(n_users: int, beta: float) -> float:
    """t = 110 ln(n / beta), Section 5."""
    _check_scale(n_users, beta)
    return 110 * math.log(n_users / beta)


def paper_width(n_users: int, beta: float) -> float:
    """m = 48 sqrt(n / ln(n / beta)), Section 5."""
    _check_scale(n_users, beta)
    return 48 * math.sqrt(n_users / math.log(n_users / beta))


def paper_error_bound(n_users: int, epsilon: float, scaling: float) -> float:
    """Lemma 5.3's 14 sqrt(n gamma) / epsilon; gamma = t in the final phase, t log2(d) in the pruning phase.

    `epsilon` is that of two reports, as in Algorithm 1.  The printed proof's last step needs epsilon <= 1.04 (E-HH-8).
    """
    checks.positive(epsilon=epsilon, scaling=scaling)
    checks.integer_at_least(1, n_users=n_users)
    return 14 * math.sqrt(n_users * scaling) / epsilon


def paper_threshold(n_users: int, epsilon: float, beta: float, depth: float) -> float:
    """Algorithm 3's eta = 147 sqrt(n ln(n/beta) depth) / epsilon; words above 3 eta are found with probability 1 - beta."""
    _check_scale(n_users, beta)
    checks.positive(epsilon=epsilon, depth=depth)
    return 147 * math.sqrt(n_users * math.log(n_users / beta) * depth) / epsilon


def _check_scale(n_users: int, beta: float) -> None:
    checks.integer_at_least(1, n_users=n_users)
    checks.probability(beta=beta)


def bitstogram_constants(n_users: int, epsilon: float, beta: float) -> dict[str, float]:
    """What the proof of Lemma 6.8 asks of Bitstogram, constants made explicit: `inner_rows` by Lemma 6.5 for two questions
    at failure 1/256, `buckets` the most allowed, `found_from` users (E-HH-12: printed as 264 n / T in one place)."""
    checks.positive(epsilon=epsilon, beta=beta)
    code_bits, repetitions = 850 * math.log(n_users / beta), 48 * math.log(1 / beta)
    buckets = epsilon * n_users / (326 * math.sqrt(repetitions * code_bits))
    return {
        "code_bits": code_bits,
        "repetitions": repetitions,
        "inner_rows": 132 * math.log(4 * 2 * 256),
        "buckets": buckets,
        "groups": repetitions * code_bits * 132 * math.log(4 * 2 * 256),
        "found_from": 264 * n_users**1.5 / buckets,
    }
