"""After the paper: a value with each yes, target charging, and the loss as a distribution that composes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import nbinom

from evolvingdp.audit.exact import enumerated
from evolvingdp.audit.exact.laws import deltas
from evolvingdp.core import accounting
from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector import privacy
from evolvingdp.sparse_vector.integer_noise import IntegerNoise
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.successors.target_charging import TargetCharging
from evolvingdp.sparse_vector.successors.values import NO, corrected, selection_bias, step_with_value
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving


def test_a_value_comes_with_the_answer_of_the_same_noise():
    monitor = ThresholdMonitorEvolving(MonitorNoise(0.3, 0.0), 4.0, 2)
    state = twin = monitor.start(9)
    one, other = stream(0, "noise"), stream(0, "noise")
    seen = []
    for values in stream(0, "values").integers(0, 2, size=(40, 9)):
        active = int((values * state.active).sum())
        state, release = step_with_value(monitor, state, values, lambda data: data, one)
        twin, plain = monitor.step(twin, values, lambda data: data, other)
        assert release.above == plain.above
        assert release.value >= 4 if release.above else release is NO
        seen += [release.value - active] if release.above else []
    assert len(seen) > 5
    assert np.array_equal(state.counted, twin.counted)
    assert len(set(seen)) == len(seen)
    with pytest.raises(ValueError, match="queries must be 'binary' for a value with each yes, got 'interval'"):
        step_with_value(ThresholdMonitorEvolving(MonitorNoise(0.3, 0.0), 4.0, 2, "interval"), twin, [0.0] * 9, list, one)


@pytest.mark.parametrize("scale", [1.5, 4.0])
def test_a_value_with_each_yes_is_free(scale):
    """Every transcript of two queries, with values, at sums around the threshold: never more than the bound without them."""
    monitor = ThresholdMonitorEvolving(IntegerNoise(scale), 12.0, 1)
    for above in (-1, 2):
        for kinds in ((0, 0), (0, 1)):
            laws = enumerated.value_laws(monitor, 12 + above, kinds, 40)
            assert laws.sum(axis=1) == pytest.approx(1)
            for epsilon in (0.1, 0.5, 1.0):
                assert deltas(laws, [epsilon])[0] <= privacy.delta_of_epsilon(epsilon, monitor.noise.scale, 1) + 1e-12
        absent, present = enumerated.value_laws(monitor, 12 + above, (1, 1), 40)
        assert (
            np.maximum(present - math.exp(monitor.noise.loss) * absent, 0).sum() < 1e-12
        )  # one report: this way it is pure


def test_the_bias_of_a_value_is_that_of_noise_that_said_yes():
    noise = stream(0, "bias").laplace(0, 3.0, 400_000)
    for above in (-2.0, 0.0, 1.0, 6.0, 15.0):
        heard = noise[noise >= -above]
        assert heard.mean() == pytest.approx(selection_bias(above, 3.0), abs=0.05)
    for above in (0.5, 4.0, 20.0):
        assert corrected(above + selection_bias(above, 3.0), 0.0, 3.0) == pytest.approx(above)
    assert corrected(12.0, 10.0, 3.0) == 10.0
    with pytest.raises(ValueError, match=r"value must be >= threshold = 10\.0, got nan"):
        corrected(math.nan, 10.0, 3.0)


def test_charged_calls_cost_at_least_the_coins_and_little_more_for_many_hits():
    """An explicit adversary: randomized responses whose rarer answer is the target, until all hits are used up."""
    for hits, most in ((1, 1.25), (10, 1.12), (100, 1.06)):
        scale = privacy.smallest_scale(1.0, 1e-6, hits, "add-remove")
        lost = TargetCharging.comparisons(1 / scale, hits).epsilon_of_delta(1e-6)
        assert 1 < lost < most


def test_charging_is_the_best_cut_of_the_number_of_calls():
    made = TargetCharging(0.3, 2, 0.4)
    every = [accounting.delta_of_reports(0.3, 1.0, n) + float(nbinom.sf(n - 2, 2, 0.4)) for n in range(2, 80)]
    assert made.delta_of_epsilon(1.0) == pytest.approx(min(every))
    assert made.delta_of_epsilon(made.epsilon_of_delta(1e-4)) == pytest.approx(1e-4)


def test_charging_halts_after_its_hits_and_lets_the_rest_pass():
    method = TargetCharging(0.1, 2, 0.3)
    left, rng = method.start(), stream(0, "hits")
    for output, after in ((3, 2), (8, 1), (2, 1), (9, 0)):
        left, shown = method.step(left, lambda _, output=output: output, lambda value: value > 5, rng)
        assert (left, shown) == (after, output)
    with pytest.raises(ValueError, match="hits must be larger to go on: it has halted after 2"):
        method.step(left, lambda _: 0, bool, rng)
    with pytest.raises(privacy.TooLongError, match="hit_chance must be larger, or hits smaller"):
        TargetCharging(0.1, 1, 1e-9).delta_of_epsilon(1.0)
    with pytest.raises(ValueError, match=r"hit_chance must lie in \(0, 1\), got 0"):
        TargetCharging(0.1, 1, 0)


@pytest.mark.parametrize("unit", privacy.UNITS)
def test_the_loss_is_a_distribution_that_dp_accounting_composes(unit):
    """Alone, and two monitors together, against the convolution of the losses."""
    scale, reports = 6.0, 2
    for losses, law in privacy.loss_distributions(scale, reports, unit):
        assert float(law @ np.exp(-losses)) == pytest.approx(1)  # the other world's probabilities
        steps = np.round(losses * scale).astype(int)
        upper = dict(zip(steps.tolist(), np.log(law).tolist(), strict=True))
        lower = {step: log - step / scale for step, log in upper.items()}
        theirs = pld.from_two_probability_mass_functions(lower, upper, value_discretization_interval=1e-4)
        for epsilon in (0.5, 2.0):
            assert theirs.get_delta_for_epsilon(epsilon) == pytest.approx(
                max(
                    privacy.excess_mass(epsilon, losses, law), theirs.get_delta_for_epsilon(epsilon) * (unit == "add-remove")
                ),
                rel=2e-3,
            )
        twice = np.convolve(law, law)
        both = (2 * steps[0] + np.arange(len(twice))) / scale
        composed = theirs.self_compose(2).get_delta_for_epsilon(2.0)
        assert composed == pytest.approx(privacy.excess_mass(2.0, both, twice), rel=2e-3)
