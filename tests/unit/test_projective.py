"""Projective-geometry response: the geometry by brute force, reports, estimates and their errors, what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from local_laws import of_points, projective_laws

from evolvingdp.core.geometry import MOST_POINTS, Geometry, geometry
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.count_sketch import FreqOracle, Sketch
from evolvingdp.heavy_hitters.sketches import joint_fit
from evolvingdp.heavy_hitters.sketches.joint_fit import JointFit
from evolvingdp.heavy_hitters.sketches.projective import ProjectiveOracle

SPACES = [Geometry(2, 4), Geometry(2, 6), Geometry(3, 3), Geometry(5, 3), Geometry(7, 4), Geometry(8, 2), Geometry(11, 2)]
KEYS = np.arange(7, dtype=np.uint64)


def oracle(epsilon=2.0, rows=4, cells=300, seed=0):
    return ProjectiveOracle.draw(rows, cells, epsilon, stream(seed, "hashes"))


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_each_point_has_as_many_reports_and_each_two_as_many_in_common(space):
    supports = (np.arange(space.points) + space.block[:, None]) % space.points  # (reports, points)
    table = np.zeros((space.points, space.points), dtype=int)
    table[supports, np.arange(space.points)] = 1
    expected = np.full((space.points, space.points), space.common) + (space.size - space.common) * np.eye(space.points)
    assert np.array_equal(table.T @ table, expected)
    counts = stream(0, "counts").integers(0, 9, size=space.points)
    assert space.supporting(counts).tolist() == (counts @ table).tolist()


@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0])
def test_the_space_is_large_and_its_variance_near_the_least(epsilon):
    space = geometry(epsilon, 2_000)
    least = 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2
    assert oracle(epsilon, cells=2_000).standard_error(10_000, "mean") ** 2 / 1e4 <= 1.1 * least  # 2 is the least prime
    assert 2_000 <= space.points <= MOST_POINTS
    assert all(space.order % factor for factor in range(2, space.order))


@pytest.mark.parametrize("epsilon", [7.0, 9.5, 12.0])
def test_at_a_large_epsilon_points_are_as_many_as_have_the_least_variance(epsilon):
    """The largest prime below 1,024 would have twice the least standard error at 9.5."""
    least = 2 * math.exp(epsilon / 2) / math.expm1(epsilon)
    assert oracle(epsilon).standard_error(1, "mean") <= least * (1.001 if epsilon < 11 else 1.05)


def test_nobody_s_noise_is_lower_than_one_bit_s():
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        bit = FreqOracle(MultiplyShift.draw(4, 512, stream(0, "hashes")), epsilon)
        assert oracle(epsilon).standard_error(10**6, "mean") < bit.standard_error(10**6, "mean")
        ratio = oracle(epsilon).standard_error(10**6) / oracle(epsilon).standard_error(10**6, "mean")
        assert ratio == pytest.approx(bit.standard_error(10**6) / bit.standard_error(10**6, "mean"), rel=1e-3)


@pytest.mark.parametrize("space", [Geometry(3, 2), Geometry(3, 3)], ids=str)
def test_a_user_adds_one_to_the_own_point_and_nothing_to_the_average_point(space):
    freq = of_points(space, 1.0)
    for point, law in enumerate(projective_laws(freq)):
        sums = np.rint(1e12 * np.array([list(law.values())])).astype(np.int64)
        cells = freq.cell_estimates(Sketch(freq, sums, int(sums.sum())))[0] / 1e12
        assert cells.sum() == pytest.approx(0, abs=1e-6)
        assert cells[point] == pytest.approx(1)
        assert np.delete(cells, point) == pytest.approx(np.full(space.points - 1, -1 / (space.points - 1)))


LAWS = [(Geometry(5, 2), 3.0), (Geometry(7, 2), 1.5), (Geometry(3, 3), 1.0), (Geometry(2, 4), 0.5)]


@pytest.mark.parametrize(("space", "epsilon"), LAWS, ids=str)
@pytest.mark.parametrize("held", [0, 1, 5])
def test_the_stated_error_is_that_of_all_reports_of_users_at_all_points(space, epsilon, held):
    """Enumerated: of five users `held` are at the word's point, the others at uniform ones."""
    freq = of_points(space, epsilon)
    unit = np.eye(space.points, dtype=np.int64)
    adds = np.array([freq.cell_estimates(Sketch(freq, row[None, :], 1))[0, 0] for row in unit])
    laws = np.array([list(law.values()) for law in projective_laws(freq)])

    def variance(law):
        return law @ adds**2 - (law @ adds) ** 2

    total = held * variance(laws[0]) + (5 - held) * variance(laws.mean(axis=0))
    assert freq.response.standard_errors(5, np.array([held]))[0] ** 2 == pytest.approx(total)


def drawn_fit(rows, width, n_keys):
    """A joint fit of keys in random cells, and the dense matrix G of its means."""
    rng = stream(0, "cells", rows, n_keys)
    cells = rng.integers(0, width, size=(rows, n_keys))
    fit = JointFit.of(cells, width)
    centred, share = np.eye(width)[cells] - 1 / width, 1 - 1 / width  # (rows, keys, cells)
    flat = centred.transpose(1, 0, 2).reshape(n_keys, -1)
    return fit, flat @ flat.T / rows / share, centred / share


