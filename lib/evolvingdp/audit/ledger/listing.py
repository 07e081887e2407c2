"""The privacy ledger: all entries, and the table of what is measured."""

from __future__ import annotations

import functools
import re
from typing import Any

import pandas as pd

from evolvingdp.audit import coverage
from evolvingdp.audit.ledger import (
    continual_mean,
    core,
    evolving,
    heavy_hitters,
    sparse_vector,
)
from evolvingdp.audit.ledger.entry import Entry, kept, tight, unchanged

CHAPTERS = (
    core,
    heavy_hitters,
    evolving,
    continual_mean,
    sparse_vector,
)

_WRITTEN = {
    **{word: word.upper() for word in ("olh", "rappor", "loloha")},
    **{word: word.capitalize() for word in ("erlingsson", "hadamard", "honaker", "laplace", "gaussian")},
    "renyi": "Rényi",
    "future rand": "FutureRand",
    "one_report": "one report",
    "two_reports": "two reports",
    "tight-proof": "tight proof",
}  # what parameters are called in code, and in words


@functools.cache
def entries() -> tuple[Entry, ...]:
    """All entries, in the order of the chapters."""
    return tuple(entry for chapter in CHAPTERS for entry in chapter.entries())


def table(one_in: int = 1) -> pd.DataFrame:
    """The ledger, a row an entry; the first of each `one_in` is computed, and the others have no losses and no verdicts.

    Raises LookupError where a mechanism of the library has no entry.
    """
    if missing := coverage.without_entry(one for entry in entries() for one in entry.covers):
        raise LookupError(f"the privacy ledger must have an entry for {', '.join(missing)}")
    every = enumerate(entries())
    return pd.DataFrame([_named(entry) | (_computed(entry) if place % one_in == 0 else {}) for place, entry in every])


def _named(entry: Entry) -> dict[str, Any]:
    names = (
        "id",
        "chapter",
        "guarantee",
        "unit",
        "neighbours",
        "how",
        "promised",
        "delta",
        "pinned",
        "test",
    )
    return {name: getattr(entry, name) for name in names} | {"mechanism": _written(entry.mechanism)}


def _computed(entry: Entry) -> dict[str, Any]:
    measured = entry.measure()
    return {
        "measured": measured,
        "kept": kept(measured, entry.promised),
        "unchanged": unchanged(measured, entry.pinned),
        "tight": tight(measured, entry.promised),
    }


def _written(name: str) -> str:
    """The name of a mechanism with parameters in words, from a capital on."""
    words = re.sub(rf"\b({'|'.join(_WRITTEN)})\b", lambda match: _WRITTEN[match[0]], name)
    return words[0].upper() + words[1:]
