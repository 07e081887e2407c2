"""Figures in words, for those who listen to a page: numbers short enough to be heard, and where curves begin and end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def short(value: float) -> str:
    """`value` without an exponent, to three digits that count, a whole number to all of its: 0.0000731, 12.3, 1,024."""
    if not np.isfinite(value):
        return "nothing"
    rounded = float(value) if float(value).is_integer() else float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 1000 else np.format_float_positional(rounded, trim="-")


def digits(value: float, count: int = 2) -> str:
    """`value` to `count` digits that count, with zeros at its end, as a column of a table wants it: 0.10, 14, 0.0050."""
    return f"{value:#.{count}g}".rstrip(".")


def span(values: Any) -> str:
    """The smallest and the largest of `values`, those left out that are missing: '0.2 to 3'; one alone if they are equal."""
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    if not len(known):
        return "nothing"
    low, high = short(known.min()), short(known.max())
    return low if low == high else f"{low} to {high}"


def ends(frame: pd.DataFrame, x: str, y: str) -> str:
    """`y` at the smallest and at the largest `x` at which it is known: '3 to 0.2', in this order, for a curve that falls."""
    line = frame.dropna(subset=[y]).sort_values(x)
    return f"{short(line[y].iloc[0])} to {short(line[y].iloc[-1])}" if len(line) else "nothing"


def curves(frame: pd.DataFrame, by: str, x: str, y: str) -> str:
    """Every curve of `frame` by its name, from its left end to its right end: 'naive from 3 to 9; ours from 2 to 1'."""
    lines = "; ".join(f"{name} from {ends(line, x, y)}" for name, line in frame.groupby(by, sort=False))
    return lines.replace("$", "").replace("\\", "")
