"""The table of the experiment on trust."""

from __future__ import annotations

import pandas as pd

from evolvingdp.experiment import Result
from evolvingdp.heavy_hitters.experiments.trust.params import Params
from evolvingdp.heavy_hitters.experiments.trust.rungs import RUNGS


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Mean and deviation of the words found, per rung and epsilon, in the order of the ladder."""
    grouped = table.groupby(["rung", "epsilon"])
    frame = grouped[["words", "false", "threshold", "report_epsilon"]].mean()
    frame = frame.assign(words_sd=grouped.words.std(), runs=grouped.size()).reset_index()
    frame["rung"] = pd.Categorical(frame.rung, RUNGS, ordered=True)
    return frame.sort_values(["rung", "epsilon"], ignore_index=True)


def ladder(result: Result[Params]) -> pd.DataFrame:
    """Whom users trust, epsilon of what they send, threshold and words found, at each central epsilon."""
    rows = summary(result.table)
    return pd.DataFrame(
        {
            "who is trusted": rows.rung.astype(str),
            "central epsilon": rows.epsilon.map("{:g}".format),
            "epsilon of a report": rows.report_epsilon.map(lambda one: "none is sent" if one != one else f"{one:.2f}"),
            "threshold (users)": rows.threshold.map("{:,.0f}".format),
            "words found, mean": rows.words.map("{:,.0f}".format),
            "of them held by nobody, mean": rows.false.map("{:.1f}".format),
        }
    ).sort_values("central epsilon", key=lambda column: column.astype(float), kind="stable", ignore_index=True)