def test_the_joint_fit_is_that_of_the_dense_matrix():
    fit, gram, columns = drawn_fit(5, 8, 12)
    truth = stream(0, "truth").normal(size=12)
    assert np.allclose(fit.solve(gram @ truth), truth, atol=1e-6)
    assert np.allclose(fit.cells_of(truth), np.einsum("ruc,u->rc", columns, truth))


@pytest.mark.parametrize(
    ("rows", "width", "average", "furthest"), [(8, 512, 0.02, 0.12), (32, 128, 0.01, 0.04), (100, 64, 0.005, 0.02)]
)
def test_the_spread_of_keys_is_the_inverse_s_within_a_few_per_cent(rows, width, average, furthest, monkeypatch):
    """In standard errors: on average, and at the furthest.  Keys are as many as a quarter of the cells."""
    fit, gram, _ = drawn_fit(rows, width, rows * width // 4)
    off = np.sqrt(fit.spread() / np.diag(np.linalg.inv(gram))) - 1
    assert np.sqrt(np.mean(off**2)) < average
    assert np.abs(off).max() < furthest
    monkeypatch.setattr(joint_fit, "_AT_ONCE", 100)
    assert np.allclose(np.sqrt(fit.spread() / np.diag(np.linalg.inv(gram))) - 1, off, atol=1e-12)


@pytest.mark.parametrize(("rows", "n_keys"), [(2, 12), (3, 20), (5, 30)])  # first order is off by up to a third, or by 1e9
def test_where_keys_are_many_for_the_cells_the_spread_is_the_inverse_s(rows, n_keys):
    fit, gram, _ = drawn_fit(rows, 16, n_keys)
    assert np.allclose(fit.spread(), np.diag(np.linalg.inv(gram)), rtol=1e-6)


def test_twenty_thousand_keys_have_standard_errors():
    """Their system takes 3 GB, and minutes to be inverted."""
    fit = JointFit.of(stream(0, "thousands").integers(0, 2048, size=(64, 20_000)), 2048)
    assert fit.spread().mean() == pytest.approx(1 / (1 - 20_000 / (64 * 2048)), rel=0.002)


@pytest.mark.parametrize(
    ("rows", "reports", "message"),
    [
        ([4], [0], r"slots must lie in \[0, 4\), got 4"),
        ([0], [400], r"reports must lie in \[0, 400\), got 400"),
        ([0, 1], [0], r"reports must have one entry per slot, got \(1,\) for \(2,\)"),
    ],
)
def test_reports_that_nobody_can_send_are_refused(rows, reports, message):
    with pytest.raises(ValueError, match=message):
        oracle().add(oracle().empty(), np.array(rows), np.array(reports))


def test_a_joint_estimate_that_does_not_exist_is_refused():
    freq, keys = oracle(rows=1, cells=2), np.arange(400, dtype=np.uint64)
    points = freq.space.points
    sketch = freq.simulate(keys, np.full(400, 10), stream(0, "noise"))
    with pytest.raises(ValueError, match=f"the joint estimate of 400 keys does not exist with 1 rows of {points} cells"):
        freq.estimate(sketch, keys, "joint")
    together = keys[freq.hashes.cells(np.array(0), keys) == 1][:2]  # no cell tells them apart
    assert np.all(freq.standard_errors(sketch, together, "joint") > 1e5)
    for estimator in freq.estimators:
        assert len(freq.estimate(sketch, keys[:0], estimator)) == len(freq.standard_errors(sketch, keys[:0], estimator)) == 0


def test_many_keys_that_come_near_a_cut_are_found_without_reading_all_rows_of_all(monkeypatch):
    """Of 20,000 keys: all of 50 words of 1.25 times the cut, and nobody who is not near it; half of the reads are left."""
    freq, held, asked = oracle(rows=16, cells=1000), np.arange(50, dtype=np.uint64), np.arange(20_000, dtype=np.uint64)
    sketch = freq.simulate(held, np.full(50, 10_000), stream(0, "near"))
    cells, error, read = freq.cell_estimates(sketch), freq.standard_error(500_000, "mean"), []
    whole, one = np.flatnonzero(freq.read(cells, asked, "mean") >= 8_000), FreqOracle._read
    monkeypatch.setattr(FreqOracle, "_read", lambda *some: (read.append(len(some[1]) * len(some[2])), one(*some))[1])
    found = freq.reaching(cells, 500_000, asked, 8_000.0, "mean")
    assert error < 1_000
    assert set(held) <= set(found) <= set(whole)
    assert len(whole) - len(found) <= 0.01 * len(whole) + 2
    assert sum(read) < 0.5 * 16 * 20_000


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(ValueError, match=r"epsilon must be at most 36, .* got 36.5"):
        oracle(36.5)
    with pytest.raises(ValueError, match="hashes must have 13 cells, the points of space, got 16"):
        ProjectiveOracle(MultiplyShift.draw(2, 16, stream(0, "hashes")), 1.0, Geometry(3, 3))
