"""Which candidate words the reported bits of RAPPOR show, how often, and how sure that is.

The reported bits of a cohort are, on average, a linear function of how often each word was reported. Where the bits can
tell all candidates apart, the **estimate** is a non-negative fit, and an unconstrained one gives the unbiased estimates
and their standard errors. Else only candidates that stand out are fitted, and the **unbiased** estimate of a word is its
own fit plus what its bits have left over. Words that nobody thought of are in the residuals: their average is a column of
the fit, their variance scales the standard errors.

**Error control.** The list aims at an expected share of at most `false_discovery_rate` words that nobody reported:
Benjamini and Hochberg's step-up with Storey's estimate of how many nobody reported. A candidate's score is the sum, over
its cells, of what the *other* candidates leave, cut at `_CUT` robust deviations, or a frequent stranger would hide the
rest. Of a candidate that nobody reported these cells are uniform, whatever the noise and the strangers: the score is
compared with the law of Pearson's third type with the mean, variance and skewness that this gives. Refused where only
some are fitted: which ones depends on their hashes. Candidates that always set the same bits are not listed.

**Privacy.** Post-processing of the reports: it costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import linalg, sparse

from evolvingdp.heavy_hitters.rappor import BitCounts, RapporProtocol

if TYPE_CHECKING:  # whose import takes as long as a plan
    import pandas as pd

WIDE = 0.8  # more candidates than this share of the equations: not all are fitted
_NULL_FROM = 0.8  # p-values above are taken to be those of words that nobody reported
_PURSUITS = 6  # of who stands out
_LOST = 1e-6  # how far the generalized inverse may be from an inverse
_NOT_TOLD_APART = 1e3  # a standard error, as a multiple of all reports
_CUT = 3.0  # robust standard deviations
_PRIOR_REPORTS = 100  # that a bit's share of ones is drawn to the mean by, in the weights of the p-values

Fit = tuple[NDArray[Any], NDArray[Any], NDArray[Any], float]  # non-negative, unbiased, its standard errors; the dispersion


@dataclass(frozen=True, eq=False)
class Decoded:
    """`words`: a row per candidate in the order asked, all in reports: estimate (non-negative), unbiased, standard_error,
    low and high (95%), p_value, adjusted_p_value (listed at a false-discovery rate from there on); no p-values, nan, where
    not all are fitted."""

    words: pd.DataFrame
    dispersion: float  # residual variance over that of independent reports: words that are no candidates and clients who
    # repeat themselves, and so their permanent noise, raise it
    n_equations: int  # reported bits

    def listed(self, false_discovery_rate: float = 0.05) -> NDArray[np.bool_]:
        """Which candidates are listed, (candidates,).  Raises ValueError for more than .8 candidates a reported bit."""
        if not 0 < false_discovery_rate < 1:
            raise ValueError(f"false_discovery_rate must lie in (0, 1), got {false_discovery_rate!r}")
        most = int(WIDE * self.n_equations)
        if len(self.words) > most:
            raise ValueError(
                f"candidates must be at most {most}, {WIDE:g} of the {self.n_equations} reported bits, for a list with a "
                f"false-discovery rate, got {len(self.words)}: ask for fewer, or take more cohorts or bits"
            )
        return np.asarray(self.words.adjusted_p_value <= false_discovery_rate)


def decode(protocol: RapporProtocol, counts: BitCounts, candidates: NDArray[np.uint64]) -> Decoded:
    """Fit the frequencies of `candidates` (keys, each once) to the counted bits.

    Raises ValueError for no or repeated candidates and where no report has come.
    """
    import pandas as pd

    if not len(candidates) or len(np.unique(candidates)) < len(candidates):
        raise ValueError(f"candidates must hold each key once and at least one, got {len(candidates)}")
    total = int(counts.n_reports.sum())
    if not total:
        raise ValueError("counts must hold reports, got none")
    settings = protocol.settings
    if counts.ones.shape != protocol.empty().ones.shape:
        raise ValueError(f"counts must be those of this protocol, {protocol.empty().ones.shape}, got {counts.ones.shape}")
    used = np.flatnonzero(counts.n_reports)
    reports = np.repeat(counts.n_reports[used], settings.n_bits)
    shown = counts.ones[used].ravel() / reports
    design = _design(protocol, candidates, used)
    # a fit's own shares would lean on a candidate's cells; these know no candidate
    share = (shown * reports + _PRIOR_REPORTS * np.clip(shown.mean(), 0.01, 0.99)) / (reports + _PRIOR_REPORTS)
    weight = np.sqrt(reports / (share * (1 - share))) * settings.gain
    target, weighted = weight * (shown - settings.report_one(0)) / settings.gain, sparse.diags_array(weight) @ design
    if wide := len(candidates) > WIDE * len(target):
        (fit, unbiased, error, dispersion), p_value = _of_some(weighted, target), np.full(len(candidates), np.nan)
    else:
        (fit, unbiased, error, dispersion), p_value = _of_all(weighted, target, weight, settings.n_bits)
    words = pd.DataFrame(
        {
            "estimate": fit[:-1] * total,
            "unbiased": unbiased[:-1] * total,
            "standard_error": error[:-1] * total,
            "low": (unbiased - 1.96 * error)[:-1] * total,
            "high": (unbiased + 1.96 * error)[:-1] * total,
            "p_value": p_value,
            "adjusted_p_value": p_value if wide else _adjusted(p_value),
        }
    )
    return Decoded(words, dispersion, len(target))


def _design(protocol: RapporProtocol, candidates: NDArray[np.uint64], cohorts: NDArray[np.int64]) -> sparse.csc_array:
    """(cohorts * bits, candidates + 1): whether a candidate sets a bit; the last column is a word that nobody thought of."""
    n_bits, n_candidates = protocol.settings.n_bits, len(candidates)
    cells = protocol.hashes.cells(cohorts[:, None], candidates) + (np.arange(len(cohorts)) * n_bits)[:, None]
    columns, shape = np.broadcast_to(np.arange(n_candidates), cells.shape), (len(cohorts) * n_bits, n_candidates)
    known = sparse.coo_array((np.ones(cells.size), (cells.ravel(), columns.ravel())), shape=shape)
    return sparse.csc_array(sparse.hstack([known, np.full((shape[0], 1), 1 / n_bits)]))


def _of_all(
    weighted: sparse.csc_array, target: NDArray[np.float64], weight: NDArray[np.float64], n_bits: int
) -> tuple[Fit, NDArray[np.float64]]:
    """The non-negative fit, least squares with any sign, its standard errors, and the residual variance; and p-values, of
    each candidate against what least squares on the others leaves: values that do not know its hashes."""
    products = (weighted.T @ weighted).toarray()
    inverse = linalg.pinvh(products)
    lost = np.abs(inverse @ products - np.eye(len(products))).max(axis=1) > _LOST  # not told from others
    solution = inverse @ (weighted.T @ target)
    left = target - weighted @ solution
    dispersion = _dispersion(left, len(solution))
    error = np.sqrt(dispersion * np.where(lost, _NOT_TOLD_APART**2, np.diag(inverse)))
    turned, square = linalg.qr_multiply(weighted.toarray(), target)  # the same fit, of as many equations as candidates
    without = left + (weighted @ (inverse * (solution / np.diag(inverse))))[:, :-1].T
    bound = _CUT * np.median(np.abs(without), axis=1, keepdims=True) / float(scipy.stats.norm.isf(0.25))
    each = weight * np.clip(without, -bound, bound)
    scores = (each * (weighted[:, :-1].T.toarray() > 0)).sum(axis=1)
    p_value = np.where(lost[:-1], 1.0, _tail(each.reshape(len(each), -1, n_bits), scores))
    return (scipy.optimize.nnls(square, turned)[0], solution, error, dispersion), p_value


def _of_some(weighted: sparse.csc_array, target: NDArray[np.float64]) -> Fit:
    """The same, and the last column, where only those are fitted that pure noise would hardly reach, all others being 0.

    Who is fitted is decided anew by what the fit of the last round leaves; the unbiased estimate adds it to the fit.
    """
    squares = np.asarray(weighted.multiply(weighted).sum(axis=0)).ravel()
    fit = np.zeros(weighted.shape[1])
    fit[-1] = (weighted.T @ target)[-1] / squares[-1]
    for _ in range(_PURSUITS):
        left = target - weighted @ fit
        solution = fit + (weighted.T @ left) / squares
        dispersion = _dispersion(left, int(np.count_nonzero(fit)))
        error = np.sqrt(dispersion / squares)
        chosen = np.flatnonzero(solution > error * np.sqrt(2 * np.log(len(fit))))
        chosen = np.union1d(chosen[np.argsort(-solution[chosen])][: len(target) // 2], len(fit) - 1)
        fit = np.zeros(weighted.shape[1])
        fit[chosen] = scipy.optimize.nnls(weighted[:, chosen].toarray(), target)[0]
    return fit, solution, error, dispersion


def _dispersion(left: NDArray[np.float64], fitted: int) -> float:
    return max(1.0, float(left @ left) / max(1, len(left) - fitted))


def _tail(values: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """How probably a candidate that nobody reported has `scores` (laws,) or more, the sum of its cells' values (laws,
    cohorts, bits): of a uniform cell of each cohort."""
    mean = values.mean(axis=2)
    second, third = (((values - mean[:, :, None]) ** power).mean(axis=2).sum(axis=1) for power in (2, 3))
    deviation = np.maximum(np.sqrt(second), 1e-100)
    known = scipy.stats.pearson3.sf((scores - mean.sum(axis=1)) / deviation, third / deviation**3)
    return np.asarray(np.where(second > 0, known, 1.0))


def _adjusted(p_value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Benjamini and Hochberg's adjusted p-values times Storey's share of candidates that nobody reported."""
    nobody = min(1.0, (np.sum(p_value > _NULL_FROM) + 1) / (len(p_value) * (1 - _NULL_FROM)))
    return np.asarray(scipy.stats.false_discovery_control(p_value) * nobody)
