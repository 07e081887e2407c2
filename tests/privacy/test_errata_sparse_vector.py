"""What Kaplan, Mansour and Stemmer (2020) print, shown to fail; ids as in book/errata.md."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

from evolvingdp.core import accounting
from evolvingdp.core.noise import Laplace, MonitorNoise
from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector import privacy
from evolvingdp.sparse_vector.calibration import calibrate, paper_noise, theorem_loss
from evolvingdp.sparse_vector.shifting import planned_monitor
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving


class Preset:
    """Stands for a generator: all noise is `value`."""

    def __init__(self, value):
        self.value = value

    def laplace(self, _, scale, size):
        return np.full(size, self.value)


def test_E_SV_1_theorem_3_2_is_false_for_b_near_1():
    """One query, met by the user alone, one below the threshold: a yes is e^2000 times likelier with the user."""
    inner, delta = 1.00005, 1e-6
    noise = MonitorNoise(inner * math.log(inner), inner)
    promised = theorem_loss(math.log(1 / delta) / inner, delta, 1)
    likely, rare = float(noise.log_sf(0.0)), float(noise.log_sf(1.0))
    assert promised < 500
    assert likely > math.log(0.2)
    assert math.exp(likely) > math.exp(promised + rare) + 3 * delta
    assert likely - rare > 3 * promised
    with pytest.raises(ValueError, match="inner must be > 2"):
        paper_noise(inner)
    allowed = paper_noise(2.001)  # what the proof's two steps ask for
    assert allowed.cap >= 1
    assert 0.5 * math.exp(-allowed.cap / allowed.inner) <= 1 / 4


@pytest.mark.parametrize(("reports", "measured"), [(3, 1.0515), (100, 1.2749), (1000, 1.3854)])
def test_E_SV_2_noise_for_add_remove_fails_under_replacement(reports, measured):
    scale = privacy.smallest_scale(1.0, 1e-6, reports, "add-remove")
    assert privacy.epsilon_of_delta(1e-6, scale, reports, "add-remove") == pytest.approx(1)
    attained = privacy.epsilon_attained(1e-6, Laplace(scale), reports)
    assert attained == pytest.approx(measured, abs=1e-3)
    right = privacy.smallest_scale(1.0, 1e-6, reports)
    assert privacy.epsilon_attained(1e-6, Laplace(right), reports) <= 1


def test_E_SV_3_the_other_direction_is_pure_without_lemma_3_5():
    """One user more makes a yes at most e^lambda times likelier, a no never; asked often, one user less is not pure."""
    noise, reports = MonitorNoise(0.3, 2.0), 2

    cost = {
        (above, counts): float(law(0.5 - counts) - law(0.5))
        for above, law in ((True, noise.log_sf), (False, noise.log_cdf))
        for counts in (False, True)
    }

    def ratios(rounds):
        for answers in product((False, True), repeat=rounds):
            log, tops = 0.0, 0
            for above in answers:
                log += cost[above, tops < reports]
                tops += above
            yield log

    for rounds in (4, 9):
        assert max(ratios(rounds)) <= (reports + 1) / noise.scale
    assert min(ratios(9)) < -1.5 * (reports + 1) / noise.scale
    assert (reports + 1) / calibrate(1.0, 1e-6, reports, method="theorem").scale < 1


def sums_of_rewards(p, q, budget, rounds, first=0):
    """Claim A.2's game with weights 1, chance p of a reward, q of a cost: the law of W from round `first` on."""
    law = np.zeros((budget + 2, rounds + 1))  # costs so far (the last row: budget spent), rewards
    law[0, 0] = 1
    for number in range(rounds):
        new = (1 - p - q) * law
        new[1:] += q * law[:-1]
        new[-1] += (p + q) * law[-1]
        if number >= first:
            new[:-1, 1:] += p * law[:-1, :-1]
        else:
            new[:-1] += p * law[:-1]
        law = new
    return law.sum(axis=0)


def test_E_SV_4_slips_of_claims_a_2_and_a_4():
    # two rounds: the printed sum from i = 1 is the same for every j, and the base case "W_m lies in [0, 1]" is false
    printed, meant = (sums_of_rewards(0.5, 0.125, 0, 2, first) for first in (0, 1))
    assert printed.sum() == pytest.approx(1)
    assert printed[2] == pytest.approx(0.25)
    assert meant[2] == 0
    assert meant[1] == pytest.approx(0.5 - 0.125 * 0.5)
    # the claim needs no p <= 1/2, but that a cost is at least a quarter as likely
    for p, budget in product((0.3, 0.5, 0.6, 0.8), (0, 2)):
        for quarter in (True, False):
            law = sums_of_rewards(p, p / (4 if quarter else 8), budget, 400)
            exceeds = np.maximum(1 - np.cumsum(law), 0)
            holds = exceeds <= np.exp(-np.arange(401) / 5 + 3 * (budget + 1)) + 1e-12
            assert np.all(holds) or not quarter
            if p == 0.8 and budget == 0:
                assert bool(np.all(holds)) is quarter
    # (12): with the expectation in place of the sum of weights the event is smaller, not the same
    for count, chance in ((40, 0.2), (100, 0.1)):
        weights, expected = 0.5 * count, chance * count
        left, right = (binom(count, chance).cdf(2 * max(value, 1.0)) for value in (weights, expected))
        assert left > right


