"""Hash families: pairwise independence by enumeration, and ranges."""

from __future__ import annotations

import numpy as np
import pytest

from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.seeds import stream

ALL = np.arange(256, dtype=np.uint64) << np.uint64(56)  # every value of the top byte; lower bits zero


def families(multipliers, offsets):
    """The family of all given (multiplier, offset), the same function for cells and for signs, 3 + 1 bits."""
    return MultiplyShift(np.array([[multipliers, multipliers]] * 2), np.stack([offsets, offsets]), width=8)


def codes(family, key):
    rows = np.arange(family.rows)
    return of(family, rows, np.full(rows.shape, key, dtype=np.uint64))


def of(family, rows, keys):
    return family.cells(rows, keys), family.signs(rows, keys)


@pytest.mark.parametrize(("x", "y"), [(0, 1), (3, 4), (0, 16), (15, 31), (8, 24), (2**32, 3 * 2**32)])
def test_two_keys_are_jointly_uniform_over_all_functions(x, y):
    """Arithmetic in the top byte only: 5-bit keys and up to 4 output bits need 8 bits, and all 2^16 functions can be
    tried, through the library's own code.  Keys differ in one of their halves, so one multiplier for both is no loss."""
    family = families(*(part.ravel() for part in np.meshgrid(ALL, ALL)))
    (cells_x, signs_x), (cells_y, signs_y) = codes(family, x), codes(family, y)
    assert np.all(np.bincount(8 * cells_x + cells_y, minlength=64) == 1024)
    assert np.all(np.bincount((3 + 2 * signs_x + signs_y) // 2, minlength=4) == 16384)


def test_halves_of_long_keys_are_hashed_by_independent_multipliers():
    first, second = (part.ravel() for part in np.meshgrid(ALL, ALL))
    family = MultiplyShift(np.array([[first, second]] * 2), np.zeros((2, len(first)), np.uint64), width=8)
    (cells_x, _), (cells_y, _) = codes(family, 1), codes(family, 2**32)
    assert np.all(np.bincount(8 * cells_x + cells_y, minlength=64) == 1024)


def test_cells_and_signs_come_from_independent_functions():
    """Over all pairs of multipliers: cell and sign of one key are jointly uniform, offsets zero."""
    cell, sign = (part.ravel() for part in np.meshgrid(ALL, ALL))
    family = MultiplyShift(np.array([[cell, cell], [sign, sign]]), np.zeros((2, len(cell)), np.uint64), width=8)
    cells, signs = codes(family, 1)
    assert np.all(np.bincount(2 * cells + (signs > 0), minlength=16) == 4096)


def test_a_row_of_one_cell_has_cell_zero_and_both_signs():
    cells, signs = of(MultiplyShift.draw(64, 1, stream(0, "one")), np.arange(64), np.ones(64, np.uint64))
    assert not cells.any()
    assert set(signs) == {-1, 1}


@pytest.mark.parametrize("scrambled", [False, True])
def test_cells_are_uniform_where_the_width_is_no_power_of_two(scrambled):
    """Six cells of 60,000 functions: 10,000 each, with a standard deviation of 91."""
    family = MultiplyShift.draw(60_000, 6, stream(0, "six"), scrambled=scrambled)
    cells = family.cells(np.arange(60_000), np.array([7], dtype=np.uint64))
    assert np.abs(np.bincount(cells, minlength=6) - 10_000).max() < 500


def test_short_and_long_keys_in_one_call_agree_with_separate_calls():
    family = MultiplyShift.draw(5, 64, stream(0, "hash"))
    keys = np.array([1, 2**32 - 1, 2**32, 2**63 + 5], dtype=np.uint64)
    rows = np.arange(5)[:, None]
    together = of(family, rows, keys[None, :])
    for position, key in enumerate(keys):
        alone = of(family, rows, np.array([[key]], dtype=np.uint64))
        assert np.array_equal(together[0][:, [position]], alone[0])
        assert np.array_equal(together[1][:, [position]], alone[1])


def test_widths_that_do_not_work_are_refused():
    with pytest.raises(ValueError, match="width must be at most 2"):
        MultiplyShift.draw(3, 2**33, stream(0, "width"))
    with pytest.raises(ValueError, match="rows must be >= 1, got 0"):
        MultiplyShift.draw(0, 32, stream(0, "width"))
