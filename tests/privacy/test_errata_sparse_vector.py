"""What Kaplan, Mansour and Stemmer (2020) print, shown to fail; ids as in book/errata.md."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector import privacy
from evolvingdp.sparse_vector.adversary import delta_attained, epsilon_attained
from evolvingdp.sparse_vector.calibration import calibrate, paper_noise, theorem_loss
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.shifting import plan
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving


class Preset:
    """Stands for a generator: the outer noise is `value`, the inner one 0."""

    def __init__(self, value):
        self.value = value

    def laplace(self, _, scale):
        return self.value if scale else 0.0


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
    attained = epsilon_attained(1e-6, MonitorNoise(scale / 10, 0.0), reports)
    assert attained == pytest.approx(measured, abs=1e-3)
    right = privacy.smallest_scale(1.0, 1e-6, reports)
    assert epsilon_attained(1e-6, MonitorNoise(right / 10, 0.0), reports) <= 1


def test_E_SV_3_the_other_direction_is_pure_without_lemma_3_5():
    """One user more makes a yes at most e^lambda times likelier, a no never; asked often, one user less is not pure."""
    noise, reports = MonitorNoise(0.3, 2.0), 2

    def ratios(rounds):
        for answers in product((False, True), repeat=rounds):
            log, tops = 0.0, 0
            for above in answers:
                law = noise.log_sf if above else noise.log_cdf
                log += float(law(0.5 - (tops < reports)) - law(0.5))
                tops += above
            yield log

    for rounds in (4, 9):
        assert max(ratios(rounds)) <= (reports + 1) * noise.loss
    assert min(ratios(9)) < -1.5 * (reports + 1) * noise.loss
    assert (reports + 1) / calibrate(1.0, 1e-6, reports, method="theorem").scale < 1


def test_E_SV_4_slips_of_claims_a_2_and_a_4():
    # W_j as printed sums from i = 1 for every j: the base case "W_m lies in [0, 1]" is false already for two rounds of X = 1
    printed, meant = (sum(gamma for gamma in (1.0, 1.0)[first:]) for first in (0, 1))
    assert printed > 1 >= meant
    # the induction needs no p <= 1/2
    for p, gamma in product(np.linspace(0, 0.8, 41), np.linspace(0, 1, 41)):
        q = p / 4
        assert p + q <= 1
        assert 1 + p * math.expm1(gamma / 5) + q * math.expm1(-3 * gamma) <= 1 + 1e-12
    # (12): a smaller expectation in the maximum makes the event smaller
    draws = stream(0, "special").binomial(100, 0.1, size=20_000)  # expected 10, almost-tops weigh 20, the constant is 5
    assert np.mean(draws <= 2 * max(20, 5)) > np.mean(draws <= 2 * max(draws.mean(), 5))


def test_E_SV_5_epochs_are_whole_and_need_room_for_delta():
    log = math.log(1e6)
    assert 3 / log < 1  # less than one epoch, as printed, for k = 3
    assert math.ceil(20 / log) > 20 / log > 1
    assert (
        theorem_loss(0.01, 1e-6, 3) > 25 * 0.01 > 0.01 * math.sqrt(3)
    )  # below k = ln(1/delta) it is not O(sqrt(k) epsilon)
    one_epoch = 3 * 1e-6
    assert (
        3 * 1 * 1e-6 - one_epoch == 0
    )  # k = 1: nothing of 3 k delta is left for delta-hat, and Theorem B.1 needs ln(1 / 0)
    few, many = ([calibrate(1.0, 1e-6, k, method=method).scale for method in ("epochs", "theorem")] for k in (3, 2000))
    assert few[0] == few[1]
    assert many[0] < 0.6 * many[1]


def test_E_SV_6_a_threshold_of_one_tau_spends_users_on_light_elements():
    """All noise within tau = 10, k* = 1: six elements of weight 5, then one of weight 3 tau that the same users hold."""
    tau = 10

    def heavy_is_found(threshold):
        monitor = ThresholdMonitorEvolving(MonitorNoise(1.0, 0.0), threshold, 1)
        state = monitor.start(30)
        for group in range(6):
            users = range(5 * group, 5 * group + 5)
            state, _ = monitor.step_users(state, users, Preset(tau))
        return monitor.step_users(state, range(30), Preset(-tau if threshold > tau else 0.0))[1].above

    assert not heavy_is_found(tau)
    assert heavy_is_found(2 * tau)


def test_E_SV_7_a_user_deleted_one_report_later_breaks_the_bound():
    noise = MonitorNoise(0.5, 0.0)
    bound = privacy.delta_of_epsilon(1.0, noise.scale, 2)
    assert delta_attained(1.0, noise, 2, 0.5) <= bound < delta_attained(1.0, noise, 3, 0.5)
    monitor = ThresholdMonitorEvolving(MonitorNoise(1e-3, 0.0), 0.5, 2)
    state = monitor.start(3)
    for users in ((0, 1), (0, 1), (0, 2)):
        state, release = monitor.step_users(state, users, stream(0, "noise"))
        assert release.above
    assert state.counted.tolist() == [3, 2, 1]  # user 0 counts on, and is no part of the third sum
    assert not monitor.step_users(state, (0, 1), stream(0, "noise"))[1].above


def test_E_SV_8_never_weight_zero_needs_the_logarithm_of_the_domain():
    noise, steps, beta = calibrate(1.0, 1e-6, 3).noise, 10**6, 0.05
    thresholds = [noise.isf(beta / (steps * 2**bits)) for bits in (16, 32, 64, 128)]
    assert thresholds == pytest.approx([570, 803, 1268, 2198], abs=0.6)
    without = noise.scale * math.log(steps / beta)
    assert steps * 2**32 * float(noise.sf(without)) == pytest.approx(1.06e8, rel=0.01)
    assert steps * 2**32 * float(noise.sf(thresholds[1])) == pytest.approx(beta)
    planned = plan(calibrate(1.0, 1e-6, 3), steps, 2**32, 1000, beta).monitor.threshold
    assert steps * 2**32 * float(noise.sf(planned)) == pytest.approx(beta / 2)
