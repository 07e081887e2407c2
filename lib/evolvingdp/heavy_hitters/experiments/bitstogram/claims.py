"""What the Bitstogram notebook says about its numbers, checked, and the numbers that its prose prints."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy.special import ndtr

from evolvingdp.experiment import Claim, Scalar, at_least, at_most, within
from evolvingdp.heavy_hitters import theory
from evolvingdp.heavy_hitters.bitstogram import Bitstogram
from evolvingdp.heavy_hitters.experiments.bitstogram import where
from evolvingdp.heavy_hitters.experiments.bitstogram.params import Params, threshold
from evolvingdp.heavy_hitters.experiments.bitstogram.tables import BETA, summary
from evolvingdp.heavy_hitters.experiments.bitstogram.variants import (
    BEST,
    DATASETS,
    PRINTED,
    SOFT,
    SOFT_BITS,
    SPLIT_CELL,
    SUCCINCT,
    corrected,
    decoded_by_chance,
    method,
)


def claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    rungs = summary(table, "ladder").set_index(["dataset", "variant"])
    bits = table[(table.part == "bits") & (table["count"] > threshold(params))]
    length = method(params, BEST).code.length
    noise = 0.1 / math.sqrt(params.repetitions)
    checked = [
        at_least(
            "The code corrects at least an eighth of its bits",
            method(params, BEST).code.correctable / length,
            1 / 8,
        ),
        at_most(
            "Bits are wrong as often as the noise alone predicts: largest difference of the shares, both protocols",
            float(
                (bits.groupby("variant").wrong.mean() / length - bits.groupby("variant").predicted_wrong.mean()).abs().max()
            ),
            0.02,
        ),
        at_most(
            "A heavy word is decoded as often as predicted: largest difference, both protocols",
            float(
                (bits.groupby("variant").corrected.mean() - bits.groupby("variant").predicted_corrected.mean()).abs().max()
            ),
            0.05 + noise,
        ),
    ]
    for dataset in DATASETS:
        f1 = rungs.loc[dataset].f1
        checked += [
            at_least(
                f"Splitting the users and sending the bit as the sign adds F1 to Algorithm 8, {dataset}",
                f1[BEST] - f1[PRINTED],
                0.02,
            ),
            at_least(f"Users split, the bit as the sign, finds heavy words: F1, {dataset}", f1[BEST], 0.85 - noise),
        ]
    repeats = summary(table, "repetitions").set_index("repetitions")
    checked += [
        at_least(
            "More hash functions cost recall: recall with the fewest less that with the most",
            repeats.recall.iloc[0] - repeats.recall.iloc[-1],
            0.0,
        ),
        at_least(
            "The lemma asks for more groups than there are users: groups over n",
            theory.bitstogram_constants(params.n_users, min(1.0, params.epsilon), BETA)["groups"] / params.n_users,
            1.0,
        ),
    ]
    return checked + _of_the_map(params, table)


def _of_the_map(params: Params, table: pd.DataFrame) -> list[Claim]:
    """Bounds: what normal errors predict before a run, four standard errors of theirs, and a hundredth for the normal law."""
    part = table[table.part == "map"]
    settings = Bitstogram(min(params.map_epsilons), params.factor * math.isqrt(min(params.map_users)))
    buckets = part[part.variant == where.BUCKETS]
    by_chance = len(buckets) * settings.buckets * decoded_by_chance(settings)
    nobody = at_most(
        "The map: words that Bitstogram lists and nobody holds; no more than random bits would decode to",
        float(buckets.nobody.sum()),
        by_chance + 4 * math.sqrt(by_chance),
    )
    enough, checked = part[part.epsilon >= 1], []
    if enough.empty:
        return [nobody]
    for name in (where.SEVERAL, where.ONE, where.BUCKETS):
        runs = enough[enough.variant == name]
        error = math.sqrt(float(np.square(runs.f1_deviation).sum())) / len(runs)
        checked.append(
            within(
                f"The map, epsilon of 1 or more: mean F1 less the one predicted, {name}",
                float((runs.f1 - runs.expected_f1).mean()),
                -0.01 - 4 * error,
                0.01 + 4 * error,
            )
        )
    scores = enough.pivot_table(index=[*where.SETTING, "repetition"], columns="variant", values=["f1", "f1_deviation"])
    gain, deviation = scores.f1[where.SEVERAL] - scores.f1[where.FIXED], scores.f1_deviation[where.SEVERAL]
    checked.append(
        at_least(
            f"The map, epsilon of 1 or more: F1 of {where.SEVERAL}, less that of {where.FIXED}, mean",
            float(gain.mean()),
            -0.01 - 4 * math.sqrt(2 * float(np.square(deviation).sum())) / len(gain),
        )
    )
    return [*checked, nobody]


def values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    rungs = summary(table, "ladder").set_index(["dataset", "variant"])
    settings = method(params, BEST)
    heavy = int(threshold(params))
    proved, bits = min(1.0, params.epsilon), math.log2(26**settings.length)  # the lemmas are for epsilon <= 1
    succinct = theory.succinct_hist_constants(params.n_users, proved, bits)
    hashtogram = theory.hashtogram_constants(params.n_users, proved, BETA, bits * math.log(2))
    numbers: dict[str, Scalar] = {
        "succinct_from_fraction": succinct["found_from"] / params.n_users,
        "succinct_list": succinct["list_length"],
        **{f"hashtogram_{name}": hashtogram[name] for name in ("rows", "buckets")},
        "hashtogram_error_fraction": hashtogram["error"] / params.n_users,
        "decodings": 2**SOFT_BITS,
        "n_users": params.n_users,
        "epsilon": params.epsilon,
        "runs": params.repetitions,
        "threshold": threshold(params),
        "correctable": settings.code.correctable,
        "message_bits": settings.code.message_bits,
        "code_length": settings.code.length,
        "wrong_at_threshold_best": float(ndtr(-settings.bit_error(heavy, params.n_users))),
        "wrong_at_threshold_printed": float(ndtr(-method(params, PRINTED).bit_error(heavy, params.n_users))),
        "corrected_at_threshold_best": corrected(settings, heavy, params.n_users),
        "corrected_at_threshold_printed": corrected(method(params, PRINTED), heavy, params.n_users),
    }
    names = {"printed": PRINTED, "cell": SPLIT_CELL, "best": BEST, "soft": SOFT, "succinct": SUCCINCT}
    for dataset in DATASETS:
        for short, variant in names.items():
            for column in ("precision", "recall", "f1"):
                numbers[f"{dataset}_{short}_{column}"] = float(rungs.loc[(dataset, variant)][column])
    means, least, most = where.scores(table), min(params.map_epsilons), max(params.map_epsilons)
    numbers |= {"map_least": least, "map_most": most, "map_settings": len(means)}
    columns = {"several": where.SEVERAL, "one": where.ONE, "fixed": where.FIXED, "buckets": where.BUCKETS}
    enough = means[means.index.get_level_values("epsilon") >= 1]
    for place, rows in (("least", means.xs(least, level="epsilon")), ("enough", enough)):
        numbers |= {f"map_{place}_{short}": float(rows[column].mean()) for short, column in columns.items()}
        for kind, methods in (("best", where.METHODS), ("best_bit", where.ONE_BIT)):
            numbers[f"map_{place}_{kind}"] = str(rows[list(methods)].mean().idxmax())
    return numbers
