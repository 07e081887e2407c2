"""Tables of what was measured, from benchmarks/results.

    ```{timings}
    Ten million users send a bit each | frequency oracle | per user: client and server
    thresh
    ```

is a table of seconds and memory from speed.csv, a row for each line: what it is, the table, its row; or all rows of a table.
`{loop}` is the table of what a change waits for, if loop.csv is there.
`{numbers} data/x.csv` shows that file.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from evolvingdp.book.numerals import markdown, readable

FOLDER = Path("benchmarks", "results")


def timings(root: Path, _: str, lines: Sequence[str]) -> str:
    """Raises OSError or ValueError for a line without a result."""
    table, known = ["| | size | seconds | memory (GB) |", "|---|--:|--:|--:|"], _rows(root / FOLDER / "speed.csv")
    for line in lines:
        *said, name, what = ["", *line.split(" | ")] if " | " in line else [line, ""]
        found = [row for row in known if row["table"] == name.strip() and what.strip() in ("", row["what"])]
        if not found:
            raise ValueError(f"speed.csv has no {line!r}")
        for row in found:
            told = row["what"] if not what else said[-1].strip()
            table.append(f"| {told} | {row['size']} | {row['seconds']} | {row['peak memory (GB)']} |")
    return "\n".join(map(readable, table))


def numbers(root: Path, file: str, _: Sequence[str]) -> str:
    """Raises OSError without that file."""
    return markdown(pd.read_csv(root / file, dtype=str, keep_default_na=False))


def loop(root: Path, *_: object) -> str:
    """Raises OSError without loop.csv."""
    now = _rows(root / FOLDER / "loop.csv")
    at = next(iter(now[0]))
    table = [f"| {at} | clock (s) | processor (s) |", "|---|--:|--:|"]
    table += [f"| {row[at]} | {row['clock (s)']} | {row['processor (s)']} |" for row in now if row["processor (s)"]]
    return "\n".join(map(readable, table)) + "\n\n{measured}`loop`\n"


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
