"""The reader's results against ours, in numbers: claim by claim, and the tidy data behind each figure.

Every difference is yours - ours; a relative one is divided by the size of ours.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.book.result import in_words

COORDINATES = ("value", "rank", "step", "epoch", "repetition")  # columns that say where a row stands, in every notebook
NONE = "–"  # no number to show

Claim = dict[str, Any]  # an entry of claims.json


def number(value: float) -> str:
    """`value` in four digits; a dash for nan."""
    return NONE if np.isnan(value) else f"{value:.4g}"


def relative(difference: float, ours: float) -> float:
    """`difference` in units of |ours|; nan where ours is 0 and the difference is not."""
    return 0.0 if difference == 0 else difference / abs(ours) if ours else float("nan")


def claims(ours: list[Claim], yours: list[Claim]) -> pd.DataFrame:
    """A row per claim, in our order: claim, ours, yours, difference, relative, and the verdicts.

    Claims with the same sentence belong together, then those that differ only in the sentence's numbers; one that the
    other side does not make has None there.
    """
    rows = []
    for mine, other in _partners(ours, yours):
        here, there = (claim["value"] if claim else float("nan") for claim in (mine, other))
        rows.append(
            {
                "claim": (mine or other or {})["claim"],
                "ours": here,
                "yours": there,
                "difference": there - here,
                "relative": relative(there - here, here),
                "our_bound": mine and in_words(mine["relation"], mine["bound"]),
                "your_bound": other and in_words(other["relation"], other["bound"]),
                "our_verdict": mine and mine["holds"],
                "your_verdict": other and other["holds"],
            }
        )
    return pd.DataFrame(rows).astype({"our_verdict": object, "your_verdict": object}) if rows else pd.DataFrame()


def changed(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of `claims` whose verdict is not the same on both sides."""
    return table[[mine != other for mine, other in zip(table["our_verdict"], table["your_verdict"], strict=True)]]


def _partners(ours: list[Claim], yours: list[Claim]) -> list[tuple[Claim | None, Claim | None]]:
    partner: dict[int, int] = {}
    for form in (str, _without_numbers):
        for place, claim in enumerate(ours):
            free = [
                other
                for other, candidate in enumerate(yours)
                if other not in partner.values() and form(candidate["claim"]) == form(claim["claim"])
            ]
            if place not in partner and free:
                partner[place] = free[0]
    pairs: list[tuple[Claim | None, Claim | None]] = [
        (claim, yours[partner[place]] if place in partner else None) for place, claim in enumerate(ours)
    ]
    return pairs + [(None, claim) for other, claim in enumerate(yours) if other not in partner.values()]


def _without_numbers(sentence: str) -> str:
    return re.sub(r"\d[\d,._]*(?:e[+-]?\d+)?", "#", sentence)


@dataclass(frozen=True, eq=False)
class Difference:
    """Two tables of one figure: how their rows were matched, and a row per column that is no key.

    `columns` has column, rows (compared), unequal (of those), lacking (matched rows where one side lacks a value), and
    for numbers the largest and the root-mean-square difference, absolute and relative (nan where nothing can be compared).
    """

    keys: tuple[str, ...]
    in_order: bool  # the keys leave rows that look the same: of those the first is matched with the first, and so on
    matched: int
    only_ours: int
    only_yours: int
    columns: pd.DataFrame


def read(path: Path) -> pd.DataFrame:
    """A figure's tidy data; a word such as "null" stays a word."""
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


def figure(ours: pd.DataFrame, yours: pd.DataFrame, settings: Collection[str] = ()) -> Difference:
    """Match the rows of two tables by their key columns and measure every other column that both have.

    `settings` are names of numeric columns that tell rows apart: parameters and sweeps.
    """
    shared = [name for name in ours.columns if name in yours.columns]
    ours, yours = (pd.DataFrame({name: _comparable(side[name], ours, yours) for name in shared}) for side in (ours, yours))
    keys = key_columns(ours, yours, settings)
    in_order = not _tell_apart(keys, ours, yours)
    places = [side.groupby(keys, dropna=False).cumcount() if keys else range(len(side)) for side in (ours, yours)]
    left, right = (side.assign(**{_PLACE: place}) for side, place in zip((ours, yours), places, strict=True))
    joined = left.merge(right, on=[*keys, _PLACE], how="outer", suffixes=_SIDES, indicator=True)
    matched = joined[joined["_merge"] == "both"]
    rows = [
        {"column": name} | _measured(*(matched[f"{name}{side}"] for side in _SIDES)) for name in shared if name not in keys
    ]
    counts = [int((joined["_merge"] == kind).sum()) for kind in ("both", "left_only", "right_only")]
    return Difference(tuple(keys), in_order, counts[0], counts[1], counts[2], pd.DataFrame(rows))


