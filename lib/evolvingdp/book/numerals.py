"""Numbers as people write them: 76,600 and 5.5·10⁻⁵ where a computer prints 7.66e+04 and 5.5e-05, and 0.5 for .5."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_END = r"(?!\w|\.\d)"
_EXPONENT = re.compile(rf"(?<![\w.])([-−]?)(\d+(?:\.\d+)?)e([+-]?\d+){_END}|(?<![\w.])(\d+)\^([-+]?\d+){_END}")
_BARE = re.compile(r"(?<![\w.,\])}])\.(?=\d)")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_CELL = re.compile(r"[-+−]?([\d.,]+|([\d.,]+·)?10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)[ %x]*(\(.*\)|± ?[\d.,]+)?|inf|no|none|")
_YEAR = r"(?:1[6-9]|20)\d\d"
_LONG = re.compile(rf"(?<![\w.,:/#·^−–-])(?!{_YEAR}\b)\d{{4,6}}(?!\w|[.,:/–-]\d)")
_VERBATIM = re.compile(r"((?:\{[\w:-]+\})?`[^`]*`|\$[^$]*\$|\[[^]]*\]\{\.label\}|\]\([^)]*\)|https?:\S+)")
_LARGEST = 6  # powers of ten up to which all digits are written


def readable(text: str) -> str:
    """Markdown `text` with its numbers as people write them, but in code, formulas, roles, addresses and labels; a whole one
    alone waits for its column."""
    parts = _VERBATIM.split(text)
    parts[::2] = [_BARE.sub("0.", _EXPONENT.sub(_power, part)) for part in parts[::2]]
    if not text.strip().isdigit():
        parts[::2] = [_LONG.sub(lambda number: f"{int(number[0]):,}", part) for part in parts[::2]]
    return "".join(parts)


def _power(match: re.Match[str]) -> str:
    sign, digits, power, base, raised = match.groups()
    if base:
        return f"{base}{raised.translate(_RAISED)}"
    if 0 <= int(power) <= _LARGEST:
        return f"{sign}{float(digits) * 10 ** int(power):,.0f}"
    factor = "" if float(digits) == 1 else f"{digits}·"
    return f"{sign}{factor}10{str(int(power)).translate(_RAISED)}"


def grouped(column: Iterable[str]) -> list[str]:
    """The cells of a column with commas between thousands, unless all that could have one may be years."""
    cells = [*column]
    years = not any(re.fullmatch(rf"(?!{_YEAR}$)\d{{4,}}", cell) for cell in cells)
    return [f"{int(cell):,}" if re.fullmatch(r"\d{4,}", cell) and not years else cell for cell in cells]


def numeric(column: list[str]) -> bool:
    """Whether the cells of a column are numbers, as far as there are any: such a column is set to the right."""
    cells = [readable(cell).strip(" *") for cell in column]
    return any(any(map(str.isdigit, cell)) for cell in cells) and all(map(_CELL.fullmatch, cells))


def markdown(cells: pd.DataFrame) -> str:
    """A table of texts as Markdown: columns of numbers on the right, as people write them."""
    sides = ["right" if numeric([*column]) else "left" for _, column in cells.items()]
    shown = cells.apply(lambda column: column if "seed" in str(column.name) else grouped(map(readable, column)))
    return str(shown.to_markdown(index=False, disable_numparse=True, colalign=sides))
