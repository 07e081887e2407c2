"""What readers see of the table of Verified privacy."""

from __future__ import annotations

import pandas as pd

from evolvingdp.audit.ledger.entry import SLACK, TEST


def part(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of one part, without the columns that it does not have."""
    return table[table.part == name].dropna(axis=1, how="all")


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """The ledger as readers see it."""
    rows = part(table, "ledger")
    return pd.DataFrame(
        {
            "mechanism": rows.mechanism,
            "epsilon, delta": rows.guarantee,
            "unit": rows.unit,
            "neighbours": rows.neighbours,
            "verified": rows.how,
            "measured": rows.measured.map("{:.4g}".format),
            "tight": rows.tight.map({True: "yes", False: "no"}),
            "mutant": rows.mutant,
            "its loss": rows.broken.map("{:.4g}".format),
            "test": rows.test.str.replace(f"{TEST}[", "").str.rstrip("]"),
        }
    )


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
