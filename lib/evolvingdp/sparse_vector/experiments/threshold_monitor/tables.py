"""Scales and losses, a row a k."""

from __future__ import annotations

import pandas as pd

from evolvingdp.experiment import Result
from evolvingdp.experiment.describe import short
from evolvingdp.sparse_vector.calibration import METHODS
from evolvingdp.sparse_vector.experiments.threshold_monitor.params import Params


def calibrations(table: pd.DataFrame) -> pd.DataFrame:
    """A row a k, a column of scales a method."""
    part = table[table.part == "calibration"]
    return part.pivot(index="reports", columns="method", values="scale")[list(METHODS)]


def score_table(result: Result[Params]) -> pd.DataFrame:
    """The scales, a row a k."""
    scales = calibrations(result.table)
    headings = {
        "theorem": "Theorem 3.2",
        "epochs": "Theorem 3.8",
        "tight-proof": "paper's proof",
        "renyi": "Rényi",
        "exact": "exact",
    }
    rows = [
        {"k": f"{int(k)}"} | {headings[method]: short(scales.loc[k, method]) for method in METHODS} for k in scales.index
    ]
    return pd.DataFrame(rows)


def loss_table(result: Result[Params]) -> pd.DataFrame:
    """How much noise the theorem wastes, and what the adversary attains of the promise, a row a k."""
    scales = calibrations(result.table)
    exact = result.table[(result.table.part == "calibration") & (result.table.method == "exact")].set_index("reports")
    rows = [
        {
            "k": f"{int(k)}",
            "noise, Theorem 3.2 over exact": f"{scales.loc[k, 'theorem'] / scales.loc[k, 'exact']:,.0f}",
            "attained, Laplace noise alone": f"{exact.attained_laplace[k]:.3f}",
            "attained, with the inner noise": f"{exact.attained[k]:.3f}",
        }
        for k in scales.index
    ]
    return pd.DataFrame(rows)
