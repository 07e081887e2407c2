"""The checks themselves: right on laws known in closed form, silent on what is private, and loud on each mutant."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest, nchypergeom_fisher

from evolvingdp.audit.empirical import auditor, failures, limits
from evolvingdp.audit.exact import integers
from evolvingdp.audit.exact import laws as exact
from evolvingdp.core import accounting, noise
from evolvingdp.core.noise import DiscreteLaplace, Gaussian, Laplace
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from support import ALPHA


def composed(epsilon, n_reports):
    return [exact.product([SignFlip(epsilon).probabilities(bit)] * n_reports) for bit in (-1, 1)]


@pytest.mark.parametrize("n_reports", [1, 2, 5])
def test_exact_checks_agree_with_the_closed_form_of_composed_reports(n_reports):
    laws = composed(0.3, n_reports)
    assert exact.worst_loss(laws) == pytest.approx(0.3 * n_reports)
    for epsilon in (0.1, 0.3, 0.8):
        closed = accounting.delta_of_reports(0.3, epsilon, n_reports)
        rounded = n_reports * (1 + math.exp(epsilon)) * 2.0**-53  # SignFlip's chances: multiples of 2^-53
        assert closed - rounded - 1e-15 <= exact.worst_delta(laws, epsilon) <= closed + 1e-15
        if closed:
            assert exact.epsilon_at(laws, closed) == pytest.approx(epsilon)
    assert exact.epsilon_at(laws, 0.0) == exact.worst_loss(laws)


def test_an_output_that_only_one_input_shows_costs_everything():
    laws = [{"a": 0.5, "b": 0.5}, {"a": 1.0}]
    assert exact.worst_loss(laws) == math.inf
    assert exact.worst_delta(laws, 50.0) == 0.5
    assert exact.epsilon_at(laws, 0.4) == math.inf
    assert exact.epsilon_at(laws, 0.6) == 0.0


def test_what_is_no_law_is_refused():
    with pytest.raises(ValueError, match=r"sum to 1, got a sum of 0\.9"):
        exact.worst_loss([{0: 0.5, 1: 0.4}, {0: 1.0}])


def test_the_empirical_bound_exceeds_the_truth_as_rarely_as_it_says():
    """The event is chosen on other runs than those that decide: chosen on the same, this fails."""
    truth, audits = 0.5, 300
    flip = lambda bit, rng: int(SignFlip(truth).randomize(np.array([bit]), rng)[0])  # noqa: E731
    wrong = sum(
        auditor.audit(flip, (-1, 1), stream(0, "audit", n), runs=60, confidence=0.9).refutes(truth) for n in range(audits)
    )
    assert binomtest(wrong, audits, 0.1, alternative="greater").pvalue > ALPHA


def test_a_bound_on_identical_laws_with_many_outputs_is_not_fooled_by_its_own_choice():
    """40 outputs, equally likely under both inputs: the best event on 200 runs looks like a leak, and is none."""
    noise = lambda value, rng: int(rng.integers(0, 40))  # noqa: E731
    bounds = [auditor.audit(noise, (0, 1), stream(0, "same", n), runs=200).epsilon for n in range(100)]
    assert binom.sf(sum(bound > 0 for bound in bounds) - 1, 100, 0.05) > ALPHA


def test_the_bound_of_known_hits_is_clopper_and_pearson_s():
    low = binomtest(90, 100).proportion_ci(0.95).low
    high = binomtest(10, 100).proportion_ci(0.95).high
    assert auditor.lower_bound((90, 10), 100) == pytest.approx(math.log(low / high))
    assert auditor.lower_bound((90, 10), 100, delta=0.5) == pytest.approx(math.log((low - 0.5) / high))
    assert auditor.lower_bound((10, 90), 100) == 0.0
    assert auditor.lower_bound((100, 0), 100) == pytest.approx(math.log(100 / 3.7), abs=0.05)


@pytest.mark.parametrize("limit", [limits.joint, limits.separate])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_no_law_is_accused_more_often_than_a_limit_says(limit, delta):
    """All pairs of counts of 24 runs, for laws that attain e^epsilon Q + delta: the limit exceeds epsilon rarely enough."""
    runs = 24
    limited = np.array([[limit((i, j), runs, delta, 0.9) for j in range(runs + 1)] for i in range(runs + 1)])
    wrong = []
    for q, epsilon in itertools.product(np.linspace(0.005, 0.6, 40), np.linspace(0.01, 3.5, 20)):
        p = math.exp(epsilon) * q + delta
        if p <= 1:
            first, second = (binom.pmf(np.arange(runs + 1), runs, chance) for chance in (p, q))
            wrong.append(float(first @ (limited > epsilon + 1e-12) @ second))
    assert max(wrong) <= 0.1


def test_given_all_hits_the_first_count_bounds_the_odds_at_the_error_that_it_pays_for():
    """The limit's odds ratio is the one at which 200 or more of 241 hits have nine tenths of the error probability."""
    found = limits.joint((200, 41), 5000)
    assert (round(found, 2), round(limits.separate((200, 41), 5000), 2)) == (1.28, 1.14)
    high = binomtest(200, 5000, alternative="less").proportion_ci(0.995).high
    odds = (math.exp(found) - high) / (1 - high)
    assert nchypergeom_fisher(10_000, 5000, 241, odds).sf(199) == pytest.approx(0.045, rel=1e-4)


