"""What the notebook on trust says about its numbers, checked, and the numbers that its prose prints."""

from __future__ import annotations

import pandas as pd
from scipy.stats import poisson

from evolvingdp.experiment import Claim, Scalar, at_least, at_most
from evolvingdp.heavy_hitters.experiments.trust.params import Params
from evolvingdp.heavy_hitters.experiments.trust.rungs import CURATOR, GROUPS, LOCAL, RUNGS, SERVERS, SHUFFLED, report_epsilon
from evolvingdp.heavy_hitters.experiments.trust.tables import summary
from evolvingdp.heavy_hitters.olh import OLH
from evolvingdp.heavy_hitters.trust.shuffling import Shuffled

_SHORT = {LOCAL: "local", GROUPS: "groups", SHUFFLED: "shuffled", SERVERS: "servers", CURATOR: "curator"}


def claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    words = table.pivot_table(index=["epsilon", "repetition"], columns="rung", values="words")
    checked = [
        at_least(
            f"Trust never costs words: those found at “{more}” over those found at “{less}”, least of all runs",
            float((words[more] / words[less].clip(lower=1)).min()),
            1.0,
        )
        for less, more in ((LOCAL, GROUPS), (LOCAL, SHUFFLED), (SHUFFLED, SERVERS), (SERVERS, CURATOR))
    ]
    false = table.groupby(["rung", "epsilon"])["false"].sum()
    one = [report_epsilon(params, SHUFFLED, epsilon) for epsilon in params.epsilon_sweep]
    spent = [
        Shuffled(report, params.n_users, OLH(report).hash_values).delta(epsilon)
        for report, epsilon in zip(one, params.epsilon_sweep, strict=True)
    ]
    return [
        *checked,
        at_most(
            f"No more than one listed word a run is expected that nobody holds: the most in the {params.repetitions} runs of a setting together",
            float(false.max()),
            float(poisson.isf(1e-4 / len(false), params.repetitions)),
        ),
        at_most("The shuffled reports keep the central guarantee: largest delta at epsilon", max(spent), params.delta),
    ]


def values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    rows = summary(table).set_index(["rung", "epsilon"])
    shown = 1.0 if 1.0 in params.epsilon_sweep else params.epsilon_sweep[-1]
    found = {
        f"{_SHORT[rung]}_{name}": float(rows.loc[(rung, shown)][name]) for rung in RUNGS for name in ("words", "threshold")
    }
    reports = {f"{_SHORT[rung]}_report": float(rows.loc[(rung, shown)].report_epsilon) for rung in (GROUPS, SHUFFLED)}
    least = params.epsilon_sweep[0]
    return {
        "n_users": params.n_users,
        "delta": params.delta,
        "epsilon": shown,
        "least_epsilon": least,
        "least_groups_report": float(rows.loc[(GROUPS, least)].report_epsilon),
        "least_shuffled_report": float(rows.loc[(SHUFFLED, least)].report_epsilon),
        "distinct": float(table.distinct.mean()),
        "shuffled_candidates": float(table[table.rung == SHUFFLED].candidates.max()),
        **found,
        **reports,
        "servers_over_curator": found["servers_threshold"] / found["curator_threshold"],
        "local_words_shown": found["local_words"],
        "local_words": float(rows.loc[(LOCAL, params.epsilon_sweep[-1])].words),
    }
