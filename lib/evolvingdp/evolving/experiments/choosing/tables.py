"""What the figures, claims and the page make of the table: means over streams, and who wins where."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evolvingdp.evolving.experiments.choosing.methods import CHOSEN, CHOSEN_LATE, OPTIMAL, TUNED
from evolvingdp.evolving.experiments.split_users import CREWS, HINDSIGHT, ONCE, ONLINE, SIXTEEN
from evolvingdp.experiment import Result

SETTING = ["n_users", "epsilon", "epoch_length", "horizon", "changes"]
ALIASES = (CHOSEN, CHOSEN_LATE, SIXTEEN)
FAMILIES = {TUNED: "THRESH, tuned", CREWS: CREWS, ONLINE: ONLINE, HINDSIGHT: HINDSIGHT, OPTIMAL: OPTIMAL}


def line(table: pd.DataFrame, part: str) -> pd.DataFrame:
    """Means over the streams with their deviations, per method and point of a sweep."""
    groups = table[table.part == part].groupby(["method", "horizon" if part == "rare" else part], sort=False)
    columns = groups[["mean_error", "max_error"]]
    runs = groups.size().rename("runs")
    return pd.concat([columns.mean(), columns.std().add_suffix("_sd"), runs], axis=1).reset_index()


def winners(table: pd.DataFrame, measure: str, online: bool) -> pd.DataFrame:
    """A row per setting of the map: the method with the smallest error, `best`, and how many times that the choice has,
    `factor`, with its `standard_error`."""
    groups = table[table.part == "map"].groupby([*SETTING, "method"])[measure]
    means, relative = groups.mean().unstack("method"), (groups.sem() / groups.mean()).unstack("method")
    chosen = CHOSEN if online else CHOSEN_LATE
    methods = means.drop(columns=[*ALIASES, *([HINDSIGHT] if online else [])])
    best, error = methods.idxmin(axis=1), methods.min(axis=1)
    factor = means[chosen] / error
    of_best = relative.to_numpy()[np.arange(len(best)), relative.columns.get_indexer(best)]
    named = best.where(best.isin([*FAMILIES]), ONCE)  # users split over periods of any length
    columns = {
        "best": named,
        "error": error,
        "factor": factor,
        "standard_error": factor * np.hypot(relative[chosen], of_best),
    }
    return pd.DataFrame(columns).reset_index()


def shares(result: Result) -> pd.DataFrame:  # type: ignore[type-arg]
    """Of the settings of the map, in how many each method has the smallest error."""
    views = {
        "mean error, online": ("mean_error", True),
        "mean error, in hindsight": ("mean_error", False),
        "largest error, online": ("max_error", True),
    }
    columns = {name: winners(result.table, measure, online).best.value_counts() for name, (measure, online) in views.items()}
    counts = pd.DataFrame(columns).fillna(0).astype(int)
    order = [name for name in (HINDSIGHT, ONLINE, CREWS, TUNED, ONCE, OPTIMAL) if name in counts.index]
    return counts.loc[order].rename_axis("smallest").reset_index()


def geometric_mean(values: pd.Series) -> float:
    return float(np.exp(np.log(values).mean()))
