"""The sentences that the chapter says about HEAVYTHRESH's numbers, and the numbers that its prose prints."""

from __future__ import annotations

import pandas as pd

from evolvingdp.evolving.experiments.heavy_thresh.params import Params
from evolvingdp.evolving.experiments.heavy_thresh.settings import (
    COMPOSITIONS,
    CREWS,
    HADAMARD,
    HINDSIGHT,
    NAIVE,
    ONCE,
    OPTIMAL,
    PAPER,
    PERIODS,
    TOP,
    TUNED,
    brown_settings,
)
from evolvingdp.experiment import Claim, Scalar, at_least, at_most


def claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    brown_rows = table[table.part == "brown"]
    recall = brown_rows.groupby("method").recall.mean()
    error = brown_rows.groupby("method").max_error.mean()
    ours, paper = (table[(table.part == "dictionary") & (table.method == method)] for method in (TUNED, PAPER))
    both = table[(table.part == "dictionary") & table.method.isin([TUNED, PAPER])]
    crews = table[(table.part == "dictionary") & (table.method == CREWS)]
    by_lot = crews.groupby("place").mean_error.mean() / ours.groupby("place").mean_error.mean()
    ratio = paper.groupby("place").mean_error.mean() / ours.groupby("place").mean_error.mean()
    bound = brown_settings(params).error_bound
    return [
        at_least(
            f"HEAVYTHRESH finds the {TOP} most frequent words of a category: share, mean over epochs", recall[TUNED], 0.8
        ),
        at_least(
            "That is more than recomputing in every epoch finds: difference to the better",
            recall[TUNED] - recall[list(COMPOSITIONS)].max(),
            0.0,
        ),
        at_least("One word a user, once, finds more still: difference to HEAVYTHRESH", recall[ONCE] - recall[TUNED], 0.0),
        at_most("and with a smaller largest error: over HEAVYTHRESH's", error[ONCE] / error[TUNED], 1.0),
        at_most(
            "Averaging in hindsight makes it smaller: over one word a user as reported", error[HINDSIGHT] / error[ONCE], 1.0
        ),
        at_most("With HEAVYTHRESH's own oracle, too: over HEAVYTHRESH's", error[HADAMARD] / error[TUNED], 1.0),
        at_most("Roles by lot halve HEAVYTHRESH's largest error: over HEAVYTHRESH's", error[CREWS] / error[TUNED], 0.5),
        at_most("and have a smaller one than one word a user as reported", error[CREWS] / error[ONCE], 1.0),
        at_least("They find more words than HEAVYTHRESH: difference", recall[CREWS] - recall[TUNED], 0.0),
        at_most("On every dictionary they have a smaller error than HEAVYTHRESH: largest ratio", float(by_lot.max()), 1.0),
        at_most(
            "HEAVYTHRESH's largest error over that of recomputing with optimal composition",
            error[TUNED] / error[OPTIMAL],
            1.0,
        ),
        at_most(
            "The proved bound holds on Brown: largest error over bound",
            float(brown_rows[brown_rows.method == TUNED].max_error.max() / bound),
            1.0,
        ),
        at_most(
            "No user spends more than epsilon on a dictionary: largest share", float((both.spent / both.epsilon).max()), 1.0
        ),
        at_least(
            "The five frequent words of a dictionary are found: smallest share of a run", float(ours.recall.min()), 0.95
        ),
        at_least(
            "The paper's b costs accuracy on each dictionary: smallest ratio of its error to the tuned one's",
            float(ratio.min()),
            4.0,
        ),
    ]


def values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    settings = brown_settings(params)
    voting = settings.voting
    rows = table[table.part == "brown"].groupby("method")
    short = {TUNED: "tuned", NAIVE: "naive", OPTIMAL: "optimal", ONCE: "once", HINDSIGHT: "detected"}
    short |= {HADAMARD: "hadamard", PERIODS: "periods", CREWS: "crews"}
    shown: dict[str, Scalar] = {
        "n_users": params.n_users,
        "horizon": voting.horizon,
        "n_words": settings.n_words,
        "epoch_length": params.epoch_length,
        "epsilon": params.epsilon,
        "width": settings.width,
        "top_threshold": voting.threshold(1),
        "standard_error": settings.standard_error,
        "bound": settings.error_bound,
        "updates": float(
            table[(table.part == "brown") & (table.method == TUNED)].groupby("repetition").updated.sum().mean()
        ),
    }
    dictionaries = table[table.part == "dictionary"].groupby("method")
    for method, name in ((TUNED, "tuned"), (PAPER, "paper"), (NAIVE, "naive"), (CREWS, "crews")):
        shown[f"dictionary_recall_{name}"] = float(dictionaries.recall.mean()[method])
        shown[f"dictionary_error_{name}"] = float(dictionaries.mean_error.mean()[method])
    for method, name in short.items():
        shown[f"error_{name}"] = float(rows.max_error.mean()[method])
        shown[f"recall_{name}"] = float(rows.recall.mean()[method])
    return shown
