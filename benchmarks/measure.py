"""Where tables go, each with its stamp."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from evolvingdp.book import dated

RESULTS = Path(__file__).parent / "results"


def write(name: str, table: pd.DataFrame, command: str) -> None:
    """The table of the script that runs, printed, and dated in benchmarks/results/, where the book's pages read it."""
    (RESULTS / f"{name}.csv").write_text(table.to_csv(index=False, lineterminator="\n"))
    dated.stamp(name, Path(sys.argv[0]), command, RESULTS)
    print(table.to_string(index=False))