def test_rare_events_are_not_given_up_for_common_ones():
    """An event of .04 against .008 shows more than one of .3 against .15, which a limit of each count apart prefers."""

    def release(x, rng):
        return int(rng.choice(3, p=((0.642, 0.35, 0.008), (0.66, 0.3, 0.04))[x]))

    bounds = [auditor.audit(release, (0, 1), stream(0, "rare", n), runs=5000).epsilon for n in range(5)]
    assert min(bounds) > 0.9


def test_what_an_audit_prints_has_no_table_of_its_inputs():
    tables = [np.zeros(50, dtype=int), np.ones(50, dtype=int)]
    found = auditor.audit(lambda table, rng: int(table[0] ^ (rng.random() < 0.3)), tables, stream(0, "table"), runs=100)
    assert len(repr(found)) < 150
    assert {int(each[0]) for each in found.inputs} == {0, 1}


def test_a_tenth_too_little_noise_is_caught_from_outside():
    right, mutant = (
        auditor.audit(failures.noisy_count(Laplace(scale)), (0, 1), stream(0, "tenth"), runs=40_000) for scale in (1.0, 0.9)
    )
    assert not right.refutes(1.0)
    assert right.epsilon > 0.9
    assert mutant.refutes(1.0)


def test_a_tenth_too_little_gaussian_noise_is_caught_with_its_delta():
    """The best event for Gaussian noise is in the tail: this takes a large delta and few digits."""
    epsilon, delta = 1.0, 0.01
    scale = 1 / accounting.gaussian_mu(epsilon, delta)
    right, mutant = (
        auditor.audit(failures.noisy_count(Gaussian(s)), (0, 1), stream(0, "normal"), runs=40_000, delta=delta)
        for s in (scale, 0.6 * scale)
    )
    assert not right.refutes(epsilon)
    assert mutant.refutes(epsilon)


def test_an_audit_of_one_input_is_refused():
    with pytest.raises(ValueError, match="two neighbouring inputs"):
        auditor.audit(lambda value, rng: 0, [0], stream(0))


def test_arrays_and_tuples_are_told_apart_by_a_coordinate():
    vector = lambda value, rng: np.array([rng.normal(), value + rng.normal() / 10])  # noqa: E731
    found = auditor.audit(vector, (0, 1), stream(0, "vector"), runs=1000)
    assert found.epsilon > 4
    assert "output[1]" in found.event


@pytest.mark.parametrize(
    "broken",
    [
        lambda value, rng: math.nan if value else rng.random(),
        lambda value, rng: math.nan if not value else rng.random(),
        lambda value, rng: np.array([rng.random(), np.nan if value else rng.random()]),
        lambda value, rng: None if value else rng.random(),
        lambda value, rng: None if value else (rng.random(), rng.random()),
    ],
)
def test_an_output_that_is_no_number_tells_as_much_as_one(broken):
    found = auditor.audit(broken, (0, 1), stream(0, "nan"), runs=1000)
    assert found.epsilon > 5
    assert max(found.hits) == 1000


def test_numbers_beside_nan_are_still_cut():
    noisy = lambda value, rng: math.nan if rng.random() < 0.5 else value + rng.normal() / 10  # noqa: E731
    found = auditor.audit(noisy, (0, 1), stream(0, "nan"), runs=1000)
    assert found.epsilon > 4
    assert found.event.startswith(("output >=", "output <="))
    never = auditor.audit(lambda value, rng: math.nan, (0, 1), stream(0, "nan"), runs=1000)
    assert never.epsilon == 0.0


def test_the_discrete_law_that_is_enumerated_is_the_geometric_one():
    law = integers.laplace_law(DiscreteLaplace(0.4), (0, 1, 2))
    scale = math.ceil(0.4 * 1024) / 1024
    assert list(law) == [-2, -1, 0, 1, 2]
    assert list(law.values()) == pytest.approx([law[0] * math.exp(-abs(number) / scale) for number in law], rel=1e-10)


def test_what_is_rejected_is_attempted_again_and_nothing_is_told_twice():
    counted = itertools.count()
    assert noise._until(7, lambda size, rng: np.array([next(counted) for _ in range(size // 4)]), None).tolist() == [
        *range(7)
    ]
