"""`{titles}`: how many titles of references.bib were compared with what references.csv holds, and when.

A row there is a work, the title that a stored copy of a public page gives it, and that page's address: the work's `own` (of
its DOI, its arXiv number or its publisher), of another `version`, of a library or an author (`other`), or of one
`citing` it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd


def compared(root: Path, *_: str | Sequence[str]) -> str:
    """Raises OSError without references.csv."""
    rows = pd.read_csv(root / "book" / "references.csv", dtype=str, keep_default_na=False)
    own, version, other, citing, none = (sum(rows["page"] == page) for page in ("own", "version", "other", "citing", ""))
    return (
        f"On {rows['date'].max()}, {len(rows) - none} of {len(rows)} titles were compared with copies of public pages: "
        f"{own} with the work's own or its publisher's, {version} with another version's, {other} with a library's or an "
        f"author's, {citing} with that of a work which cites it. For {none} none was found (`book/references.csv`)."
    )
