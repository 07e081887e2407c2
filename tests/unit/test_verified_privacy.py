"""The audit's experiment: its claims fail where a mechanism or a check is broken."""

from __future__ import annotations

import pandas as pd
import pytest

from evolvingdp.audit import ledger
from evolvingdp.audit.formulas import Measured
from evolvingdp.audit.ledger import FOLLOWED, Entry
from evolvingdp.book.checkout import params_of
from evolvingdp.book.result import Result
from evolvingdp.notebooks.audit import verified_privacy as verified

SMALL = {"runs": (100, 200), "n_reports": (1, 30), "n_users": 10, "repetitions": 2}


def ran(**changes):
    params = params_of("audit/verified_privacy").make(overrides=SMALL | changes)
    return Result.of(verified, params, 0, verified.run(params, 0))


@pytest.fixture
def claims(monkeypatch):
    def run(measured=1.0):
        one = Entry(
            "sign_flip",
            "core",
            "SignFlip",
            "a report",
            "any",
            FOLLOWED,
            lambda settings, _: Measured(1.0, measured, 0.0, "", settings),
        )
        monkeypatch.setattr(ledger, "entries", lambda: (one,))
        result = ran()
        return result, {claim.claim.split(":")[0]: claim.holds for claim in result.claims}

    return run


PROMISE = "No mechanism loses more than it promises at any setting that was tried"


def test_a_ledger_that_holds_is_said_to_hold(claims):
    result, held = claims()
    assert held[PROMISE]
    assert (result.values["n_entries"], result.values["n_tight"], result.values["n_settings"]) == (1, 1, 16)
    assert verified.shown(result.table).iloc[0]["verdict"] == "tight"


def test_a_broken_promise_is_said_to_fail_and_a_loose_one_is_kept(claims):
    result, held = claims(measured=1.01)
    assert not held[PROMISE]
    assert verified.shown(result.table).iloc[0]["verdict"] == "broken"
    result, held = claims(measured=0.9)
    assert held[PROMISE]
    assert verified.shown(result.table).iloc[0]["verdict"] == "kept"


def test_the_failures_are_told_from_the_client_as_stated(claims):
    table = verified.failure_table(claims()[0].table).set_index("client")
    assert table["caught exactly"].to_dict() == {
        verified.KEPT: "no", verified.REDRAWN: "yes", verified.UNCLEARED: "yes",
    }  # fmt: skip


def test_losses_stand_over_their_promise_and_each_chapter_has_its_ranks(claims):
    table = claims()[0].table
    more = table[table.part == "ledger"].assign(id="other", chapter="evolving", measured=1.2, kept=False)
    shown = verified.losses(pd.concat([table, more]))
    assert shown.verified.tolist() == [1.0, 1.2]
    assert shown.place.tolist() == [1.0, 1.0]
    assert shown.kept.tolist() == [True, False]


def test_a_loose_loss_is_told_from_its_promise_and_a_small_one_is_a_power_of_ten(claims):
    table = claims(measured=0.99996)[0].table
    assert verified.shown(table).measured.tolist() == ["0.99996"]
    assert verified.shown(claims(measured=1.0)[0].table).measured.tolist() == ["1"]
    assert verified.shown(claims(measured=1.3882e-4)[0].table).measured.tolist() == ["1.388e-04"]


def test_rows_are_named_in_words_from_a_capital_on_and_each_in_its_own():
    rows = [(one.mechanism, one.neighbours) for one in ledger.entries()]
    assert len(set(rows)) > 50
    assert [name for name, _ in rows if "_" in name or name[0].islower() or len(name) > 58] == []
    assert len({one.id for one in ledger.entries()}) == len(rows)
