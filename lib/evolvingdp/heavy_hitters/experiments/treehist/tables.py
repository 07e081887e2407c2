"""Tables of the TreeHist experiment: the paper's Table 2 beside ours, and the words of one run."""

from __future__ import annotations

from typing import Any

import pandas as pd

from evolvingdp.core import brown
from evolvingdp.experiment import Result
from evolvingdp.heavy_hitters.experiments.lists import data
from evolvingdp.heavy_hitters.experiments.treehist.ladder import BEST, LADDER, bits_a_user, find, leaves_of, protocol
from evolvingdp.heavy_hitters.experiments.treehist.params import PAPER_TABLE_2, Params, threshold
from evolvingdp.heavy_hitters.planning import expected_f1, known_f1, planned, several_words

MAP_EPSILONS = (0.5, 1.0, 2.0, 4.0)
WORDS_A_USER = (1, 2, 5, 10)
WRONG_POWERS = (0.7, 1.5)  # of the prior; Brown's own is near 1
_SETTING = ["dataset", "sweep", "variant", "n_users", "epsilon"]


def summary(table: pd.DataFrame, sweep: str) -> pd.DataFrame:
    """Mean and standard deviation over runs of precision, recall, F1 and words found, per setting."""
    grouped = table[table.sweep == sweep].groupby(_SETTING, sort=False)
    columns = ["precision", "recall", "f1", "hits", "rmse"]
    mean, sd = grouped[columns].mean(), grouped[columns].std().add_suffix("_sd")
    theory_columns = grouped[["standard_error", "expected_recall", "expected_f1", "known_f1"]].mean()
    theory_columns["expected_recall_sd"] = grouped["expected_recall"].std()
    return pd.concat([mean, sd, theory_columns, grouped.size().rename("runs")], axis=1).reset_index()


def table_2(result: Result[Params]) -> pd.DataFrame:
    """The paper's Table 2 beside ours, every rung of the ladder: mean (standard deviation)."""
    rungs = summary(result.table, "ladder")
    rows = []
    for variant in ("paper, Table 2", *LADDER):
        row = {"protocol": variant, "bits a user": "not said"}
        for dataset, printed in PAPER_TABLE_2.items():
            if variant == "paper, Table 2":
                shown = [f"{printed['precision']:.2f}", f"{printed['recall']:.2f}", ""]
            else:
                row["bits a user"] = str(bits_a_user(result.params, variant))
                (rung,) = rungs[(rungs.dataset == dataset) & (rungs.variant == variant)].to_dict("records")
                shown = [f"{rung[name]:.2f} ({rung[f'{name}_sd']:.2f})" for name in ("precision", "recall")]
                shown.append(f"{rung['f1']:.3f}")
            row |= {
                f"{dataset.capitalize()} {name}": text
                for name, text in zip(("precision", "recall", "F1"), shown, strict=True)
            }
        rows.append(row)
    return pd.DataFrame(rows)


def found_words(result: Result[Params]) -> pd.DataFrame:
    """The best variant's first run on Brown: every heavy or found word with truth, estimate and 95% interval, in users."""
    params, seed = result.params, result.seed
    truth = data(params.n_items, "brown", params.n_users, seed, 0)
    method = protocol(params, BEST, params.n_users, params.epsilon)
    name = ("brown", "ladder", BEST, params.n_users, str(params.epsilon), 0)
    found = find(method, truth, seed, *name).words.set_index("word")
    shown = found.index.union(truth.index[truth > method.threshold])
    frame = pd.DataFrame({"truth": truth.reindex(shown, fill_value=0), "estimate": found.estimate.reindex(shown)})
    half = 1.96 * found.standard_error.reindex(shown)
    frame = frame.assign(low=frame.estimate - half, high=frame.estimate + half, threshold=method.threshold)
    frame.index = frame.index.map(lambda word: brown.wholes().get(word, word))  # what nobody holds has no whole word
    return frame.sort_values("truth", ascending=False).rename_axis("word").reset_index()


def plans(result: Result[Params]) -> pd.DataFrame:
    """What `planned` chooses at some epsilons, the F1 that normal errors predict on Brown, with the words known, and what a wrong
    prior costs."""
    params = result.params
    truth = data(params.n_items, "brown", params.n_users, result.seed, 0)
    least, counts, rows = threshold(params, params.n_users), truth.to_numpy(), []
    for epsilon in MAP_EPSILONS:
        row: dict[str, Any] = {"epsilon": epsilon}
        for name, compression in (("one bit", "hadamard"), ("projective", "projective")):
            plan = planned(epsilon, params.n_users, least, compression=compression)
            row[f"error, {name}"] = f"{plan.report_error(params.n_users):,.0f}"
            row[f"F1, {name}"] = f"{expected_f1(plan, leaves_of(plan.tree, truth.index), counts):.3f}"
        row["F1, projective, words known"] = f"{known_f1(plan, counts):.3f}"
        row |= {"letters a level": " + ".join(map(str, plan.tree.steps)), "whole words": f"{plan.leaf_share:.0%}"}
        wrong = [planned(epsilon, params.n_users, least, power=power) for power in WRONG_POWERS]
        scores = [expected_f1(plan, leaves_of(plan.tree, truth.index), counts) for plan in wrong]
        row["F1, wrong priors"] = " to ".join(dict.fromkeys(f"{score:.3f}" for score in (min(scores), max(scores))))
        rows.append(row)
    return pd.DataFrame(rows)


def words_a_user(result: Result[Params]) -> pd.DataFrame:
    """Errors of a rare word where each user has several, in users: one word drawn and reported, or a report of each."""
    rows = []
    for words in WORDS_A_USER:
        sampled, each = several_words(result.params.epsilon, result.params.n_users, words)
        rows.append(
            {"words a user": words, "error, one drawn": f"{sampled:,.0f}", "error, a report of each": f"{each:,.0f}"}
        )
    return pd.DataFrame(rows)