def test_E_SV_5_epochs_are_whole_and_need_room_for_delta():
    target, delta = 1.0, 1e-6

    def least_inner(length, pieces, slack):
        log = math.log(3 * pieces / (delta - slack))
        one = target
        if pieces > 1:
            one = max(accounting.optimal(target, slack, pieces), accounting.advanced(target, slack, pieces))
        return brentq(lambda inner: theorem_loss(log / inner, math.exp(-log), length) - one, 1.0, 1e9, rtol=1e-13)

    def calibrated(reports):
        return calibrate(target, delta, reports, method="epochs", unit="add-remove").noise.inner

    # one epoch is Theorem 3.2 with all of delta; had the composition its half, as from two epochs on, noise would be wanted
    assert calibrated(1) == pytest.approx(least_inner(1, 1, 0.0), rel=1e-9)
    assert calibrated(1) < 0.99 * least_inner(1, 1, delta / 2)
    for reports in (3, 20, 2000):
        lengths = sorted({math.ceil(reports / wanted) for wanted in range(1, min(reports, 400) + 1)})
        whole = min(
            least_inner(length, math.ceil(reports / length), delta / 2 if length < reports else 0.0) for length in lengths
        )
        assert whole * (1 - 1e-9) <= calibrated(reports) <= 1.02 * whole
    few, many = ([calibrate(target, delta, k, method=method).scale for method in ("epochs", "theorem")] for k in (3, 2000))
    assert few[0] == few[1]
    assert many[0] < 0.6 * many[1]
    # as printed, ln(1 / delta) reports an epoch: less than one for k = 3, whose loss is that of one
    inner_epsilon, log = 0.01, math.log(1 / delta)
    assert 3 / log < 1
    assert theorem_loss(inner_epsilon, delta, 3) > 25 * inner_epsilon


def test_E_SV_6_a_threshold_of_one_tau_spends_users_on_light_elements():
    """All noise within tau = 10, k* = 1: six elements of weight 5, then one of weight 3 tau that the same users hold."""
    tau = 10

    def step(monitor, state, users, rng):
        return monitor.step(state, np.isin(np.arange(30), users), np.asarray, rng)

    def heavy_is_found(threshold):
        monitor = ThresholdMonitorEvolving(Laplace(10.0), threshold, 1)
        state = monitor.start(30)
        for group in range(6):
            users = range(5 * group, 5 * group + 5)
            state, _ = step(monitor, state, users, Preset(tau))
        return step(monitor, state, range(30), Preset(-tau if threshold > tau else 0.0))[1]

    assert not heavy_is_found(tau)
    assert heavy_is_found(2 * tau)


def test_E_SV_7_a_user_deleted_one_report_later_breaks_the_bound():
    noise = Laplace(5.0)
    bound = privacy.delta_of_epsilon(1.0, noise.scale, 2)
    assert privacy.delta_attained(1.0, noise, 2, 0.5) <= bound < privacy.delta_attained(1.0, noise, 3, 0.5)
    monitor = ThresholdMonitorEvolving(Laplace(0.01), 0.5, 2)
    state = monitor.start(3)
    for values in ([1, 1, 0], [1, 1, 0], [1, 0, 1]):
        state, release = monitor.step(state, values, np.asarray, stream(0, "noise"))
        assert release
    assert state.counted.tolist() == [3, 2, 1]  # user 0 counts on, and is no part of the third sum
    assert not monitor.step(state, [1, 1, 0], np.asarray, stream(0, "noise"))[1]


def test_E_SV_8_never_weight_zero_needs_the_logarithm_of_the_domain():
    noise, steps, beta = calibrate(1.0, 1e-6, 3).noise, 10**6, 0.05
    thresholds = [noise.isf(beta / (steps * 2**bits)) for bits in (16, 32, 64, 128)]
    assert thresholds == pytest.approx([570, 803, 1268, 2198], abs=0.6)
    without = noise.scale * math.log(steps / beta)
    assert steps * 2**32 * float(noise.sf(without)) == pytest.approx(beta * 2**31)  # 10^8: Laplace noise, beta / 2 a step
    assert steps * 2**32 * float(noise.sf(thresholds[1])) == pytest.approx(beta)
    planned = planned_monitor(calibrate(1.0, 1e-6, 3), steps, 2**32, 1000, beta).monitor.threshold
    assert steps * 2**32 * float(noise.sf(planned)) == pytest.approx(beta / 2)
