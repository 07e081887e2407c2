"""What the proofs and elementary statistics say about FreqOracle, as numbers.

Every function returns users (not fractions).  Natural logarithms in tails, base 2 in depths (the paper: "log").
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from evolvingdp.core import checks
from evolvingdp.core.randomizers import SignFlip


def noise_standard_error(n_users: int, epsilon: float, rows: int) -> float:
    """Standard error of the median of the rows without hash collisions, about sqrt(pi/2) a sqrt(n).

    One row's estimate sums n independent terms that are rows * a * (+-1) with probability 1/rows and else 0, so its
    variance is n rows a^2 - f(v), f(v) being the word's own count; so this is for a rare word (`median_error` has the
    term).  The median of rows such
    normals is then rounded to the multiples of rows * a, which adds the variance of rounding; that matters only where
    rows is not small beside sqrt(n).
    """
    checks.integer_at_least(1, n_users=n_users, rows=rows)
    return _median_error(n_users, epsilon, rows, density=1.0)


def mean_standard_error(n_users: int, epsilon: float) -> float:
    """Standard error of the mean of the rows without hash collisions: a sqrt(n), whatever the number of rows."""
    checks.integer_at_least(1, n_users=n_users)
    return SignFlip(epsilon).debias * math.sqrt(n_users)


def _median_error(n_users: int, epsilon: float, rows: int, density: float) -> float:
    """`density` is that of one row's error at 0, relative to the density without collisions."""
    unit = rows * SignFlip(epsilon).debias
    normal = unit * math.sqrt(n_users / rows) * normal_median_deviation(rows)
    rounding = unit * math.sqrt((1 - 1 / rows) / 12)  # a single row is its own median and is not rounded
    return math.hypot(normal / density, rounding)


@lru_cache
def normal_median_deviation(size: int) -> float:
    """Standard deviation of the median of `size` standard normals by quadrature; tends to sqrt(pi/(2 size))."""
    checks.integer_at_least(1, size=size)
    points, weights = np.polynomial.legendre.leggauss(200)
    reach = 9.0 if size < 10 else 9.0 * math.sqrt(math.pi / 2 / size) * 1.5
    x, w = reach * points, reach * weights
    if size % 2:
        below = (size - 1) // 2
        log_law = below * (log_ndtr(x) + log_ndtr(-x)) + _log_density(x) + _log_multinomial(below, 1, below)
        return math.sqrt(float(np.sum(w * x**2 * np.exp(log_law))))
    # even: the two middle values low < high, integrated over low = centre - gap and high = centre + gap
    below = size // 2 - 1
    gap, gap_weights = (points + 1) * reach / 2, weights * reach / 2
    low, high = x[:, None] - gap, x[:, None] + gap
    log_law = below * (log_ndtr(low) + log_ndtr(-high)) + _log_density(low) + _log_density(high)
    law = 2 * np.exp(log_law + _log_multinomial(below, 1, 1, below))
    return math.sqrt(float(np.sum(w[:, None] * gap_weights * x[:, None] ** 2 * law)))


def _log_density(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return -(x**2) / 2.0 - math.log(math.sqrt(2 * math.pi))


def _log_multinomial(*parts: int) -> float:
    return math.lgamma(sum(parts) + 1) - sum(math.lgamma(part + 1) for part in parts)


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
    +-f(u) with probability 1/width.  The median of many rows has deviation 1 / (2 sqrt(rows) p(0)) with p the density of
    one row's error, and p(0) is the integral of its characteristic function
    exp(-s^2 x^2 / 2) prod_u (1 - 1/width + cos(f(u) x) / width)  over  2 pi.

    The rows share the users who hold the word: the covariance of two rows is -truth, and so the median's variance is
    lower by truth, too.

    A limit for many rows and rare collisions.  At 15 rows the measured error was between 7 % and 13 % smaller (32 words of
    .005 n in 64 cells; 40 of .025 n in 64), but twelve times larger where half of the rows are bad (one word of n/2 in 2
    cells): a bad majority has heavy tails that the density at zero does not see.
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
    error = _median_error(n_users, epsilon, rows, density=float(at_zero))
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
    """What the proof of Lemma 6.8 asks of Bitstogram, constants made explicit; all logarithms natural, as its tails are.

    `code_bits` = 850 ln(n/beta); `repetitions` R = 48 ln(1/beta); `inner_rows` = 132 ln(4 * 2 * 256), Lemma 6.5 for two
    questions at failure 1/256; `buckets` T = epsilon n / (326 sqrt(R code_bits)), the largest allowed; `found_from` =
    264 n^1.5 / T users (E-HH-12: printed as 264 n / T in one place).
    """
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


def succinct_hist_constants(n_users: int, epsilon: float, depth: float) -> dict[str, float]:
    """Lemma 6.3's w, the count from which a word is listed with probability 1/2, and T = 32 n / w, for epsilon <= 1.

    `depth` is log2 d, the bits of a word; the logarithms of tails are natural.
    """
    checks.positive(epsilon=epsilon, depth=depth)
    checks.integer_at_least(1, n_users=n_users)
    found_from = 32 * depth * math.log(16 * depth) + 48 / epsilon * math.sqrt(2 * n_users * depth * math.log(64 * depth))
    return {"found_from": found_from, "list_length": 32 * n_users / found_from}


def hashtogram_constants(n_users: int, epsilon: float, beta: float, log_queries: float) -> dict[str, float]:
    """Lemma 6.6 for e^log_queries queries and epsilon <= 1: the least rows R and buckets T, and the error in users."""
    _check_scale(n_users, beta)
    checks.positive(epsilon=epsilon)
    tail = math.log(n_users / beta) + log_queries
    return {
        "rows": 300 * (math.log(12) + tail),
        "buckets": epsilon * math.sqrt(n_users / tail),
        "error": 400 / epsilon * math.sqrt(n_users * (math.log(12) + tail)),
    }
