"""Reports of one of several values: their variances enumerated, the best of them, and what cannot work."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from evolvingdp.core import reports
from evolvingdp.core.geometry import Geometry, spaces
from evolvingdp.core.reports import Hashed, Projective, Sign, Subset, best_report
from evolvingdp.core.seeds import stream

LN3 = math.log(3)  # a sign is kept with probability 3/4; OLH has four hash values and keeps its own with probability 1/2


def test_estimates_by_hand():
    olh = Hashed(3, LN3)
    assert olh.estimates(np.array([4, 2, 3]), 8) == pytest.approx([1.0, 0.0, 0.5])  # (share - 1/4) / (1/2 - 1/4)
    assert olh.variance([0.0, 1.0]) == pytest.approx([3.0, 4.0])  # 1/4 3/4 16 and 1/2 1/2 16
    assert olh.bits == 64 + 2
    signs = Sign(3, LN3)
    assert (signs.width, signs.bits) == (4, 3)
    rows = np.array([5, 1, 3, -1])  # times the columns ++++, +-+-, ++--, over 8 users, times coth(ln(3) / 2) = 2
    assert signs.estimates(rows, 8) == pytest.approx([2.0, 2.0, 1.0])
    assert signs.variance([0.0, 1.0]) == pytest.approx([4.0, 3.0])
    one = Subset(2, LN3)  # a bit, by randomized response
    assert (one.own, one.other, one.bits) == (pytest.approx(0.75), pytest.approx(0.25), 1)
    assert one.variance(0.5) == pytest.approx(1.0)  # coth(ln(3) / 2)^2 / 4
    assert np.isnan(olh.estimates(np.zeros((1, 3)), np.zeros(1))).all()


@pytest.mark.parametrize("n_values", [3, 5, 6])
@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("epsilon", [0.4, 1.0, 3.0])
def test_the_variance_of_a_set_is_that_of_the_enumerated_law_and_of_the_formula(n_values, size, epsilon):
    """V0 + f V1 of a report whose value is given, and f (1 - f) of a random user's besides."""
    if size >= n_values:
        return
    report, k, w, e = Subset(n_values, epsilon, size), n_values, size, math.exp(epsilon)
    laws = [report.probabilities(value) for value in range(k)]
    assert sum(laws[0].values()) == pytest.approx(1)
    ratios = [laws[0][one] / laws[1][one] for one in laws[0]]
    assert max(ratios) == pytest.approx(e)
    assert max(ratios) <= e * (1 + 1e-14)
    supports = [sum(chance for one, chance in law.items() if 0 in one) for law in laws]
    assert supports == pytest.approx([report.own] + [report.other] * (k - 1))
    v0 = (e * (w - 1) + k - w) * (w * e + k - 1 - w) / (w * (k - w) * (e - 1) ** 2)
    v1 = ((k - w) * (k - 1) - w * (e * (w - 1) + k - w)) / (w * (k - w) * (e - 1))
    for f in (0.0, 0.3, 1.0):
        own, others = (p * (1 - p) / (report.own - report.other) ** 2 for p in supports[:2])
        assert v0 + f * v1 == pytest.approx(f * own + (1 - f) * others)
        assert report.variance(f) == pytest.approx(v0 + f * v1 + f * (1 - f))


@pytest.mark.parametrize("space", [Geometry(2, 3), Geometry(3, 3), Geometry(2, 4), Geometry(5, 2)], ids=str)
@pytest.mark.parametrize("epsilon", [0.4, 1.0, 3.0])
def test_a_point_has_the_law_of_a_set_among_as_many_values_as_points(space, epsilon):
    """Supports and costs, enumerated: each two values have as many points in common."""
    report, held = Projective(space.points - 1, epsilon, space), range(space.points - 1)
    chances = np.full((space.points, space.points), report.lie / space.points)  # of values, points
    for value in range(space.points):
        chances[value, (space.block + value) % space.points] += (1 - report.lie) / space.size
    assert np.log(chances.max(axis=0) / chances.min(axis=0)).max() == pytest.approx(epsilon)
    for own in held:
        supports = [chances[own, (space.block + value) % space.points].sum() for value in held]
        assert supports == pytest.approx([report.own if value == own else report.other for value in held])
    same = Subset(space.points, epsilon, space.size)
    assert (report.own, report.other) == pytest.approx((same.own, same.other))
    points = 1e6 * chances[2]  # all hold the third value
    sums = np.rint(1e6 * points).astype(np.int64)
    assert report.estimates(sums, sums.sum()) == pytest.approx(np.eye(1, len(held), 2)[0], abs=1e-9)


def test_points_of_few_users_at_a_time_are_those_of_all_at_once(monkeypatch):
    """Of values that nobody, few or many hold, the last as a multinomial."""
    report, held = Projective(6, 2.0, Geometry(2, 3)), np.array([40, 0, 7, 100_000, 0, 300])
    at_once = report.draw_reports(held, stream(0, "points"))
    assert at_once.sum() == held.sum()
    for least in (1, 50, 200):
        monkeypatch.setattr(reports, "_HELD", least)
        np.testing.assert_array_equal(report.draw_reports(held, stream(0, "points")), at_once)


