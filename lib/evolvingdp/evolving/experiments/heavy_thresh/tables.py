"""What the page on HEAVYTHRESH shows as a table, from a row a run."""

from __future__ import annotations

import pandas as pd

from evolvingdp.evolving.constants import told
from evolvingdp.evolving.experiments.heavy_thresh.params import Params
from evolvingdp.evolving.experiments.heavy_thresh.settings import CREWS, DICTIONARIES, NAIVE, PAPER, TUNED
from evolvingdp.experiment import Result


def dictionaries(result: Result[Params]) -> pd.DataFrame:
    table = result.table[result.table.part == "dictionary"]
    rows = []
    for place, (n_users, n_words, horizon, epoch_length, epsilon) in enumerate(DICTIONARIES):
        ours, paper, naive, crews = (
            table[(table.place == place) & (table.method == name)] for name in (TUNED, PAPER, NAIVE, CREWS)
        )
        rows.append(
            {
                "$n$": f"{n_users:,}",
                "$d$": f"{n_words:,}",
                "$T$": f"{horizon}",
                r"$\ell$": f"{epoch_length:,}",
                r"$\epsilon$": f"{epsilon:g}",
                "largest error": f"{ours.mean_error.mean():.3f} ({ours.mean_error.std():.3f})",
                "top 5 found": f"{ours.recall.mean():.2f}",
                "bound": told(ours.bound.iloc[0], 2),
                "roles by lot: error": f"{crews.mean_error.mean():.4f}",
                "top 5 found ": f"{crews.recall.mean():.2f}",
                "paper's constants: error": f"{paper.mean_error.mean():.3f} ({paper.mean_error.std():.3f})",
                "top 5 ": f"{paper.recall.mean():.2f}",
                r"$\epsilon/T$: error": f"{naive.mean_error.mean():.3f}",
                "top 5": f"{naive.recall.mean():.2f}",
            }
        )
    return pd.DataFrame(rows)
