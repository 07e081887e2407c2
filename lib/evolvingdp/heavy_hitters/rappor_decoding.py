"""Which candidate words the reported bits of RAPPOR show, how often, and how sure that is.

The reported bits of a cohort are, on average, a linear function of how often each word was reported. The **estimate** is a
non-negative least-squares fit of the candidates to all bits of all cohorts; where there are more candidates than equations
can tell apart, a non-negative lasso. Both push noise of one word onto others, so intervals come from an
**unbiased** estimate with a standard error of its own: the unconstrained weighted least-squares fit or, in the wide case,
the lasso's fit of a word plus what its bits have left over (the debiased lasso, whose error is known where the candidates'
bits overlap little and few of them are frequent). Words that nobody thought of are in the residuals; their average is a
column of the fit, their variance scales the standard errors.

**Error control.** The list aims at an expected share of at most `false_discovery_rate` words that nobody reported: Benjamini
and Hochberg's step-up with Storey's estimate of how many candidates nobody reported. A frequent word that nobody thought of
makes the errors of all others skewed, since few share a cell with it and those by a lot; so a p-value does not compare the
unbiased estimate with its standard error. It compares a candidate's score, the sum in its cells of what the *other*
candidates leave (cut at `_CUT` robust deviations, or one stranger would hide the rest), with the law of that score over
the cells of a candidate that nobody reported (`rappor_null`), which needs no assumption on noise or strangers.  The p-values
are exact but for the saddlepoint's error. **Refused in the wide case**: which candidates the lasso fits depends on their
hashes, and beside a frequent stranger up to a third of such a list was false; there are no p-values then. Intervals are
normal and, around a heavy stranger, right on average over words only. Candidates that always set the same bits cannot be
told apart: their standard errors are huge and they are not listed.

**Privacy.** Post-processing of the reports: it costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import optimize, sparse, stats

from evolvingdp.heavy_hitters.rappor import BitCounts, Rappor, RapporProtocol
from evolvingdp.heavy_hitters.rappor_null import tail

WIDE = 0.8  # more candidates than this share of the equations: the lasso
_NULL_FROM = 0.8  # p-values above are taken to be those of words that nobody reported
_ROUNDS = 3  # of reweighting
_LOST = 1e-6  # how far the generalized inverse may be from an inverse
_NOT_TOLD_APART = 1e3  # a standard error, as a multiple of all reports
_CUT = 3.0  # robust standard deviations
_PRIOR_REPORTS = 100  # that a bit's share of ones is drawn to the mean by, in the weights of the p-values
_UNPENALIZED = 1e4  # a column scaled up by this pays this much less


@dataclass(frozen=True, eq=False)
class Decoded:
    """`words`: a row per candidate in the order asked, all in reports: estimate (non-negative), unbiased, standard_error,
    low and high (95%), p_value, adjusted_p_value (listed at a false-discovery rate from there on); no p-values, nan, in the
    wide case."""

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
    target = (shown - settings.report_one(0)) / settings.gain
    design = _design(protocol, candidates, used)
    wide = len(candidates) > WIDE * len(target)
    share = np.full(len(target), float(np.clip(shown.mean(), 0.01, 0.99)))
    for _ in range(_ROUNDS):
        weight = np.sqrt(reports / (share * (1 - share))) * settings.gain
        weighted = sparse.diags_array(weight) @ design
        fit = (_lasso if wide else _non_negative)(weighted, target * weight)
        share = np.clip(settings.report_one(0) + settings.gain * (design @ fit), 1e-9, 1 - 1e-9)
    unbiased, error, dispersion = (_debiased if wide else _unconstrained)(weighted, target * weight, fit)
    # the fit's own weights lean on a candidate's cells; these know no candidate
    smooth = (shown * reports + _PRIOR_REPORTS * share.mean()) / (reports + _PRIOR_REPORTS)
    weight = np.sqrt(reports / (smooth * (1 - smooth))) * settings.gain
    p_value = np.full(len(candidates), np.nan) if wide else _p_values(settings, design, weight, target * weight)
    words = pd.DataFrame(
        {
            "estimate": fit[:-1] * total,
            "unbiased": unbiased * total,
            "standard_error": error * total,
            "low": (unbiased - 1.96 * error) * total,
            "high": (unbiased + 1.96 * error) * total,
            "p_value": p_value,
            "adjusted_p_value": p_value if wide else _adjusted(p_value),
        }
    )
    return Decoded(words, dispersion, len(target))


def _design(protocol: RapporProtocol, candidates: NDArray[np.uint64], cohorts: NDArray[np.int64]) -> sparse.csc_array:
    """(cohorts * bits, candidates + 1): whether a candidate sets a bit; the last column is a word that nobody thought of."""
    settings = protocol.settings
    rows, columns = [], []
    for place, cohort in enumerate(cohorts):
        cells = protocol.cells(candidates, cohort)
        rows.append((place * settings.n_bits + cells).ravel())
        columns.append(np.broadcast_to(np.arange(len(candidates)), cells.shape).ravel())
    row, column = np.concatenate(rows).astype(np.int32), np.concatenate(columns).astype(np.int32)  # as scikit-learn asks
    shape = (len(cohorts) * settings.n_bits, len(candidates))
    known = sparse.coo_array((np.ones(len(row)), (row, column)), shape=shape).tocsc()
    known.data[:] = 1.0  # two hash functions may set one bit
    stranger = 1 - (1 - 1 / settings.n_bits) ** settings.n_hashes
    return sparse.csc_array(sparse.hstack([known, np.full((shape[0], 1), stranger)]))


def _non_negative(weighted: sparse.csc_array, target: NDArray[np.float64]) -> NDArray[np.float64]:
    solution, _ = optimize.nnls(weighted.toarray(), target)
    return np.asarray(solution)


def _unconstrained(
    weighted: sparse.csc_array, target: NDArray[np.float64], fit: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Least squares with any sign, its standard errors, and the residual variance; without the last column."""
    inverse, lost = _inverse(weighted)
    solution = inverse @ (weighted.T @ target)
    left = target - weighted @ solution
    dispersion = max(1.0, float(left @ left) / max(1, len(left) - len(solution)))
    error = np.sqrt(dispersion * np.diag(inverse))
    error[lost] = np.sqrt(dispersion) * _NOT_TOLD_APART  # a combination of candidates that no bit shows
    return solution[:-1], error[:-1], dispersion