@pytest.mark.parametrize("n_values", [2, 5, 30, 100, 200, 1000, 20_000])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 7.0, 11.0])
@pytest.mark.parametrize("bits", [None, 80, 20, 15, 11, 8])
def test_no_member_of_the_list_has_less_error_than_the_best_report_and_none_that_is_no_hash_less_at_all(
    n_values, epsilon, bits
):
    sizes = range(1, n_values if n_values <= 128 else 9)
    members = [Hashed(n_values, epsilon), Sign(n_values, epsilon), *(Subset(n_values, epsilon, size) for size in sizes)]
    members += [Projective(n_values, epsilon, space) for space in spaces() if space.points >= n_values]
    short = [one for one in members if bits is None or one.bits <= bits]
    if not short:
        with pytest.raises(ValueError, match="bits must be at least"):
            best_report(n_values, epsilon, bits)
        return
    for frequency in (None, 0.0, 0.3, 0.9):
        best, share = best_report(n_values, epsilon, bits, frequency), 1 / n_values if frequency is None else frequency
        assert bits is None or best.bits <= bits
        half, chance = best_report(n_values, epsilon / 2, bits, frequency), share * (1 - share)
        assert 0.81 * best.variance(share) <= (half.variance(share) - chance) / 2 + chance, "two reports"  # a tenth, squared
        for one in short:
            assert best.variance(share) <= one.variance(share) * (1.04 if isinstance(one, Hashed) else 1)
        if isinstance(best, Hashed):
            assert all(1.04 * best.variance(share) <= one.variance(share) for one in short if one != best)


def test_one_value_is_best_of_few_and_sets_of_more():
    """Against OLH, errors of all values together, given who holds which."""
    for n_values, epsilon, ratio in ((4, 5.0, 0.193), (10, 5.0, 0.315), (10, 3.0, 0.610), (4, 2.0, 0.567)):
        report, share = best_report(n_values, epsilon), 1 / n_values
        assert report == Subset(n_values, epsilon)
        one, olh = (float(each.variance(share)) - share * (1 - share) for each in (report, Hashed(n_values, epsilon)))
        assert math.sqrt(one / olh) == pytest.approx(ratio, abs=1e-3)
    e = math.e
    assert best_report(math.floor(2 * e + 1), 1.0, frequency=0.0) == Subset(6, 1.0)
    assert best_report(math.ceil(2 * e + 1), 1.0, frequency=0.0) == Subset(7, 1.0, 2)


def test_bits_are_those_of_the_set_and_fewer_may_be_asked_for():
    assert best_report(50, 1.0).bits == math.ceil(math.log2(math.comb(50, best_report(50, 1.0).size))) == 39
    assert [best_report(120, 1.0, bits).bits for bits in (96, 80, 8)] == [96, 7, 7]
    assert best_report(120, 1.0, 80) == Projective(120, 1.0, Geometry(3, 5))  # 121 points
    assert isinstance(best_report(200_000, 1.0, 30), Sign)
    with pytest.raises(ValueError, match="bits must be at least 7 for 120 values, got 6"):
        best_report(120, 1.0, 6)
    assert isinstance(best_report(10**5, 2.0), Hashed)
    assert best_report(10**4, 3.0).bits == 14  # of a hash: 69, for a thousandth less error


def bent(curve, shares):
    """One over the second derivative."""
    step = 1e-5
    return step**2 / (curve(shares + step) + curve(shares - step) - 2 * curve(shares))


@pytest.mark.parametrize("report", [Subset(2, LN3), Subset(9, 4.0, 2), Hashed(7, 3.0), Sign(5, LN3)], ids=str)
def test_deviances_are_squares_over_the_variance_near_by_and_those_of_binomials_far_off(report):
    shares = np.array([0.01, 0.3, 0.5, 0.9])
    assert bent(report.curve, shares) == pytest.approx(report.variance(shares), rel=1e-4)
    assert np.isfinite(
        [
            each(np.array([-9.0, -report.other / report.gain, 0.0, 1.0, 9.0]))
            for each in (report.curve, report.curve_together)
        ]
    ).all()
    told, true = 0.8, 0.1
    above = (
        report.curve(told)
        - report.curve(true)
        - (report.curve(true + 1e-6) - report.curve(true - 1e-6)) / 2e-6 * (told - true)
    )
    seen, chance = (report.other + each * report.gain for each in (told, true))
    assert above == pytest.approx(
        seen * math.log(seen / chance) + (1 - seen) * math.log((1 - seen) / (1 - chance)), rel=1e-6
    )


