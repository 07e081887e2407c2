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
from functools import lru_cache

from scipy.special import expit

from evolvingdp.core import accounting, checks
from evolvingdp.core.noise import DiscreteLaplace, Gaussian, GaussianNoise, IntegerNoise, Laplace, Law, MonitorNoise
from evolvingdp.sparse_vector.moved_queries import smallest_delta, smallest_moved_scale
from evolvingdp.sparse_vector.privacy import UNITS, check_privacy, delta_of_epsilon, smallest_scale

METHODS = ("theorem", "epochs", "exact")
QUERIES = ("binary", "interval")  # values in {0, 1}, in [0, 1]
SMALLEST_INNER = 2.0  # E-SV-1: the paper's proof uses Pr[v < -Delta] <= 1/4 and Delta >= 1


@checks.plain
@dataclass(frozen=True)
class Calibration:
    """Noise with the promise that it keeps; raises ValueError for noise that does not."""

    noise: MonitorNoise | Laplace | DiscreteLaplace | Gaussian
    epsilon: float
    delta: float
    reports: int  # k: a user is deleted once its counter has reached it
    method: str  # of METHODS, how the scale was found
    unit: str  # "replacement" of a user or "add-remove"
    queries: str  # "binary", in {0, 1}, or "interval", in [0, 1]
    moved: int | None = None  # m: a user is deleted once it was in so many queries

    def __post_init__(self) -> None:
        least = _least(self.epsilon, self.delta, self.reports, self.unit, self.queries, self.moved)
        paid = (Gaussian,) if self.moved is not None else (MonitorNoise, Laplace, DiscreteLaplace)  # no law that extends one
        if type(self.noise) not in paid or not self.noise.scale >= (1 - 1e-12) * least:
            raise ValueError(
                f"noise must have a scale of at least {least!r} and keep the promise ({self.epsilon:g}, {self.delta:g}) for "
                f"{self.reports} reports, {self.moved} moved queries, got {self.noise!r}"
            )

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
    if moved is not None and method != "exact":
        raise ValueError(f"moved must be left out but for exact, replacement and binary, got {moved!r}")
    if method == "exact":
        law = Laplace if moved is None else Gaussian
        noise = law(_least(epsilon, delta, reports, unit, queries, moved))
        return Calibration(noise, epsilon, delta, reports, method, unit, queries, moved)
    checks.one_of(UNITS, unit=unit)
    checks.one_of(QUERIES, queries=queries)
    half = (epsilon, delta) if unit == "add-remove" else (epsilon / 2, delta * float(expit(-epsilon / 2)))
    if half[1] < 1e-300:
        raise ValueError(f"epsilon must be smaller for method={method!r}, got {epsilon!r}: its delta would be {half[1]:.3g}")
    inner = (_theorem if method == "theorem" else _epochs)(*half, reports)
    return Calibration(paper_noise(inner), epsilon, delta, reports, method, unit, queries)


@lru_cache(maxsize=4096)
def _least(epsilon: float, delta: float, reports: int, unit: str, queries: str, moved: int | None) -> float:
    """The least scale that is proved."""
    checks.one_of(UNITS, unit=unit)
    checks.one_of(QUERIES, queries=queries)
    if moved is None:
        return smallest_scale(epsilon, delta, reports + (queries == "interval"), unit=unit)
    if (unit, queries) != ("replacement", "binary"):
        raise ValueError(f"moved must be left out but for exact, replacement and binary, got {moved!r}")
    return smallest_moved_scale(epsilon, delta, reports, moved)


def delta_of_noise(
    noise: Law, epsilon: float, reports: int, queries: str = "binary", moved: int | None = None, unit: str = "replacement"
) -> float:
    """The delta at `epsilon` of all answers together of a monitor with this noise, an upper bound, from the noise itself."""
    checks.positive(epsilon=epsilon)
    checks.one_of(UNITS, unit=unit)
    if moved is None:
        return delta_of_epsilon(epsilon, noise.scale, reports + (queries == "interval"), unit)
    if unit != "replacement":
        raise ValueError(f"unit must be replacement where moved queries are counted, got {unit!r}")
    if isinstance(noise, IntegerNoise):
        one_by_one = 2 * moved / noise.scale <= (1 + 2**-50) * epsilon  # to rounding
        answers = 0.0 if one_by_one else delta_of_epsilon(epsilon, noise.scale, min(reports, moved))
        return min(1.0, answers + 2 * moved * noise.revealed)
    alone = moved * noise.revealed if isinstance(noise, GaussianNoise) else 0.0
    return min(1.0, smallest_delta(epsilon, noise.scale, reports, moved) + alone)


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
