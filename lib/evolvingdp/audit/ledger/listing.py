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
    evolving_simulated,
    heavy_hitters,
    heavy_hitters_simulated,
    sparse_vector,
    sparse_vector_simulated,
)
from evolvingdp.audit.ledger.entry import Entry, kept, tight, unchanged

CHAPTERS = (
    core,
    heavy_hitters,
    heavy_hitters_simulated,
    evolving,
    evolving_simulated,
    continual_mean,
    sparse_vector,
    sparse_vector_simulated,
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


def table() -> pd.DataFrame:
    """The ledger, computed: a row an entry.  Raises LookupError where a mechanism of the library has none."""
    if missing := coverage.without_entry(one for entry in entries() for one in entry.covers):
        raise LookupError(f"the privacy ledger must have an entry for {', '.join(missing)}")
    return pd.DataFrame([_row(entry, entry.measure(), entry.broken()) for entry in entries()])


def _row(entry: Entry, measured: float, broken: float) -> dict[str, Any]:
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
        "mutant",
        "test",
    )
    return {name: getattr(entry, name) for name in names} | {
        "mechanism": _written(entry.mechanism),
        "measured": measured,
        "kept": kept(measured, entry.promised),
        "unchanged": unchanged(measured, entry.pinned),
        "tight": tight(measured, entry.promised),
        "broken": broken,
        "caught": not entry.holds(broken),
    }


def _written(name: str) -> str:
    """The name of a mechanism with parameters in words, from a capital on."""
    words = re.sub(rf"\b({'|'.join(_WRITTEN)})\b", lambda match: _WRITTEN[match[0]], name)
    return words[0].upper() + words[1:]
