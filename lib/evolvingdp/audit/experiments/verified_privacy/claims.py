"""What Verified privacy says about its numbers, checked on its table."""

from __future__ import annotations

import math

import pandas as pd

from evolvingdp.audit.experiments.verified_privacy.params import (
    DIGITS,
    INTEGER,
    KEPT,
    LESS,
    REDRAWN,
    RIGHT,
    UNCLEARED,
    Params,
)
from evolvingdp.audit.experiments.verified_privacy.tables import computed, part
from evolvingdp.audit.ledger.entry import ADVERSARY, COMPOSED, EXACT, FORMULA, SENSITIVITY, SLACK
from evolvingdp.experiment import Claim, Scalar, at_least, at_most


def _at_most_runs(table: pd.DataFrame) -> tuple[pd.Series, pd.Series, pd.DataFrame]:
    """With the most runs the mean bounds; with the most reports the share recovered, and the failures; by case."""
    convergence, told, wrong = (part(table, name) for name in ("convergence", "recovered", "failures"))
    mean = convergence[convergence.runs == convergence.runs.max()].groupby("case").bound.mean()
    end = told[told.n_reports == told.n_reports.max()].groupby("case").recovered.mean()
    return mean, end, wrong[wrong.n_reports == wrong.n_reports.max()].set_index("case")


def claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    rows, (boxes, convergence, digits) = computed(table), (part(table, name) for name in ("box", "convergence", "digits"))
    mean, end, last = _at_most_runs(table)
    made = [
        at_most("No mechanism of a computed row loses more than it promises: number that do", (~rows.kept).sum(), 0),
        at_most("No computed row that is loose has another loss than the one that is pinned: number that have", (~rows.unchanged).sum(), 0),
        at_most("Every computed row that is not tight is pinned: number that are not", (~rows.tight & rows.pinned.isna()).sum() if "pinned" in rows else (~rows.tight).sum(), 0),
        at_most("No audit from outside refutes a mechanism of this book: largest bound over promise", (boxes.bound / boxes.promised).max(), 1.0),
        at_most("Of 1 + noise no digit is finer than 2^-53: most digits", digits[digits["count"] == 1].digits.max(), 53),
        at_least("Of 0 + noise many are: share of numbers in (0, 1)", digits[(digits["count"] == 0) & (digits.digits > 53)].share.sum(), 0.3),
        at_least("The last digits of naive Laplace noise refute epsilon = 1: mean bound", mean[DIGITS], 1.0),
        at_most("Integer noise has none: largest bound from digits", convergence[convergence.case == INTEGER].bound.max(), 0.0),
    ]  # fmt: skip
    if max(params.n_reports) >= 30:
        made += [
            at_most("A client as stated keeps its promise: exact loss over promise", last.loss[KEPT] / last.promised[KEPT], 1 + SLACK),
            at_least("A redrawn permanent response does not: exact loss over promise", last.loss[REDRAWN] / last.promised[REDRAWN], 1.0),
            at_least("Nor does a bit that is never cleared: exact loss over promise", last.loss[UNCLEARED] / last.promised[UNCLEARED], 1.0),
            at_least("A redrawn response is caught from outside: bound over promise", last.bound[REDRAWN] / last.promised[REDRAWN], 1.0),
            at_least("So is a bit that is never cleared: bound over promise", last.bound[UNCLEARED] / last.promised[UNCLEARED], 1.0),
        ]  # fmt: skip
    if max(params.n_reports) >= 200:
        made.append(at_least("A redrawn response tells the words of all users: share recovered", end[REDRAWN], 1.0))
    if max(params.runs) >= 30_000:
        made.append(at_least("10 % less noise is refuted from outside: mean bound", mean[LESS], 1.0))
    return made


def values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    rows, boxes, digits = (part(table, name) for name in ("ledger", "box", "digits"))
    done = computed(table)
    mean, end, last = _at_most_runs(table)
    how = rows.how.value_counts()
    return {
        "n_entries": len(rows),
        "n_computed": len(done),
        "n_tight": int(done.tight.sum()),
        "n_exact": int(how.get(EXACT, 0)),
        "n_sensitivity": int(how.get(SENSITIVITY, 0)),
        "n_formula": int(how.get(FORMULA, 0)),
        "n_composed": int(how.get(COMPOSED, 0)),
        "n_adversary": int(how.get(ADVERSARY, 0)),
        "n_boxes": len(boxes),
        "n_boxes_showing": int((boxes.bound > 0).sum()),
        "box_runs": params.box_runs,
        "box_confidence": params.box_confidence,
        "boxes_confidence": 1 - len(boxes) * (1 - params.box_confidence),
        "box_most": float((boxes.bound / boxes.promised).max()),
        "most_runs": max(params.runs),
        "most_reports": max(params.n_reports),
        "n_users": params.n_users,
        "bound_right": float(mean[RIGHT]),
        "bound_less": float(mean[LESS]),
        "bound_digits": float(mean[DIGITS]),
        "most_possible": math.log(max(params.runs) / 3.7),
        "recovered_kept": float(end[KEPT]),
        "recovered_redrawn": float(end[REDRAWN]),
        "promised_permanent": float(last.promised[KEPT]),
        "loss_redrawn": float(last.loss[REDRAWN]),
        "loss_uncleared": float(last.loss[UNCLEARED]),
        "audit_redrawn": float(last.bound[REDRAWN]),
        "audit_uncleared": float(last.bound[UNCLEARED]),
        "share_finer": float(digits[(digits["count"] == 0) & (digits.digits > 53)].share.sum()),
    }