def spread(report, law):
    """How far the covariance of estimates exceeds, in any direction, what residuals of all of them are divided by."""
    if isinstance(report, Subset):
        held = [[chance for _, chance in sorted(report.probabilities(value).items())] for value in range(report.n_values)]
        sets = [[int(value in one) for value in range(report.n_values)] for one in sorted(report.probabilities(0))]
        chances, supports = law @ np.array(held), np.array(sets)
    elif isinstance(report, Projective):
        held = [list(report.probabilities(value).values()) for value in range(report.n_values)]
        points = np.arange(report.width)
        chances = law @ np.array(held)
        supports = np.array(
            [np.isin((points - value) % report.width, report.space.block) for value in range(report.n_values)]
        ).T
    else:  # supports are independent given the own value, of a hash, and of a sign two by two
        chances, supports = [], []
        for value, pattern in itertools.product(range(report.n_values), itertools.product((0, 1), repeat=report.n_values)):
            each = np.where(np.arange(report.n_values) == value, report.own, report.other)
            chances.append(law[value] * np.prod(np.where(pattern, each, 1 - each)))
            supports.append(pattern)
        chances, supports = np.array(chances), np.array(supports)
    apart = supports - chances @ supports
    covariance = (apart * chances[:, None]).T @ apart / report.gain**2
    scale = np.sqrt(bent(report.curve_together, law) * report.crowded(law))
    return float(np.linalg.eigvalsh(covariance / np.outer(scale, scale)).max())


@pytest.mark.parametrize(
    ("report", "most"),
    [
        *((Subset(k, epsilon, w), 1.0) for k in (3, 4, 6) for w in range(1, k) for epsilon in (0.4, 2.0, 6.0)),
        *((kind(5, epsilon), 1.0) for kind in (Hashed, Sign) for epsilon in (0.4, 2.0, 6.0)),
        *((Projective(n, e, Geometry(*at)), 1.25) for n, *at in ((13, 3, 3), (31, 5, 3), (40, 3, 4)) for e in (1.0, 4.0)),
    ],
    ids=str,
)
def test_residuals_of_all_values_are_divided_by_no_less_than_the_enumerated_covariance(report, most):
    """Sets and independent supports need exactly as much, whatever is held: the largest eigenvalue is 1."""
    k, rng, found = report.n_values, stream(0, "together", str(report)), []
    laws = [*np.eye(k)[:2], np.full(k, 1 / k), *rng.dirichlet(np.full(k, 0.2), 20), *rng.dirichlet(np.ones(k), 20)]
    found = [spread(report, law) for law in laws]
    assert max(found) <= most + 1e-3
    if most == 1:
        assert min(found) >= 1 - 2e-3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Subset(4, 1.0, 4), "size must be below n_values, 4, got 4"),
        (lambda: Subset(4, 1e-17), "epsilon must be larger"),
        (lambda: Hashed(4, 37.0), "epsilon must be at most 36"),
        (lambda: Projective(8, 1.0, Geometry(2, 3)), "space must have n_values = 8 points or more, got 7"),
        (lambda: Projective(4, 1e-17, Geometry(2, 3)), "epsilon must be larger"),
        (lambda: Geometry(4, 3), "order must be a prime in 3 dimensions, got 4"),
        (lambda: Geometry(1, 3), "order must be"),
    ],
)
def test_what_cannot_work_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_large_epsilon_leaves_sets_of_few_values_and_hashes_of_very_many():
    assert best_report(4, 12.0) == Subset(4, 12.0)
    assert best_report(4, 700.0) == Subset(4, 700.0)
    many = best_report(2**40, 13.0)  # of which a sign has 9.7 times the standard error
    assert many == Hashed(2**40, 13.0)
    assert many.hash_values == 2**15 - 1
    assert math.sqrt(Sign(2**40, 13.0).variance(0.01) / many.variance(0.01)) == pytest.approx(9.7, abs=0.1)


def test_of_many_values_small_sets_are_taken_where_no_short_report_is_as_good():
    """They save up to 9 % of the error in 256 bits, and more where a hash is too long."""
    assert best_report(1000, 5.5, 256) == Subset(1000, 5.5, 4)
    with_sets = best_report(30_000, 8.25, 64)
    others = [Projective(30_000, 8.25, one) for one in spaces() if one.points >= 30_000]
    without = min([Sign(30_000, 8.25), Subset(30_000, 8.25), *others], key=lambda one: float(one.variance(0)))
    assert with_sets == Subset(30_000, 8.25, 4)
    assert math.sqrt(with_sets.variance(0) / without.variance(0)) == pytest.approx(0.680, abs=0.001)


@pytest.mark.parametrize("report", [Subset(9, 1.0, 4), Subset(10_000, 7.0, 8), Subset(300, 3.0, 2), Subset(5, 1.0)])
def test_a_set_and_its_number_go_together(report):
    rng = stream(0, "numbers", str(report))
    rows = report.sent(rng.integers(0, report.n_values, 200), rng, rng)
    numbers = [report.message(row) for row in rows]
    assert max(numbers) < report.messages
    assert all(len(set(row)) == report.size for row in rows.tolist())
    assert np.array_equal(np.sort(report.rows(numbers)), np.sort(rows))
    assert sorted(report.rows([0, report.messages - 1])[1].tolist()) == list(range(report.n_values))[-report.size :]
