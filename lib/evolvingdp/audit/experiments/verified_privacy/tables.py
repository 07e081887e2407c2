"""What readers see of the table of Verified privacy."""

from __future__ import annotations

import pandas as pd

from evolvingdp.audit.ledger.entry import SLACK, TEST


def part(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of one part, without the columns that it does not have."""
    return table[table.part == name].dropna(axis=1, how="all")


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """The ledger as readers see it: verdict first, and a row's paper in front of what it is about."""
    rows = part(table, "ledger")
    return pd.DataFrame(
        {
            "verdict": list(map(_verdict, rows.kept, rows.unchanged, rows.tight)),
            "mechanism": rows.chapter.str.replace("_", " ") + ": " + rows.mechanism,
            "promise": rows.guarantee,
            "measured": rows.measured.map("{:.4g}".format),
            "checked": rows.how,
            "protects": rows.unit + " (" + rows.neighbours + ")",
            "mutant: its loss": rows.mutant + ": " + rows.broken.map("{:.4g}".format),
            "test": rows.test.str.replace(f"{TEST}[", "").str.rstrip("]"),
        }
    )


def _verdict(kept: bool, unchanged: bool, tight: bool) -> str:
    if not kept:
        return "broken"
    return "tight" if tight else "kept, as pinned" if unchanged else "changed"


def failure_table(table: pd.DataFrame) -> pd.DataFrame:
    """Which check catches which failure, at the largest number of reports."""
    rows = part(table, "failures")
    last = rows[rows.n_reports == rows.n_reports.max()]
    return pd.DataFrame(
        {
            "client": last.case,
            "reports": last.n_reports.map("{:.0f}".format),
            "promised": last.promised.map("{:.3f}".format),
            "exact loss": last.loss.map("{:.3f}".format),
            "audit: at least": last.bound.map("{:.3f}".format),
            "caught exactly": (last.loss > last.promised * (1 + SLACK)).map({True: "yes", False: "no"}),
            "caught from outside": (last.bound > last.promised).map({True: "yes", False: "no"}),
        }
    )
