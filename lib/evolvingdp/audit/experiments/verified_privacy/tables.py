"""What readers see of the table of Verified privacy."""

from __future__ import annotations

import pandas as pd

from evolvingdp.audit.ledger.entry import SLACK, TEST

PAPERS = {
    "core": "What all four papers use",
    "heavy_hitters": "Heavy hitters: Bassily et al. (2020), and their rivals",
    "evolving": "Evolving data: Joseph et al. (2018), and their rivals",
    "continual_mean": "Continual means: George et al. (2022), and what came after",
    "sparse_vector": "Sparse vector: Kaplan et al. (2021), and what came after",
}


def part(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of one part, without the columns that it does not have."""
    return table[table.part == name].dropna(axis=1, how="all")


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """The ledger as readers see it: by paper, which the page makes headings of, and each row's verdict first."""
    rows = part(table, "ledger")
    return pd.DataFrame(
        {
            "paper": rows.chapter.map(PAPERS),
            "verdict": list(map(_verdict, rows.kept, rows.unchanged, rows.tight)),
            "mechanism": rows.mechanism,
            "promise": rows.guarantee,
            "measured": rows.measured.map("{:.4g}".format),
            "checked": rows.how,
            "protects": rows.unit + " (" + rows.neighbours + ")",
            "mutant (its loss)": rows.mutant + " (" + rows.broken.map("{:.4g}".format) + ")",
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
