"""Tables of the Bitstogram experiment."""

from __future__ import annotations

import pandas as pd

from evolvingdp.experiment import Result
from evolvingdp.heavy_hitters import theory
from evolvingdp.heavy_hitters.experiments.bitstogram.params import Params, threshold
from evolvingdp.heavy_hitters.experiments.bitstogram.variants import BEST, DATASETS, LADDER, PRINTED, method

BETA = 0.05


def summary(table: pd.DataFrame, part: str) -> pd.DataFrame:
    """Mean and standard deviation over runs of precision, recall and F1 per setting."""
    keys = ["dataset", "variant"] + ([part] if part != "ladder" else [])
    grouped = table[table.part == part].groupby(keys, sort=False)
    columns = ["precision", "recall", "f1"]
    parts = [grouped[columns].mean(), grouped[columns].std().add_suffix("_sd"), grouped.size().rename("runs")]
    return pd.concat(parts, axis=1).reset_index()


def score_table(result: Result[Params]) -> pd.DataFrame:
    rungs = summary(result.table, "ladder").set_index(["dataset", "variant"])
    rows = []
    for variant in LADDER:
        row = {"protocol": variant, "bits a user": "2" if variant == PRINTED else "1"}
        for dataset in DATASETS:
            rung = rungs.loc[(dataset, variant)]
            shown = [f"{rung[name]:.2f} ({rung[f'{name}_sd']:.2f})" for name in ("precision", "recall")]
            row |= {
                f"{dataset.capitalize()} precision": shown[0],
                f"{dataset.capitalize()} recall": shown[1],
                f"{dataset.capitalize()} F1": f"{rung.f1:.3f}",
            }
        rows.append(row)
    return pd.DataFrame(rows)


def lemma_table(result: Result[Params]) -> pd.DataFrame:
    """What the proof of Lemma 6.8 asks at this n (at epsilon = 1, the largest that it covers) beside what we run."""
    params = result.params
    asked = theory.bitstogram_constants(params.n_users, min(1.0, params.epsilon), BETA)
    ours = method(params, BEST)
    rows = [
        ("bits of a codeword", f"{asked['code_bits']:,.0f}", f"{ours.code.length}"),
        ("hash functions R", f"{asked['repetitions']:.0f}", f"{ours.repetitions}"),
        ("rows of each inner Hashtogram", f"{asked['inner_rows']:,.0f}", "1"),
        ("groups of users, from unrounded factors", f"{asked['groups']:,.0f}", f"{ours.code.length * ours.repetitions}"),
        ("buckets T, at most", f"{asked['buckets']:.1f}", f"{ours.buckets}"),
        (
            "threshold of the list",
            f"{asked['found_from'] / params.n_users:,.0f} n",
            f"{threshold(params) / params.n_users:.4f} n",
        ),
    ]
    return pd.DataFrame(rows, columns=["", "Lemma 6.8, explicit", "here"])
