"""`{ledger} results/audit/verified_privacy/audit-chapters.csv`: the ledger, a table that a script fills.

So it reads from disk, too, is searched and sorted (_static/tables.js), and weighs nothing for whoever does not open it.
Without scripts, and in print, a line leads to the data.
"""

from __future__ import annotations

import csv
import html
import json
from collections.abc import Sequence
from pathlib import Path

WIDTHS = 10, 7, 19, 12, 11, 8, 10, 15, 8  # percent, of the first columns


def table(root: Path, name: str, _: Sequence[str]) -> str:
    """The CSV file `name` of the book's folder; its first column names the groups of rows."""
    with (root / "book" / name).open(newline="") as file:
        head, *rows = csv.reader(file)
    names = "".join(f"<th>{html.escape(column)}</th>" for column in head)
    columns = "".join(f'<col style="width: {width}%">' for width in WIDTHS[: len(head)])
    data = json.dumps(rows, ensure_ascii=False).replace("<", "\\u003c")  # no cell ends the script
    return (
        f'<table class="searchable grouped table"><colgroup>{columns}</colgroup>\n'
        f"<thead><tr>{names}</tr></thead><tbody></tbody></table>\n"
        f'<script type="application/json" class="rows">{data}</script>\n'
        '<p class="unscripted">A script draws the rows; they are the data of the figure <code>audit-chapters</code>.</p>'
    )
