"""What the scripts share: their arguments, and where tables go, each with its stamp."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from evolvingdp.book import dated

RESULTS = Path(__file__).parent / "results"


def asked(about: str | None, **defaults: Any) -> argparse.Namespace:
    """The options --name, told in `about`; a flag where the default is False, words without a name where it is a list."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        words = isinstance(default, list)
        how: Any = {"nargs": "*"} if words else {"action": "store_true"} if default is False else {"type": type(default)}
        parser.add_argument(name if words else f"--{name}", default=default, **how)
    return parser.parse_args()


def table(name: str, rows: pd.DataFrame) -> None:
    rows.to_csv(RESULTS / f"{name}.csv", index=False, lineterminator="\n")


def write(name: str, rows: pd.DataFrame, command: str, notebooks: dict[str, str] | None = None) -> None:
    """The table of the script that runs, printed if it is short, and dated in benchmarks/results/, which the book reads."""
    table(name, rows)
    dated.stamp(name, Path(sys.argv[0]), command, RESULTS, notebooks)
    if len(rows) <= 100:
        print(rows.to_string(index=False))