def _inverse(weighted: sparse.csc_array) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The generalized inverse of the normal equations, and which columns it cannot tell from others."""
    products = (weighted.T @ weighted).toarray()
    inverse = np.linalg.pinv(products, hermitian=True)
    return inverse, np.abs(inverse @ products - np.eye(len(inverse))).max(axis=1) > _LOST


def _p_values(
    settings: Rappor, design: sparse.csc_array, weight: NDArray[np.float64], target: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Each candidate against what least squares on the others leaves: values that do not know its hashes."""
    weighted = sparse.diags_array(weight) @ design
    inverse, lost = _inverse(weighted)
    solution = inverse @ (weighted.T @ target)
    cells = (len(target) // settings.n_bits, settings.n_bits)
    without = target - weighted @ solution + (weighted @ (inverse * (solution / np.diag(inverse))))[:, :-1].T
    each = weight * _cut(without)
    scores = np.asarray((each * design[:, :-1].T.toarray()).sum(axis=1), dtype=np.float64)
    shown = tail(each.reshape(-1, *cells), settings.n_hashes, scores[:, None])[:, 0]
    return np.asarray(np.where(lost[:-1], 1.0, shown))


def _cut(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """`values` cut at so many robust standard deviations of their row."""
    bound = _CUT * np.median(np.abs(values), axis=-1, keepdims=True) / float(stats.norm.isf(0.25))
    return np.asarray(np.clip(values, -bound, bound))


def _debiased(
    weighted: sparse.csc_array, target: NDArray[np.float64], fit: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """The lasso's fit plus what is left in each candidate's bits, its standard errors, and the residual variance."""
    left = target - weighted @ fit
    dispersion = max(1.0, float(left @ left) / max(1, len(left) - int(np.count_nonzero(fit))))
    squares = np.asarray(weighted.multiply(weighted).sum(axis=0)).ravel()
    return (fit + (weighted.T @ left) / squares)[:-1], np.sqrt(dispersion / squares)[:-1], dispersion


def _lasso(weighted: sparse.csc_array, target: NDArray[np.float64]) -> NDArray[np.float64]:
    """The penalty is what pure noise of variance 1 reaches in the most favourable column; the last column has none."""
    from sklearn.linear_model import Lasso

    equations, columns = weighted.shape
    norm = np.sqrt(np.median(np.asarray(weighted.multiply(weighted).sum(axis=0)).ravel()))
    penalty = norm * np.sqrt(2 * np.log(columns)) / equations
    scale = np.ones(columns)
    scale[-1] = _UNPENALIZED
    lasso = Lasso(alpha=penalty, positive=True, fit_intercept=False, max_iter=5000)
    return np.asarray(lasso.fit((weighted @ sparse.diags_array(scale)).tocsc(), target).coef_ * scale)


def _adjusted(p_value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Benjamini and Hochberg's adjusted p-values times Storey's share of candidates that nobody reported."""
    nobody = min(1.0, (np.sum(p_value > _NULL_FROM) + 1) / (len(p_value) * (1 - _NULL_FROM)))
    return np.asarray(stats.false_discovery_control(p_value) * nobody)
