"""Past the paper: errors of each rung with bands, measured and stated."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evolvingdp.continual_mean.experiments.past_the_paper import rungs
from evolvingdp.continual_mean.experiments.past_the_paper.params import SETTINGS, Params
from evolvingdp.continual_mean.experiments.scores import ORDER_NAMES, root_mean_square
from evolvingdp.experiment import Result
from evolvingdp.experiment.describe import digits


def part(table: pd.DataFrame, name: str, by: list[str]) -> pd.DataFrame:
    """Root mean square errors with bands, the root of the mean predicted square, and the bias, of a part of the table."""
    mine = table[table.part == name].set_index(by)
    stated = mine.groupby(level=by, sort=False)[["predicted", "bias"]].mean()
    return root_mean_square(mine.square, by).assign(
        predicted=np.sqrt(stated.predicted).to_numpy(), bias=stated.bias.to_numpy()
    )


def ladder_table(result: Result[Params]) -> pd.DataFrame:
    """The page's table: error of each rung over the second half of the stream, measured (stated)."""
    return _shown(part(result.table, "ladder", ["rung", "setting"]), list(rungs.LADDER), SETTINGS)


def populations_table(result: Result[Params]) -> pd.DataFrame:
    """The page's table of users who differ, second half, measured (stated)."""
    titles = {population: title for population, (_, title) in rungs.POPULATIONS.items()}
    return _shown(part(result.table, "populations", ["rung", "setting"]), list(rungs.FOR_ALL_USERS), titles)


def orders_table(result: Result[Params]) -> pd.DataFrame:
    """The page's table of orders: error after a hundredth of the stream, and at its end."""
    frame = part(result.table, "orders", ["rung", "setting", "step"])
    steps = np.sort(frame.step.unique())
    early = steps[np.argmin(np.abs(steps - result.params.horizon / 100))]
    wide = frame.pivot(index=["step", "rung"], columns="setting", values="rmse")
    asked = wide.loc[[(step, name) for step in (early, steps[-1]) for name in frame.rung.unique()], list(ORDER_NAMES)]
    when = np.repeat(["early", "end"], len(asked) // 2)
    return asked.map(digits).reset_index().assign(step=when).rename(columns={"step": "when", **ORDER_NAMES})


def _shown(frame: pd.DataFrame, rungs: list[str], titles: dict[str, str]) -> pd.DataFrame:
    """A row per rung, a column per setting; what is stated for any users with the bias that is possible."""
    shown = []
    for row in frame.itertuples():
        bias = f" + {digits(row.bias)}" if 5e-5 < row.bias < 1 else ""
        shown.append(f"{digits(row.rmse)} ({digits(row.predicted)}{bias})")
    wide = frame.assign(shown=shown).pivot(index="rung", columns="setting", values="shown")
    return wide.reindex(rungs)[list(titles)].rename(columns=titles).reset_index()