_SIDES, _PLACE = ("\0ours", "\0yours"), "\0place"  # no column is called so


def key_columns(ours: pd.DataFrame, yours: pd.DataFrame, settings: Collection[str] = ()) -> list[str]:
    """The columns that tell a row from the others on both sides, in the tables' order.

    Text comes first, with what `settings` and `COORDINATES` name; then, from the left and only as far as needed, whole
    numbers and other numbers that take the same values on both sides.  A column with one value on each side is no key: it
    tells nothing apart, and where the two differ it is what the reader has changed.
    """
    varying = [name for name in ours.columns if max(side[name].nunique(dropna=False) for side in (ours, yours)) > 1]
    numbers = [name for name in varying if pd.api.types.is_numeric_dtype(ours[name])]
    keys = [name for name in numbers if name in settings or name in COORDINATES]
    steady = [name for name in numbers if name not in keys and _same_values(ours[name], yours[name])]
    whole = [name for name in steady if all((side[name].dropna() % 1 == 0).all() for side in (ours, yours))]
    text = [name for name in varying if name not in numbers]
    found: list[str] = []
    for name in [*text, *whole, *(name for name in steady if name not in whole)]:
        if _tell_apart([*keys, *found], ours, yours):
            break
        found.append(name)
    for name in reversed([name for name in found if name in steady]):
        rest = [other for other in found if other != name]
        if _tell_apart([*keys, *rest], ours, yours) == _tell_apart([*keys, *found], ours, yours):
            found = rest
    return [name for name in ours.columns if name in keys or name in found]


def _comparable(column: pd.Series[Any], ours: pd.DataFrame, yours: pd.DataFrame) -> pd.Series[Any]:
    """`column` as numbers where both sides hold numbers or truth values, as text where one does not."""
    both = [side[column.name].dropna() for side in (ours, yours)]
    if all(pd.api.types.is_numeric_dtype(values) or set(values) <= {True, False} for values in both):
        return column.astype(float)
    return column.map(str, na_action="ignore").astype(object).where(column.notna(), "")


def _tell_apart(keys: list[str], *sides: pd.DataFrame) -> bool:
    """Whether no two rows of a side have the same `keys`."""
    return all(not side.duplicated(keys).any() if keys else len(side) < 2 for side in sides)


def _same_values(ours: pd.Series[Any], yours: pd.Series[Any]) -> bool:
    """Whether at least half of the fewer values occur on the other side, too: a grid, not something measured."""
    mine, other = set(ours.dropna()), set(yours.dropna())
    return 2 * len(mine & other) >= min(len(mine), len(other))


def _measured(ours: pd.Series[Any], yours: pd.Series[Any]) -> dict[str, float]:
    """How two matched columns differ; infinite numbers have no difference and count as lacking unless they are equal."""
    if not pd.api.types.is_numeric_dtype(ours):
        unequal = int((ours != yours).sum())
        return {"rows": len(ours), "unequal": unequal, "lacking": 0} | dict.fromkeys(_SIZES, float("nan"))
    here, there = np.asarray(ours, float), np.asarray(yours, float)
    both = np.isfinite(here) & np.isfinite(there)
    same = (here == there) | (np.isnan(here) & np.isnan(there))
    here, difference = here[both], there[both] - here[both]
    relatives = np.abs([relative(gap, base) for gap, base in zip(difference, here, strict=True)])
    relatives = relatives[~np.isnan(relatives)]
    sizes = [size(values) for values in (np.abs(difference), relatives) for size in (_largest, _rms)]
    counts = {"rows": int(both.sum()), "unequal": int((difference != 0).sum()), "lacking": int((~both & ~same).sum())}
    return counts | dict(zip(_SIZES, sizes, strict=True))


_SIZES = ("largest", "rms", "largest_relative", "rms_relative")


def _largest(values: Any) -> float:
    return float(values.max()) if len(values) else float("nan")


def _rms(values: Any) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else float("nan")
