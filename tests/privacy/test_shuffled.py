"""Privacy amplification by shuffling: the bound against all multisets of small numbers of reports, enumerated."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from local_laws import projective_laws
from scipy.stats import binom

from evolvingdp.book.checkout import params_of
from evolvingdp.core.geometry import Geometry
from evolvingdp.core.olh import OLH
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import shuffling
from evolvingdp.heavy_hitters.shuffling import Shuffled, epsilon_of_a_report, fewest, hashed
from evolvingdp.heavy_hitters.sketches.projective import ProjectiveOracle
from evolvingdp.notebooks.heavy_hitters.trust import GROUPS, report_epsilon


def multisets(laws, held):
    """The law of how often each output was sent by users with these words."""
    law = Counter({(0,) * len(laws[0]): 1.0})
    for word in held:
        after = Counter()
        for counts, probability in law.items():
            for output, chance in enumerate(laws[word]):
                after[(*counts[:output], counts[output] + 1, *counts[output + 1 :])] += probability * chance
        law = after
    return law


def enumerated(laws, n_users, epsilon):
    """The largest delta between a first user with word 0 and with word 1, over all words of the others."""
    worst = 0.0
    for others in itertools.combinations_with_replacement(range(len(laws)), n_users - 1):
        one, other = (multisets(laws, (first, *others)) for first in (0, 1))
        worst = max(worst, sum(max(0.0, mass - math.exp(epsilon) * other[sent]) for sent, mass in one.items()))
    return worst


def responses(epsilon, values):
    return [list(OLH(epsilon, values).probabilities(word).values()) for word in range(values)]


@pytest.mark.parametrize("values", [2, 3, 4])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("n_users", [2, 6])
def test_the_bound_is_above_shuffled_randomized_response_and_near_it(values, epsilon, n_users):
    for total in (0.0, 0.2, 0.9 * epsilon):
        truth = enumerated(responses(epsilon, values), n_users, total)
        stated = Shuffled(epsilon, n_users, values).delta(total)
        assert truth * (1 - 1e-9) <= stated <= 1.13 * truth


def blanket(epsilon, n_users, values, hashed, total):
    """Delta of the adversary for whom the bound is exact, summed over all M, C, A and B without taking any together."""
    low, supports = values / (math.exp(epsilon) + values - 1), (1 - 1 / values) / values if hashed else 1 / values
    gap, e, delta = math.expm1(epsilon) * low, math.exp(total), 0.0
    for size in range(1, n_users + 1):
        of_size = binom.pmf(size - 1, n_users - 1, low)
        either = np.arange(size + 1)
        for some, chance in zip(either, binom.pmf(either, size, 2 * supports), strict=True):
            if of_size * chance < 1e-16:
                continue
            both = np.arange(size - some + 1 if hashed else 1)
            of_both = binom.pmf(both, size - some, values**-2 / (1 - 2 * supports) if hashed else 0)
            own = np.arange(some + 1)[:, None]
            gain = gap * (own + both - e * (some - own + both)) - (e - 1) * low * size
            delta += of_size * chance * binom.pmf(own[:, 0], some, 0.5) @ np.maximum(gain, 0) @ of_both / size
    return delta


@pytest.mark.parametrize(("n_users", "values", "hashed"), [(40, 4, True), (60, 20, True), (300, 2, False), (90, 5, False)])
@pytest.mark.parametrize("target", [1e-3, 1e-6])
def test_the_bound_is_the_sum_over_all_that_can_happen_within_a_hundredth_of_epsilon(n_users, values, hashed, target):
    """A few hundred users: what is lost is what spreads over the grid."""
    reports = Shuffled(1.5, n_users, values, values**-2 if hashed else 0)
    total = reports.total_epsilon(target)
    assert blanket(1.5, n_users, values, hashed, total) <= reports.delta(total) <= target
    assert blanket(1.5, n_users, values, hashed, total / 1.01) > target
    assert reports.delta(0.1) >= blanket(1.5, n_users, values, hashed, 0.1)


@pytest.mark.parametrize("tail", [4.0, 1.0])
@pytest.mark.parametrize(("values", "n_users"), [(4, 6), (3, 2)])
def test_what_lies_beyond_the_grid_is_added_to_delta(values, n_users, tail, monkeypatch):
    """Of a grid that is too narrow for the sums: e^-4 and more of their law lie beyond it."""
    monkeypatch.setattr(shuffling, "_TAIL", tail)
    assert Shuffled(2.0, n_users, values).delta(0.0) >= enumerated(responses(2.0, values), n_users, 0.0)


def test_a_lot_has_fewer_users_than_it_is_priced_for_in_a_thousandth_of_delta():
    users, left = fewest(10**6, 0.15, 1e-6)
    assert binom.cdf(users - 2, 10**6 - 1, 0.15) < 1e-9 <= binom.cdf(users - 1, 10**6 - 1, 0.15)
    assert users < 0.99 * 150_000  # the expected number is there in half of the cases only
    assert left == pytest.approx(0.999e-6)
    assert fewest(1000, 1, 1e-6) == (1000, 1e-6)
    expected = epsilon_of_a_report(1.0, 1e-6, 150_000, hashed, 10.0)
    params = params_of("heavy_hitters/trust")(n_users=10**6, delta=1e-6)
    assert report_epsilon(params, GROUPS, 1.0) < expected
    for share in (0.0, 1.5, math.nan):
        with pytest.raises(ValueError, match="share must lie in"):
            fewest(1000, share, 1e-6)


def test_with_two_users_the_bound_is_attained():
    for values, epsilon, total in itertools.product((2, 3, 5), (0.5, 3.0), (0.0, 0.3)):
        stated = Shuffled(epsilon, 2, values).delta(total)
        assert stated == pytest.approx(enumerated(responses(epsilon, values), 2, total))


@pytest.mark.parametrize("space", [Geometry(2, 2), Geometry(3, 2), Geometry(2, 3)], ids=str)
def test_the_bound_is_above_shuffled_projective_reports(space):
    laws = [list(law.values()) for law in projective_laws(ProjectiveOracle.draw(1, 2, 1.5, stream(0, "hashes")), space)]
    for total in (0.1, 0.8):
        truth = enumerated(laws, 4, total)
        assert truth <= Shuffled(1.5, 4, 1 / space.share, space.common / space.points).delta(total)


def test_clones_that_count_a_user_who_tells_nothing_promise_too_little():
    """The user in question and two values that matter, the crowd with the least chance of each: less than the truth."""
    epsilon, values, total = 2.0, 3, 1.8
    rare = 1 / (math.exp(epsilon) + values - 1)
    kinds, crowd = (rare * math.exp(epsilon), rare), (rare, rare)

    def law(own):
        sent = [(1, 0, own[0]), (0, 1, own[1]), (0, 0, 1 - sum(own))]
        other = [(1, 0, crowd[0]), (0, 1, crowd[1]), (0, 0, 1 - sum(crowd))]
        both = Counter()
        for (a, b, p), (c, d, q) in itertools.product(sent, other):
            both[a + c, b + d] += p * q
        return both

    one, other = law(kinds), law(kinds[::-1])
    clones = sum(max(0.0, one[seen] - math.exp(total) * other[seen]) for seen in one)
    assert clones < 0.7 * enumerated(responses(epsilon, values), 2, total)


def test_the_total_epsilon_is_where_delta_is_reached_and_falls_with_users():
    reports = Shuffled(4.0, 10**4, 56, 56**-2)
    total = reports.total_epsilon(1e-9)
    assert reports.delta(total) <= 1e-9 < reports.delta(0.999 * total)
    totals = [Shuffled(4.0, n, 56, 56**-2).total_epsilon(1e-9) for n in (2, 100, 10**4, 10**6)]
    assert totals[0] == pytest.approx(4.0, abs=1e-3)
    assert np.all(np.diff(totals) < 0)
    assert totals[3] == pytest.approx(totals[2] / 10, rel=0.2)  # about as 1 / sqrt(n)


def test_the_epsilon_of_a_report_is_the_largest_that_the_total_allows():
    one = epsilon_of_a_report(1.0, 1e-9, 10**5, hashed, 10.0)
    assert Shuffled(one, 10**5, *hashed(one)).delta(1.0) <= 1e-9
    assert Shuffled(one + 0.01, 10**5, *hashed(one + 0.01)).delta(1.0) > 1e-9
    assert epsilon_of_a_report(1.0, 1e-9, 2, lambda _: (4, 1 / 16), 10.0) == 1.0  # never less than without a shuffler
    assert epsilon_of_a_report(4.0, 1e-3, 10**8, lambda _: (4, 1 / 16), 6.0) == 6.0


def test_more_users_never_lower_the_epsilon_of_a_report():
    """With 168 users, 9 values spend all of delta at 2.114; 10 values, from 2.140 on, less than all of it up to 2.145."""
    epsilon, delta = 3.09053999932813 / math.sqrt(10), 1.3665731371047213e-09
    ladder = [epsilon_of_a_report(epsilon, delta, users, hashed, 15.0) for users in (165, 168, 171, 175, 178, 182)]
    assert np.all(np.diff(ladder) > 0)
    assert [hashed(one)[0] for one in ladder] == [9, 10, 10, 10, 10, 10]
    smooth = [epsilon_of_a_report(1.0, 1e-6, users, lambda one: (2 + one, 0.0), 10.0) for users in (1000, 1100)]
    assert smooth[0] < smooth[1]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Shuffled(math.nan, 10, 2), "epsilon must be"),
        (lambda: Shuffled(16.0, 10, 2), "epsilon must be at most 15, got 16"),
        (lambda: Shuffled(1.0, 1, 2), "n_users must be"),
        (lambda: Shuffled(1.0, 10, 1), "values must be"),
        (lambda: Shuffled(1.0, 10, 2, 0.6), "both 0 to 1/values"),
        (lambda: Shuffled(1.0, 10, 2).delta(-0.1), "epsilon must be from 0 to 15"),
        (lambda: Shuffled(1.0, 10, 2).total_epsilon(0.0), "delta must be at least 1e-12"),
        (lambda: epsilon_of_a_report(1.0, math.nan, 10, lambda _: (2, 0.0), 3.0), "delta must be"),
    ],
)
def test_what_cannot_be_worked_out_is_refused(call, says):
    with pytest.raises(ValueError, match=says):
        call()


@pytest.mark.parametrize("near", [1e-3, 1e-9, 1e-16])
def test_near_the_epsilon_of_a_report_the_bound_takes_no_more_memory_and_stays_one(near):
    """The grid would have 2^37 points; a report alone is (epsilon, 0)-private, and (epsilon - x, x)-private."""
    for users in (10**10, 13):
        shuffled = Shuffled(0.1, users, 2)
        delta = shuffled.delta(0.1 * (1 - near))
        assert 0 <= delta <= 1
        if users == 13:
            assert delta >= enumerated(_binary(0.1), 13, 0.1 * (1 - near))


def _binary(epsilon):
    keep = math.exp(epsilon) / (math.exp(epsilon) + 1)
    return [[keep, 1 - keep], [1 - keep, keep]]
