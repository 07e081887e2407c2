"""The audit's experiment: its claims fail where a mechanism or a check is broken."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest

from evolvingdp.audit.empirical.black_boxes import black_boxes
from evolvingdp.audit.experiments.verified_privacy import figures, params, tables
from evolvingdp.audit.experiments.verified_privacy import run as experiment
from evolvingdp.audit.experiments.verified_privacy.params import Params
from evolvingdp.audit.ledger import listing
from evolvingdp.audit.ledger.entry import EXACT, Entry
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.experiment import ParameterError

SMALL = {"runs": (100, 200), "box_runs": 50, "n_reports": (1, 30), "n_users": 10, "repetitions": 2}


def entry(measured):
    return Entry("sign_flip", "core", "SignFlip", (SignFlip,), "a report", "any", EXACT, 1.0, lambda: measured)


@pytest.fixture
def claims(monkeypatch):
    def run(measured=1.0):
        one = entry(measured)
        monkeypatch.setattr(listing, "entries", lambda: (one,))
        monkeypatch.setattr(listing.coverage, "without_entry", lambda covered: [])  # this ledger is one row for a test
        monkeypatch.setattr(experiment, "black_boxes", lambda: tuple(box for box in BOXES if box.entry == "sign_flip"))
        result = experiment.run(Params.make(overrides=SMALL), 0)
        return result, {claim.claim.split(":")[0]: claim.holds for claim in result.claims}

    return run


BOXES = black_boxes()


def test_a_ledger_that_holds_is_said_to_hold(claims):
    result, held = claims()
    assert held["No mechanism of a computed row loses more than it promises"]
    assert held["Every computed row that is not tight is pinned"]
    assert result.values["n_entries"] == result.values["n_tight"] == 1
    assert tables.shown(result.table).iloc[0]["verdict"] == "tight"


def test_a_broken_promise_and_a_loose_row_without_a_pin_are_said_to_fail(claims):
    result, held = claims(measured=1.01)
    assert not held["No mechanism of a computed row loses more than it promises"]
    assert tables.shown(result.table).iloc[0]["verdict"] == "broken"
    assert not claims(measured=0.9)[1]["Every computed row that is not tight is pinned"]


def test_rows_that_a_preset_leaves_out_are_shown_with_neither_loss_nor_verdict(claims, monkeypatch):
    claims()
    both = entry(1.0), dataclasses.replace(entry(2.0), id="left out")
    monkeypatch.setattr(listing, "entries", lambda: both)
    result = experiment.run(Params.make(overrides=SMALL | {"one_in": 2}), 0)
    assert all(claim.holds for claim in result.claims[:3])
    assert (result.values["n_entries"], result.values["n_computed"], result.values["n_tight"]) == (2, 1, 1)
    assert tables.shown(result.table)[["verdict", "measured"]].to_numpy().tolist() == [["tight", "1"], [tables.LEFT_OUT] * 2]
    (ax,) = figures.promised(result).canvas.axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["SignFlip"]
    assert figures.chapters(result).caption.startswith("The ledger at a glance, 1 of its 2 rows")


def test_the_failures_are_told_from_the_client_as_stated(claims):
    table = tables.failure_table(claims()[0].table).set_index("client")
    assert table["caught exactly"].to_dict() == {
        params.KEPT: "no", params.REDRAWN: "yes", params.UNCLEARED: "yes",
    }  # fmt: skip


def test_every_audit_is_drawn_and_those_that_show_nothing_are_told_apart(claims):
    """A log axis leaves out zeros: they stand at its left edge."""
    table = claims()[0].table.copy()
    table.loc[table.part == "box", "bound"] = 0.5
    more = pd.concat([table, *(table[table.part == name].assign(id="silent", bound=0.0) for name in ("ledger", "box"))])
    result = dataclasses.replace(claims()[0], table=more)
    (ax,) = figures.promised(result).canvas.axes
    drawn = {line.get_label(): line.get_xdata() for line in ax.lines if "audit" in line.get_label()}
    assert len(drawn.pop(figures.NOTHING)) == 1
    assert [len(x) for x in drawn.values()] == [1]
    (edge,) = next(line.get_xdata() for line in ax.lines if line.get_label() == figures.NOTHING)
    assert edge == ax.get_xlim()[0] > 0
    assert "Of these 2 bounds 1 are 0" in figures.promised(result).caption


def test_the_ledger_s_legend_stands_between_title_and_axis_and_names_only_what_is_drawn(claims):
    table = claims()[0].table.copy()
    table.loc[table.part == "box", "bound"] = 0.5
    rows = [table[table.part == "ledger"].assign(id=f"row-{number}") for number in range(40)]
    figure = figures.promised(dataclasses.replace(claims()[0], table=pd.concat([table, *rows]))).canvas
    figure.draw_without_rendering()
    (ax,) = figure.axes
    legend = ax.get_legend()
    assert figures.NOTHING not in [text.get_text() for text in legend.get_texts()]
    box, panel = legend.get_window_extent(), ax.get_window_extent()
    assert panel.y1 <= box.y0 < panel.y1 + 0.2 * figure.dpi
    assert box.y1 <= figure._suptitle.get_window_extent().y0


def test_chapters_stand_apart_and_a_broken_row_is_right_of_the_line(claims):
    table = claims()[0].table.copy()
    more = table[table.part == "ledger"].assign(id="other", chapter="evolving", measured=1.2, kept=False)
    made = figures.chapters(dataclasses.replace(claims()[0], table=pd.concat([table, more])))
    (ax,) = made.canvas.axes
    (dots,) = (line for line in ax.lines if line.get_label() == "verified")
    assert dots.get_xdata().tolist() == [1.0, 1.2]
    assert [round(-place) for place in dots.get_ydata()] == [0, 1]
    assert made.canvas._suptitle.get_text().startswith("1 of 2 ")


def test_the_same_seed_gives_the_same_table(claims):
    pd.testing.assert_frame_equal(claims()[0].table, claims()[0].table)


def test_runs_that_stand_twice_are_refused():
    with pytest.raises(ParameterError, match="runs must hold each value once"):
        Params.make(overrides={"runs": (100, 100)})


def test_a_loose_loss_is_told_from_its_promise_and_a_small_one_is_a_power_of_ten(claims):
    table = claims(measured=0.99996)[0].table
    assert tables.shown(table).measured.tolist() == ["0.99996"]
    assert tables.shown(claims(measured=1.0)[0].table).measured.tolist() == ["1"]
    assert tables.shown(claims(measured=1.3882e-4)[0].table).measured.tolist() == ["1.388e-04"]


def test_rows_are_named_in_words_from_a_capital_on_and_each_in_its_own():
    names = [listing._written(one.mechanism) for one in listing.entries()]
    assert len(set(names)) == len(names)
    assert [name for name in names if "_" in name or name[0].islower() or len(name) > 58] == []
    assert {"TreeHist, plan two reports", "Dyadic tree, Erlingsson exact", "Memoization, two layers: LOLOHA"} <= set(names)
