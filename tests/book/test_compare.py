"""The reader's results beside ours: differences against values worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from evolvingdp.book.rendering import compare
from evolvingdp.book.result import at_least, at_most, within


def entries(*claims):
    return [
        claim.as_dict() | {"bound": list(claim.bound) if isinstance(claim.bound, tuple) else claim.bound} for claim in claims
    ]


def test_claims_are_compared_by_value_bound_and_verdict():
    ours = entries(
        at_most("The error falls", 0.5, 1.0), within("The slope", -0.5, -0.55, -0.45), at_least("None lost", 0.0, 0.0)
    )
    yours = entries(
        at_most("The error falls", 2.0, 1.5), within("The slope", -0.5, -0.55, -0.45), at_least("None lost", 3.0, 0.0)
    )
    table = compare.claims(ours, yours)
    first, second, third = (row for _, row in table.iterrows())
    assert (first.ours, first.yours, first.difference, first.relative) == (0.5, 2.0, 1.5, 3.0)
    assert (first.our_bound, first.your_bound) == ("at most 1", "at most 1.5")
    assert (first.our_verdict, first.your_verdict) == (True, False)
    assert (second.difference, second.relative, second.our_bound) == (0.0, 0.0, "-0.55 to -0.45")
    assert third.difference == 3.0
    assert math.isnan(third.relative)  # nothing is 3 more in units of 0
    assert compare.changed(table)["claim"].tolist() == ["The error falls"]


def test_a_relative_difference_of_a_negative_number_keeps_its_sign():
    table = compare.claims(entries(at_most("x", -2.0, 0)), entries(at_most("x", -1.0, 0)))
    assert table.loc[0, ["difference", "relative"]].tolist() == [1.0, 0.5]


def test_claims_meet_by_sentence_then_but_for_its_numbers_and_others_stand_alone():
    ours = entries(
        at_most("At n = 1,000", 1, 9), at_most("and exact", 2, 9), at_most("and exact", 3, 9), at_most("Ours", 4, 9)
    )
    yours = entries(
        at_most("Yours", 5, 9), at_most("and exact", 20, 9), at_most("At n = 2e6", 10, 9), at_most("and exact", 30, 9)
    )
    table = compare.claims(ours, yours)
    assert table["claim"].tolist() == ["At n = 1,000", "and exact", "and exact", "Ours", "Yours"]
    assert table["yours"].fillna(-1).tolist() == [10, 20, 30, -1, 5]
    assert table["ours"].fillna(-1).tolist() == [1, 2, 3, 4, -1]
    assert table["your_verdict"].tolist() == [False, False, False, None, True]
    assert compare.changed(table)["claim"].tolist() == ["At n = 1,000", "and exact", "and exact", "Ours", "Yours"]


OURS = pd.DataFrame({"sweep": ["n", "n", "e"], "value": [10, 20, 10], "mean": [2.0, -4.0, 0.0], "hits": [3, 8, 1]})


def columns(difference):
    return difference.columns.set_index("column")


def test_a_figure_against_itself_differs_by_nothing():
    difference = compare.figure(OURS, OURS)
    assert difference.keys == ("sweep", "value")
    assert (difference.matched, difference.only_ours, difference.only_yours, difference.in_order) == (3, 0, 0, False)
    table = columns(difference)
    assert table.index.tolist() == ["mean", "hits"]
    assert (table[["unequal", "lacking", "largest", "rms", "largest_relative", "rms_relative"]] == 0).all(axis=None)
    assert (table["rows"] == 3).all()


def test_differences_are_measured_over_matched_rows_whatever_their_order():
    yours = pd.DataFrame({"sweep": ["e", "n", "n"], "value": [10, 20, 10], "mean": [3.0, -3.0, 2.0], "hits": [1, 4, 3]})
    table = columns(compare.figure(OURS, yours))
    mean, hits = table.loc["mean"], table.loc["hits"]
    assert (mean.rows, mean.unequal, mean.largest) == (3, 2, 3.0)
    assert mean.rms == pytest.approx(math.sqrt((0 + 1 + 9) / 3))
    assert mean.largest_relative == 0.25  # 1/4; the row where ours is 0 has no relative difference
    assert mean.rms_relative == pytest.approx(math.sqrt((0 + 1 / 16) / 2))
    assert (hits.largest, hits.largest_relative) == (4.0, 0.5)  # whole numbers are measured as any others
    assert hits.rms == pytest.approx(math.sqrt(16 / 3))


def test_rows_that_one_side_lacks_are_counted_not_guessed():
    yours = pd.DataFrame({"sweep": ["n", "n", "n"], "value": [20, 40, 80], "mean": [-4.0, 7.0, 7.0], "hits": [9, 0, 0]})
    difference = compare.figure(OURS, yours, settings=["value"])
    assert (difference.matched, difference.only_ours, difference.only_yours) == (1, 2, 2)
    assert columns(difference).loc["hits", "largest"] == 1.0


def test_missing_and_infinite_numbers_are_counted_as_lacking_unless_equal():
    names, nan, inf = ["a", "b", "c", "d", "e"], float("nan"), float("inf")
    ours = pd.DataFrame({"name": names, "x": [1.0, nan, nan, inf, inf]})
    yours = pd.DataFrame({"name": names, "x": [1.5, nan, 2.0, inf, 3.0]})
    (row,) = compare.figure(ours, yours).columns.to_dict("records")
    assert (row["rows"], row["unequal"], row["lacking"], row["largest"]) == (1, 1, 2, 0.5)
    (row,) = compare.figure(ours.assign(x=nan), yours).columns.to_dict("records")
    assert (row["rows"], row["lacking"]) == (0, 4)
    assert math.isnan(row["largest"])
    assert math.isnan(row["rms_relative"])


def test_a_setting_that_the_reader_changed_does_not_keep_rows_apart():
    ours, yours = OURS.assign(n_users=10**7, data="large"), OURS.assign(n_users=10**3, data="small")
    difference = compare.figure(ours, yours, settings=["n_users"])
    assert difference.matched == 3
    assert columns(difference).loc["n_users", "largest"] == 10**7 - 10**3
    assert columns(difference).loc["data", "unequal"] == 3


def test_measured_columns_are_no_keys_and_a_grid_of_fractions_is():
    rng = np.random.default_rng(0)
    design = {"hits": [7, 7, 8] * 2, "share": [0.1, 0.2, 0.5] * 2, "kind": ["a"] * 3 + ["b"] * 3}
    ours = pd.DataFrame({"measured": rng.random(6)} | design)
    yours = ours.assign(measured=rng.random(6))
    assert compare.figure(ours, yours).keys == ("share", "kind")


def test_rows_that_the_keys_leave_alike_are_matched_in_their_order_and_said():
    ours = pd.DataFrame({"variant": ["a", "a"], "count": [1.5, 2.5]})
    yours = pd.DataFrame({"variant": ["a", "a", "b"], "count": [1.75, 3.0, 9.0]})
    difference = compare.figure(ours, yours)
    assert (difference.in_order, difference.matched, difference.only_yours) == (True, 2, 1)
    assert columns(difference).loc["count", "largest"] == 0.5


def test_words_stay_words_and_truth_values_count_as_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("word,found\nnull,True\nNA,\n")
    (tmp_path / "b.csv").write_text("word,found\nnull,False\nNA,True\n")
    ours, yours = (compare.read(tmp_path / name) for name in ("a.csv", "b.csv"))
    difference = compare.figure(ours, yours)
    assert difference.keys == ("word",)
    assert difference.matched == 2
    (row,) = difference.columns.to_dict("records")
    assert (row["rows"], row["largest"], row["lacking"]) == (1, 1.0, 1)
