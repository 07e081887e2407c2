"""The privacy ledger: of each mechanism what it promises, and the most that it was found to lose.

A row is either an entry of the registry, measured on settings and data that it draws (`exact.engine`), or a promise that no
small run shows: compositions, calibrations and samplers of integers (`formulas`). No number is entered by hand:
promises are parameters of what is measured. `how` it is verified:

- "record and replay": the entry point that ships runs, and the noise that hides a neighbour is solved for; reports keep
  what they said;
- "whole outputs": all that the entry point may draw is followed;
- "exact law", "composition", "adversary", "formula": as `formulas` says.

A row is tight where some setting loses all that is promised.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from evolvingdp.audit import formulas
from evolvingdp.audit.exact.engine import loss_of_trial
from evolvingdp.audit.formulas import Entry, Measured
from evolvingdp.audit.registry import listing
from evolvingdp.audit.registry.entry import FINITE, REPORTS, Mechanism

REPLAYED, FOLLOWED = "record and replay", "whole outputs"
HOW = (REPLAYED, FOLLOWED, *formulas.HOW)
SLACK = 1e-6  # relative: of the solver, and of rounding
_FEWEST = 3  # settings of a mechanism
TEST = "test_the_guarantee_is_kept"


def entries() -> tuple[Entry, ...]:
    """All rows, by chapter: `measure(settings, seed)` of a row is the worst of so many settings, where it has any."""
    of_registry = [
        Entry(
            one.id, one.chapter, _title(one), one.unit, one.neighbours, FOLLOWED if one.how == FINITE else REPLAYED,
            partial(worst, one),
        )
        for one in listing.mechanisms()
    ]  # fmt: skip
    others = [replace(one, measure=lambda *_, alone=one.measure: alone()) for one in formulas.formulas()]
    order = list(dict.fromkeys(one.chapter for one in of_registry))
    return tuple(sorted([*of_registry, *others], key=lambda one: order.index(one.chapter)))


def worst(mechanism: Mechanism, settings: int, seed: int = 0) -> Measured:
    """The largest loss over its promise, of as many settings as are tried of a mechanism of this cost; where it refuses all
    of them, of the first that it takes. Raises LookupError where it takes none of ten times as many."""
    found: list[Measured] = []
    cost = 1 if mechanism.how == REPORTS else mechanism.cost
    tries = max(_FEWEST, settings // cost)
    for number in range(10 * tries):
        if number >= tries and found:
            break
        trial, loss = loss_of_trial(mechanism, number, seed)
        if loss is not None:
            found.append(Measured(trial.epsilon, loss, trial.delta, str(trial.settings)))
    if not found:
        raise LookupError(f"{mechanism.id} must have a setting among {settings} that can be measured")
    most = max(found, key=lambda one: one.loss / one.promised)
    return Measured(most.promised, most.loss, most.delta, most.settings, len(found))


def kept(found: Measured) -> bool:
    return found.loss <= found.promised * (1 + SLACK)


def tight(found: Measured) -> bool:
    return abs(found.loss / found.promised - 1) <= SLACK


def table(settings: int, seed: int = 0) -> pd.DataFrame:
    """The ledger, a row an entry, with the worst of so many settings. Raises LookupError where something has no entry."""
    if missing := listing.unknown():
        raise LookupError(f"the registry must have an entry for {', '.join(missing)}")
    return pd.DataFrame([_row(one, one.measure(settings, seed)) for one in entries()])


def _row(entry: Entry, found: Measured) -> dict[str, Any]:
    named = {name: getattr(entry, name) for name in ("id", "chapter", "mechanism", "unit", "neighbours", "how")}
    promise = f"({found.promised:.4g}, {found.delta:.4g})" if found.delta else f"{found.promised:.4g}, pure"
    return named | {
        "guarantee": promise, "promised": found.promised, "delta": found.delta, "tried": found.tried, "measured": found.loss,
        "kept": kept(found), "tight": tight(found), "test": f"{TEST}[{entry.id}]",
    }  # fmt: skip


def _title(mechanism: Mechanism) -> str:
    """The class that it is, or its id in words."""
    first = mechanism.covers[0]
    return first.__name__ if inspect.isclass(first) else mechanism.id.replace("_", " ").capitalize()
