"""What the page and the figures show of a run: recall, its scores, and the general stream."""

from __future__ import annotations

import re

import pandas as pd

from evolvingdp.experiment import Result
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.groups import BOUND, GROUPS
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.methods import (
    EXPONENTIAL,
    FAMILIES,
    GAUSSIAN,
    METHODS,
    RENYI,
    REPEATED,
)
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.params import Params


def recall(table: pd.DataFrame, part: str, by: str) -> pd.DataFrame:
    """Mean, deviation and number of the runs' recall: a row a method, value of `by` and family."""
    long = table[table.part == part].melt(["method", by], FAMILIES, "family", "recall")
    return long.groupby(["method", by, "family"], sort=False).recall.agg(["mean", "std", "count"]).reset_index()


def score_table(result: Result[Params]) -> pd.DataFrame:
    part = result.table[result.table.part == "example"]
    rows = []
    for method in METHODS:
        runs = part[part.method == method]
        shares = {f"recall {family}": f"{runs[family].mean():.4f}" for family in FAMILIES}
        wrong = f"{int((runs.absent > 0).sum())} of {len(runs)}"
        chosen = {"runs with a report of weight zero": wrong, "its setting": runs.setting.iloc[0]}
        rows.append({"method": method} | shares | chosen)
    return pd.DataFrame(rows)


def group_table(table: pd.DataFrame) -> pd.DataFrame:
    """The smallest group, a row a setting; of AboveThreshold's noises, the textbook's and the best."""
    part = table[table.part == "groups"].astype({"n_users": int, "reports": int, "bits": int})
    found = part.pivot(index=["n_users", "reports", "bits"], columns="method", values="size").sort_index()
    noises = found[[REPEATED, EXPONENTIAL, RENYI, GAUSSIAN]]
    which = noises.idxmin(axis="columns").astype(str).str.split(", ").str[1]
    sizes = found[[BOUND, *GROUPS]].drop(columns=[EXPONENTIAL, RENYI]).map("{:,.0f}".format)
    sizes[GAUSSIAN] = noises.min(axis="columns").map("{:,.0f}".format) + " (" + which + ")"
    sizes = sizes.rename(columns={GAUSSIAN: "AboveThreshold, its best noise"}).reset_index()
    sizes["n_users"] = sizes.n_users.map("{:,}".format)
    named = sizes.rename(columns={"n_users": "n", "reports": "k", "bits": "log2 |X|"}).astype(str)
    return named.rename(columns=lambda name: re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name))  # a narrow head breaks between words


def general_table(table: pd.DataFrame) -> pd.DataFrame:
    """A row a k."""
    part = table[table.part == "general"]
    rows = []
    for reports in sorted(int(k) for k in part.reports.unique()):
        runs = part[part.reports == reports]
        share = f"{runs.heavy_share.mean():.4f} (sd {runs.heavy_share.std():.4f})" if runs.events.any() else "there are none"
        rows.append({"k": f"{reports}", "heavy elements found": share, "elements found": f"{runs.found.mean():,.0f}"})
    return pd.DataFrame(rows)
