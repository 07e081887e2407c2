"""From a target (epsilon, delta) to the noise of ThresholdMonitor, four ways.

| method | source | noise |
|---|---|---|
| theorem | Theorem 3.2 as printed | `MonitorNoise`, b > 2 (E-SV-1) |
| epochs | Theorem 3.8's proof: epochs of counter length K, composed; the best K and composition (E-SV-5) | the same |
| exact | waiting times of randomized responses (`privacy`); optimal for what the proof uses | `core.noise.Laplace` |
| exact, with `moved` | the same for queries that are counted (`moved_queries`), replacement | `core.noise.Gaussian` |

**Guarantee.** (epsilon, delta)-differential privacy of all answers to any number of adaptive queries, for the chosen unit:
"replacement" of one user's whole input (Definition 4.3) or "add-remove". The paper's two are proved for add-remove; for
replacement they are taken at (epsilon / 2, delta / (1 + e^(epsilon / 2))): two steps, through the data without the user
(E-SV-2). They hold for queries in [0, 1]; "exact" pays for what `queries` says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import expit

from evolvingdp.core import accounting, checks
from evolvingdp.core.noise import Gaussian, Laplace, MonitorNoise
from evolvingdp.sparse_vector.moved_queries import smallest_moved_scale
from evolvingdp.sparse_vector.privacy import UNITS, check_privacy, smallest_scale

METHODS = ("theorem", "epochs", "exact")
QUERIES = ("binary", "interval")  # values in {0, 1}, in [0, 1]
SMALLEST_INNER = 2.0  # E-SV-1: the paper's proof uses Pr[v < -Delta] <= 1/4 and Delta >= 1


@checks.plain
@dataclass(frozen=True)
class Calibration:
    """Noise with the promise that it keeps."""

    noise: MonitorNoise | Laplace | Gaussian
    epsilon: float
    delta: float
    reports: int  # k: a user is deleted once its counter has reached it
    method: str  # of METHODS, how the scale was found
    unit: str  # "replacement" of a user or "add-remove"
    queries: str  # "binary", in {0, 1}, or "interval", in [0, 1]
    moved: int | None = None  # m: a user is deleted once it was in so many queries

    @property
    def scale(self) -> float:
        """a, of the outer noise, in users."""
        return self.noise.scale


@checks.plain
def calibrate(
    epsilon: float,
    delta: float,
    reports: int,
    *,
    method: str = "exact",
    unit: str = "replacement",
    queries: str = "binary",
    moved: int | None = None,
) -> Calibration:
    """The least noise that `method` proves (`epsilon`, `delta`)-private when users are deleted after `reports` reports; with
    `moved` normal noise, which is less where a user is in few queries, and a user is deleted after so many of them, too.

    Raises ValueError for what is out of range, and where a method does not cover the size asked for.
    """
    check_privacy(epsilon, delta)
    checks.integer_at_least(1, reports=reports)
    checks.one_of(METHODS, method=method)
    checks.one_of(UNITS, unit=unit)
    checks.one_of(QUERIES, queries=queries)
    if moved is not None:
        if (method, unit, queries) != ("exact", "replacement", "binary"):
            raise ValueError(f"moved must be left out but for exact, replacement and binary, got {moved!r}")
        scale = smallest_moved_scale(epsilon, delta, reports, moved)
        return Calibration(Gaussian(scale), epsilon, delta, reports, method, unit, queries, moved)
    if method == "exact":
        scale = smallest_scale(epsilon, delta, reports + (queries == "interval"), unit=unit)
        return Calibration(Laplace(scale), epsilon, delta, reports, method, unit, queries)
    half = (epsilon, delta) if unit == "add-remove" else (epsilon / 2, delta * float(expit(-epsilon / 2)))
    if half[1] < 1e-300:
        raise ValueError(f"epsilon must be smaller for method={method!r}, got {epsilon!r}: its delta would be {half[1]:.3g}")
    inner = (_theorem if method == "theorem" else _epochs)(*half, reports)
    return Calibration(paper_noise(inner), epsilon, delta, reports, method, unit, queries)


def paper_noise(inner: float) -> MonitorNoise:
    """Line 2 of Algorithm 3: cap Delta = b ln b for `inner` b = ln(1/delta) / epsilon.  Raises ValueError for b <= 2."""
    if not SMALLEST_INNER < inner < math.inf:
        raise ValueError(
            f"inner must be > {SMALLEST_INNER:g}, got {inner!r}: the proof needs it, and near 1 the theorem is false; "
            "a smaller epsilon makes it larger"
        )
    return MonitorNoise(inner * math.log(inner), inner)


def theorem_loss(inner_epsilon: float, inner_delta: float, reports: float) -> float:
    """xi of Theorem 3.2."""
    return 75 * (reports + 1) * inner_epsilon / math.log(1 / inner_delta) + 25 * inner_epsilon


def _theorem(epsilon: float, delta: float, reports: int) -> float:
    """b for which Theorem 3.2, (xi, 3 delta), gives the target."""
    log = math.log(3 / delta)
    return log * (75 * (reports + 1) / log + 25) / epsilon


def _epochs(epsilon: float, delta: float, reports: int) -> float:
    """b for the best epochs: n = ceil(reports / length) pieces, each (xi(length), 3 delta'), composed with half of delta."""
    best, wanted = math.inf, 1
    while wanted <= reports:
        length = math.ceil(reports / wanted)
        pieces = math.ceil(reports / length)
        slack, one = (delta / 2 if pieces > 1 else 0.0), epsilon
        if pieces > 1:
            one = max(accounting.optimal(epsilon, slack, pieces), accounting.advanced(epsilon, slack, pieces))
        best = min(best, _theorem(one, (delta - slack) / pieces, length))
        wanted = math.ceil(1.05 * wanted + 0.5)
    return best
