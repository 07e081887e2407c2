"""After the paper: target charging, and the loss as a distribution that composes."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import nbinom

from evolvingdp.core import accounting
from evolvingdp.notebooks.sparse_vector.threshold_monitor import charging_delta
from evolvingdp.sparse_vector import privacy


def test_charged_calls_cost_at_least_the_coins_and_little_more_for_many_hits():
    """An explicit adversary: randomized responses whose rarer answer is the target, until all hits are used up."""

    def spare(loss, hits, epsilon):
        return charging_delta(epsilon or 1e-9, loss, hits) - 1e-6

    for hits, most in ((1, 1.25), (10, 1.12), (100, 1.06)):
        scale = privacy.smallest_scale(1.0, 1e-6, hits, "add-remove")
        lost = privacy.largest_epsilon(partial(spare, 1 / scale, hits))
        assert 1 < lost < most


def test_charging_is_the_best_cut_of_the_number_of_calls():
    hit = 1 / (1 + math.exp(0.3))
    every = [accounting.delta_of_reports(0.3, 1.0, n) + float(nbinom.sf(n - 2, 2, hit)) for n in range(2, 80)]
    assert charging_delta(1.0, 0.3, 2) == pytest.approx(min(every))
    with pytest.raises(privacy.TooLongError, match="hit_chance must be larger, or hits smaller"):
        charging_delta(1.0, 30.0, 1)


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
