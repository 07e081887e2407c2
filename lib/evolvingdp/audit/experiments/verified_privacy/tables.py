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
CHAPTERS = {
    "core": "all four papers",
    "heavy_hitters": "heavy hitters",
    "evolving": "evolving data",
    "continual_mean": "continual means",
    "sparse_vector": "sparse vector",
}
VERDICTS = ("kept", "unchanged", "tight")
LEFT_OUT = "–"  # by a preset that computes one row in so many


def part(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of one part, without the columns that it does not have."""
    return table[table.part == name].dropna(axis=1, how="all")


def computed(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the ledger that have been computed."""
    rows = part(table, "ledger")
    return rows[rows.measured.notna()].astype(dict.fromkeys(VERDICTS, bool))


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """All of the ledger as readers see it: by paper, which the page makes headings of, and each row's verdict first."""
    rows, done = part(table, "ledger"), computed(table)
    found = pd.DataFrame(
        {
            "verdict": list(map(_verdict, done.kept, done.unchanged, done.tight)),
            "measured": list(map(_measured, done.measured, done.promised, done.tight)),
        },
        index=done.index,
    ).reindex(rows.index, fill_value=LEFT_OUT)
    return pd.DataFrame(
        {
            "paper": rows.chapter.map(PAPERS),
            "verdict": found.verdict,
            "mechanism": rows.mechanism,
            "promise": rows.guarantee,
            "measured": found.measured,
            "checked": rows.how,
            "protects": rows.unit + " (" + rows.neighbours + ")",
            "test": rows.test.str.replace(f"{TEST}[", "").str.rstrip("]"),
        }
    )


def _loss(epsilon: float, digits: int = 4) -> str:
    """A small one as a power of ten from a thousandth on, so that its neighbours in a column are, too."""
    return f"{epsilon:.{digits - 1}e}" if 0 < epsilon < 1e-3 else f"{epsilon:.{digits}g}"


def _measured(epsilon: float, promised: float, tight: bool) -> str:
    """A loss that is not tight with as many digits as tell it from the promise."""
    told = (digits for digits in range(4, 9) if tight or _loss(epsilon, digits) != _loss(promised, digits))
    return _loss(epsilon, next(told, 9))


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
