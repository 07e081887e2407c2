"""Past the paper: errors of each rung with bands, measured and stated."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from evolvingdp.continual_mean.experiments.past_the_paper import rungs
from evolvingdp.continual_mean.experiments.past_the_paper.params import SETTINGS, Params
from evolvingdp.continual_mean.experiments.scores import root_mean_square
from evolvingdp.experiment import Result


def part(table: pd.DataFrame, name: str, by: list[str]) -> pd.DataFrame:
    """Root mean square errors with bands, and the root of the mean predicted square, of a part of the table."""
    mine = table[table.part == name].set_index(by)
    predicted = np.sqrt(mine.predicted.groupby(level=by, sort=False).mean())
    return root_mean_square(mine.square, by).assign(predicted=predicted.to_numpy())


def ladder_table(result: Result[Params]) -> pd.DataFrame:
    """The page's table: error of each rung over the second half of the stream, measured (predicted)."""
    return _shown(part(result.table, "ladder", ["rung", "setting"]), [rungs.MEAN, *rungs.LADDER], SETTINGS)


def populations_table(result: Result[Params]) -> pd.DataFrame:
    """The page's table of users who differ: distance to the mean of all readings, second half, measured (predicted)."""
    titles = {population: title for population, (_, title) in rungs.POPULATIONS.items()}
    names = {rungs.RECOMMENDED: "recommended, pure", rungs.RECOMMENDED_DELTA: "recommended, (eps, delta)"}
    shown = _shown(part(result.table, "populations", ["rung", "setting"]), list(rungs.FOR_ALL_USERS), titles)
    return shown.replace({"rung": names})


def _shown(frame: pd.DataFrame, rungs: list[str], titles: dict[str, str]) -> pd.DataFrame:
    """A row per rung, a column per setting."""
    shown = [
        f"{rmse:.2g}" if math.isnan(predicted) else f"{rmse:.2g} ({predicted:.2g})"
        for rmse, predicted in zip(frame.rmse, frame.predicted, strict=True)
    ]
    wide = frame.assign(shown=shown).pivot(index="rung", columns="setting", values="shown")
    return wide.reindex(rungs)[list(titles)].rename(columns=titles).reset_index()
