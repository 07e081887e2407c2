"""From a target (epsilon, delta) to the noise of ThresholdMonitor: five ways to prove the same promise.

`calibrate(epsilon, delta, reports, method=...)`, `reports` being the paper's k:

| method | source | queries |
|---|---|---|
| theorem | Theorem 3.2 as printed | [0, 1] |
| epochs | Theorem 3.8's proof: epochs of counter length K, composed; the best K and composition (E-SV-5) | [0, 1] |
| tight-proof | Lemma 3.7's proof, with one event in place of E_3 and its constants evaluated (chapter) | [0, 1] |
| renyi | the supermartingale of the chapter, over Renyi orders | [0, 1] |
| exact | waiting times of randomized responses (chapter); optimal for what the proof uses | [0, 1] |

**Guarantee.** (epsilon, delta)-differential privacy of all answers to any number of adaptive queries, for the chosen unit:
"replacement" of one user's whole input (Definition 4.3) or "add-remove". The first three are proved for add-remove; for
replacement they are taken at (epsilon / 2, delta / (1 + e^(epsilon / 2))): two steps, through the data without the user
(E-SV-2).

The inner noise b and the cap b ln b are the paper's in the first three methods, which need b > 2 (E-SV-1). In the other two
only scale = 10 cap matters to the proof; b solves b ln b = cap, as in print.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit

from evolvingdp.core import accounting, checks
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.privacy import UNITS, check_privacy, smallest_renyi_scale, smallest_scale

METHODS = ("theorem", "epochs", "tight-proof", "renyi", "exact")
QUERIES = ("binary", "interval")  # values in {0, 1}, in [0, 1]
SMALLEST_INNER = 2.0  # E-SV-1: the paper's proof uses Pr[v < -Delta] <= 1/4 and Delta >= 1


@checks.plain
@dataclass(frozen=True)
class Calibration:
    """Noise with the promise that it keeps."""

    noise: MonitorNoise
    epsilon: float
    delta: float
    reports: int  # k: a user is deleted once its counter has reached it
    method: str  # of METHODS, how the scale was found
    unit: str  # "replacement" of a user or "add-remove"
    queries: str  # "binary", in {0, 1}, or "interval", in [0, 1]

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
) -> Calibration:
    """The least noise that `method` proves (`epsilon`, `delta`)-private when users are deleted after `reports` reports.

    Raises ValueError for what is out of range, and where a method does not cover the size asked for.
    """
    check_privacy(epsilon, delta)
    checks.integer_at_least(1, reports=reports)
    checks.one_of(METHODS, method=method)
    checks.one_of(UNITS, unit=unit)
    checks.one_of(QUERIES, queries=queries)
    if method in ("exact", "renyi"):
        smallest = smallest_scale if method == "exact" else smallest_renyi_scale
        noise = _with_scale(smallest(epsilon, delta, reports + (queries == "interval"), unit=unit))
    else:
        half = (epsilon, delta) if unit == "add-remove" else (epsilon / 2, delta * float(expit(-epsilon / 2)))
        if half[1] < 1e-300:
            raise ValueError(
                f"epsilon must be smaller for method={method!r}, got {epsilon!r}: its delta would be {half[1]:.3g}"
            )
        inner = {"theorem": _theorem, "epochs": _epochs, "tight-proof": _tight_proof}[method](*half, reports)
        noise = paper_noise(inner)
    return Calibration(noise, epsilon, delta, reports, method, unit, queries)


def paper_noise(inner: float) -> MonitorNoise:
    """Line 2 of Algorithm 3: cap Delta = b ln b for `inner` b = ln(1/delta) / epsilon.  Raises ValueError for b <= 2."""
    if not SMALLEST_INNER < inner < math.inf:
        raise ValueError(
            f"inner must be > {SMALLEST_INNER:g}, got {inner!r}: the proof needs it, and near 1 the theorem is false; "
            "a smaller epsilon makes it larger"
        )
    return MonitorNoise(inner * math.log(inner), inner)


def _with_scale(scale: float) -> MonitorNoise:
    cap = scale / 10
    return MonitorNoise(cap, float(brentq(lambda inner: inner * math.log(inner) - cap, 1.0, 3.0 + cap, xtol=1e-14)))


def theorem_loss(inner_epsilon: float, inner_delta: float, reports: float) -> float:
    """xi of Theorem 3.2."""
    return 75 * (reports + 1) * inner_epsilon / math.log(1 / inner_delta) + 25 * inner_epsilon


def _theorem(epsilon: float, delta: float, reports: int) -> float:
    """b for which Theorem 3.2, (xi, 3 delta), gives the target."""
    log = math.log(3 / delta)
    return log / (epsilon / (75 * (reports + 1) / log + 25))


def _epochs(epsilon: float, delta: float, reports: int) -> float:
    """b for the best epochs: n = ceil(reports / length) pieces, each (xi(length), 3 delta'), composed with half of delta."""
    best, wanted = math.inf, 1
    while wanted <= reports:
        length = math.ceil(reports / wanted)
        pieces = math.ceil(reports / length)
        slack = delta / 2 if pieces > 1 else 0.0
        log = math.log(3 * pieces / (delta - slack))
        one = (
            epsilon
            if pieces == 1
            else max(accounting.optimal(epsilon, slack, pieces), accounting.advanced(epsilon, slack, pieces))
        )
        best = min(best, log * (75 * (length + 1) / log + 25) / one)
        wanted = math.ceil(1.05 * wanted + 0.5)
    return best


def _tight_proof(epsilon: float, delta: float, reports: int) -> float:
    """b for which `tight_loss` is `epsilon`."""

    def excess(log_inner: float) -> float:
        return tight_loss(paper_noise(math.exp(log_inner)), delta, reports) - epsilon

    low, high = math.log(SMALLEST_INNER) + 1e-9, math.log(4 * _theorem(epsilon, delta, reports))
    if excess(low) <= 0:
        return math.exp(low)
    return math.exp(float(brentq(excess, low, high, xtol=1e-12)))


def tight_loss(noise: MonitorNoise, delta: float, reports: int) -> float:
    """epsilon at `delta` by Lemma 3.7, for queries in [0, 1] under add-remove; proof on the chapter's page.

    While the user counts, an almost-top in [t - cap, t) costs f / inner and a special one `special`. With
    s = inf Pr[top] / Pr[w reaches t - cap], the process theta * cost - phi * (reported value) has an exponential that is a
    supermartingale for phi as below; at most reports + 1 is reported.
    """
    a, b, d = noise.scale, noise.inner, noise.cap
    share = 2 * noise.tail_constant * math.exp(-d / a)
    special = -math.log1p(-math.exp((1 - d) / b) / 2)

    def loss(log_theta: float) -> float:
        theta = math.exp(log_theta)
        growth = (1 - share) / share * math.expm1(min(theta / b, 700.0))
        growth += math.expm1(1 / a) / share * math.expm1(min(theta * special, 700.0))
        if growth >= 1:
            return math.inf
        return (-math.log1p(-growth) * (reports + 1) + math.log(1 / delta)) / theta

    largest = math.log(b) + 1  # growth < 1 needs e^(theta / b) below about 1 / (1 - share)
    while math.isinf(loss(largest)):
        largest -= 0.05
    found = minimize_scalar(loss, bounds=(largest - 12, largest), method="bounded", options={"xatol": 1e-9})
    return max(float(found.fun), (reports + 1) / a)  # the other direction is pure (E-SV-3)
