"""Section 4.2: heavy hitters without a dictionary. Table 2, what each change buys, and how far it goes (Figures 5 and 6)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from evolvingdp import experiment
from evolvingdp.core import brown
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Claim, Result, Scalar, at_least, at_most, engine, parameter
from evolvingdp.heavy_hitters import streams, theory
from evolvingdp.heavy_hitters.pem import PEM
from evolvingdp.heavy_hitters.tree_hist import HeavyHitters, TreeHist
from evolvingdp.heavy_hitters.tree_scores import expected_candidates, expected_f1, found_probability, judge
from evolvingdp.heavy_hitters.word_tree import WordTree

NOTEBOOK = "heavy_hitters/treehist"
PAPER_TABLE_2 = {"synthetic": {"precision": 0.36, "recall": 0.95}, "brown": {"precision": 0.24, "recall": 0.86}}
PAPER_RUNS = 20  # the tolerances below are for that many runs; with fewer, noise is added to them
BETA = 0.05

LETTERS = WordTree((2, 2, 2))
BITS = WordTree((1,) * 30, unit="bits")
AS_RUN = "as the paper ran it"
SPLIT = "one bit, users split"
WIDE = "the same, cuts from the noise, wide rows"
BEST = "one bit, users split, joint fit"
OLH_PEM = "PEM with OLH"
_PRINTED: dict[str, Any] = {"estimator": "median", "pruning": "fixed"}
_TUNED: dict[str, Any] = {"plan": "split", "pruning": "adaptive", "rows": 16, "width": 2**16, "leaf_share": 0.8}
VARIANTS: dict[str, dict[str, Any]] = {
    AS_RUN: {"plan": "one_report", "shared_sketch": True, "compression": "none", **_PRINTED},
    "one sketch a level": {"plan": "one_report", **_PRINTED},
    "Algorithm 3, 30 bits": {"plan": "two_reports", "tree": BITS, "final_cut": False, **_PRINTED},
    "Algorithm 3, two letters": {"plan": "two_reports", "final_cut": False, **_PRINTED},
    SPLIT: {"plan": "split", **_PRINTED},
    WIDE: {**_TUNED, "estimator": "median"},
    BEST: {**_TUNED, "estimator": "joint"},
}
FINAL_CUT = ", final cut"  # the same run of Algorithm 3 with its list cut at the threshold
LADDER = [
    name for variant in (*VARIANTS, OLH_PEM) for name in ((variant, variant + FINAL_CUT) if "3, " in variant else (variant,))
]
_SETTING = ["dataset", "sweep", "variant", "n_users", "epsilon"]


Users = Annotated[int, Field(ge=1000, le=10**10)]
Epsilon = Annotated[float, Field(ge=0.1, le=10)]  # as far as OLH goes


class Params(experiment.Params):
    """Section 4.2's parameters; the preset `quick` differs from `paper` in the number of runs, not in scale."""

    n_users: int = parameter(
        10_000_000, symbol="$n$", unit="users", meaning="users where n is not swept", ge=1000, le=10**10
    )
    epsilon: float = parameter(2.0, symbol=r"$\epsilon$", meaning="privacy loss of a user over all reports", ge=0.1, le=10)
    factor: float = parameter(15.0, symbol="", meaning="a heavy hitter has more than factor * floor(sqrt(n)) users", ge=1)
    n_items: int = parameter(100, symbol="$d$", unit="items", meaning="items of the synthetic data", ge=10, le=10**4)
    repetitions: int = parameter(
        2, symbol="", unit="runs", meaning="runs of the ladder, each with new data, hashes, noise", ge=2
    )
    sweep_repetitions: int = parameter(2, symbol="", unit="runs", meaning="runs per point of the sweeps", ge=2, le=10**4)
    epsilon_sweep: tuple[Epsilon, ...] = parameter(
        (1.0, 4.0), symbol=r"$\epsilon$", meaning="values of epsilon on Brown", min_length=2
    )
    n_users_sweep: tuple[Users, ...] = parameter(
        (1_000_000, 10_000_000), symbol="$n$", unit="users", meaning="values of n on Brown", min_length=2
    )

    metric = experiment.Metric("brown_best_f1", "F1 of TreeHist with one bit a user on Brown", better="higher")
    presets = {
        "paper": {
            "repetitions": 20,
            "sweep_repetitions": 6,
            "epsilon_sweep": (0.5, 1.0, 2.0, 4.0, 8.0),
            "n_users_sweep": (100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000),
        }
    }

    @field_validator("n_users_sweep", "epsilon_sweep")
    @classmethod
    def _each_once(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return experiment.distinct(values)

    @model_validator(mode="after")
    def _some_words_are_heavy_and_not_too_many(self) -> Self:
        for name, users, share in (("n_users", [self.n_users], 0.01), ("n_users_sweep", self.n_users_sweep, 0.05)):
            for n_users in users:  # the most frequent word of Brown has .07 of the users
                most = share * n_users / math.isqrt(n_users)
                if self.factor > most:
                    raise ValueError(
                        f"factor must be at most {most:.3g} with {n_users} users ({name}), so that some words are heavy, "
                        f"got {self.factor:g}"
                    )
        for variant in VARIANTS:
            needed = self.factor
            while not _answers(protocol(self, variant, self.n_users, self.epsilon, needed), self.n_users):
                needed *= 1.05
            if needed > 0.01 * self.n_users / math.isqrt(self.n_users):
                raise ValueError(
                    f"epsilon must be larger, or n_users: at epsilon = {self.epsilon:g} and {self.n_users} users there is no factor "
                    f"at which {variant!r} finds words and does not ask for too many candidates that nobody holds"
                )
            if needed > self.factor:
                raise ValueError(
                    f"factor must be at least {needed:.3g} at epsilon = {self.epsilon:g}, so that {variant!r} does not ask for "
                    f"too many candidates that nobody holds, got {self.factor:g}"
                )
        return self


def threshold(params: Params, n_users: int) -> float:
    return params.factor * math.isqrt(n_users)


def protocol(params: Params, variant: str, n_users: int, epsilon: float, factor: float | None = None) -> TreeHist | PEM:
    """The variant with the threshold of `params`, or of another factor."""
    least = threshold(params, n_users) if factor is None else factor * math.isqrt(n_users)
    if variant == OLH_PEM:
        return PEM(LETTERS, epsilon, least)
    return TreeHist(**{"tree": LETTERS, "epsilon": epsilon, "threshold": least, **VARIANTS[variant]})


def _answers(method: TreeHist | PEM, n_users: int) -> bool:
    """Whether a search keeps well below the number of candidates that it may ask for."""
    return isinstance(method, PEM) or expected_candidates(method, n_users) <= method.max_candidates / 2


def bits_a_user(params: Params, variant: str) -> int:
    """What a user sends: a bit a report, or all signs, or one of OLH's hash values."""
    method = protocol(params, variant.removesuffix(FINAL_CUT), params.n_users, params.epsilon)
    if isinstance(method, PEM):
        return math.ceil(math.log2(method.oracle.hash_values))
    return method.width if method.compression == "none" else 1 + (method.plan == "two_reports")


def find(
    method: TreeHist | PEM, words: NDArray[np.str_], counts: NDArray[np.int64], seed: int, *name: str | int
) -> HeavyHitters:
    """One run of `method` on a data set."""
    leaves = leaves_of(method.tree, tuple(words))
    rng = stream(seed, "reports", *name)
    if isinstance(method, PEM):
        return method.simulate(leaves, counts, rng)
    drawn = method.draw_hashes(stream(seed, "hashes", *name))
    return drawn.search(drawn.simulate(leaves, counts, rng), int(counts.sum()))


@lru_cache(maxsize=16)
def leaves_of(tree: WordTree, words: tuple[str, ...]) -> NDArray[np.uint64]:
    """`tree.encode`, once per data set: Brown's words are the same in every run."""
    return tree.encode(words)


def run(params: Params, seed: int) -> Result[Params]:
    """A row per run: how many words were found, how many of them are heavy, and the estimates' error."""
    table = pd.DataFrame(engine.rows((_trial, params, seed, *setting) for setting in _settings(params)))
    return Result(NOTEBOOK, params, seed, table, _claims(params, table), _values(params, table, seed))


def _settings(params: Params) -> Iterator[tuple[str, str, str, int, float, int]]:
    for dataset in PAPER_TABLE_2:
        for variant in (*VARIANTS, OLH_PEM):
            for repetition in range(params.repetitions):
                yield dataset, "ladder", variant, params.n_users, params.epsilon, repetition
    for variant in (BEST, OLH_PEM):
        for repetition in range(params.sweep_repetitions):
            for epsilon in params.epsilon_sweep:
                yield "brown", "epsilon", variant, params.n_users, epsilon, repetition
            for n_users in params.n_users_sweep:
                yield "brown", "n_users", variant, n_users, params.epsilon, repetition


def data(n_items: int, dataset: str, n_users: int, seed: int, repetition: int) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Words and counts: a new data set in every repetition, the same for all variants."""
    rng = stream(seed, "data", dataset, n_users, repetition)
    if dataset == "brown":
        return brown.words()["word"].to_numpy(dtype=str), streams.brown_counts(n_users, rng)
    return streams.random_words(n_items, rng), streams.power_law_counts(n_users, rng, n_items=n_items)


def _trial(
    params: Params, seed: int, dataset: str, sweep: str, variant: str, n_users: int, epsilon: float, repetition: int
) -> Iterator[dict[str, Any]]:
    """The row of one run; of Algorithm 3 two rows, as printed and with the final list cut."""
    words, counts = data(params.n_items, dataset, n_users, seed, repetition)
    method = protocol(params, variant, n_users, epsilon)
    name = (dataset, sweep, variant, n_users, str(epsilon), repetition)
    found = find(method, words, counts, seed, *name)
    setting = {
        "dataset": dataset,
        "sweep": sweep,
        "variant": variant,
        "n_users": n_users,
        "epsilon": epsilon,
        "repetition": repetition,
        "candidates": int(found.path.candidates.sum()),
    }
    leaves = leaves_of(method.tree, tuple(words))
    if variant == BEST and isinstance(method, TreeHist):
        setting["expected_f1"] = expected_f1(method, leaves, counts)
    if variant == AS_RUN and isinstance(method, TreeHist):
        drawn = method.draw_hashes(stream(seed, "hashes", *name))
        heavy = leaves[counts > method.threshold]
        setting["expected_recall"] = found_probability(drawn, leaves, counts, heavy, stream(seed, "deal", *name)).mean()
    truth = pd.Series(counts, index=words)
    yield setting | judge(found.words, truth, method.threshold)
    if variant + FINAL_CUT in LADDER:
        cut = found.words[found.words.estimate >= method.threshold]
        yield setting | {"variant": variant + FINAL_CUT} | judge(cut, truth, method.threshold)


def summary(table: pd.DataFrame, sweep: str) -> pd.DataFrame:
    """Mean and standard deviation over runs of precision, recall, F1 and words found, per setting."""
    grouped = table[table.sweep == sweep].groupby(_SETTING, sort=False)
    columns = ["precision", "recall", "f1", "hits", "rmse"]
    mean, sd = grouped[columns].mean(), grouped[columns].std().add_suffix("_sd")
    theory_columns = grouped[["standard_error", "expected_recall", "expected_f1"]].mean()
    theory_columns["expected_recall_sd"] = grouped["expected_recall"].std()
    return pd.concat([mean, sd, theory_columns, grouped.size().rename("runs")], axis=1).reset_index()


def _claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    rungs = summary(table, "ladder").set_index(["dataset", "variant"])
    noise = 4.9 * 0.05 * max(0.0, params.repetitions**-0.5 - PAPER_RUNS**-0.5)  # the paper's deviations are about .05
    claims = []
    for dataset, printed in PAPER_TABLE_2.items():
        ours = rungs.loc[(dataset, AS_RUN)]
        claims += [
            at_most(
                f"Table 2 is reproduced: distance to the printed {name}, {dataset}", abs(ours[name] - value), 0.05 + noise
            )
            for name, value in printed.items()
        ]
        claims += [
            at_most(
                f"The recall expected of the paper's run, whatever its noise, is within .05 of the printed one, {dataset}",
                abs(ours.expected_recall - printed["recall"]),
                0.05,
            ),
            at_most(
                f"The runs found as many heavy words as expected: distance of mean to expected recall, {dataset}",
                abs(ours.recall - ours.expected_recall),
                4.9 * 0.05 / math.sqrt(params.repetitions),  # the paper's deviation
            ),
        ]
    for dataset, best, today in (("synthetic", 0.98, 0.985), ("brown", 0.94, 0.96)):
        claims += [
            at_least(f"TreeHist with one bit a user: F1, {dataset}", rungs.loc[(dataset, BEST)].f1, best - noise),
            at_least(f"PEM with OLH: F1, {dataset}", rungs.loc[(dataset, OLH_PEM)].f1, today - noise),
            at_least(
                f"The largest gain is one sketch a level: F1 over that of the paper's run, {dataset}",
                rungs.loc[(dataset, "one sketch a level")].f1 - rungs.loc[(dataset, AS_RUN)].f1,
                0.3,
            ),
        ]
    best_runs = table[(table.variant == BEST) & (table.sweep == "ladder")]
    ratio = math.sqrt(np.nanmean(np.square(best_runs.rmse / best_runs.standard_error)))
    claims.append(at_most("The known noise explains the estimates' error: RMSE over standard error", ratio, 1.15 + noise))
    claims.append(
        at_most(
            "Normal errors predict F1: largest distance of the mean F1 to the prediction, both data sets",
            float((best_runs.groupby("dataset").f1.mean() - best_runs.groupby("dataset").expected_f1.mean()).abs().max()),
            0.03 + noise,
        )
    )
    return claims


def _values(params: Params, table: pd.DataFrame, seed: int) -> dict[str, Scalar]:
    n, epsilon = params.n_users, params.epsilon
    rungs = summary(table, "ladder").set_index(["dataset", "variant"])
    eta = theory.paper_threshold(n, epsilon, BETA, math.log2(26**LETTERS.length))
    names = {
        "as_run": AS_RUN,
        "separate": "one sketch a level",
        "alg3_bits_cut": "Algorithm 3, 30 bits" + FINAL_CUT,
        "alg3": "Algorithm 3, two letters",
        "alg3_cut": "Algorithm 3, two letters" + FINAL_CUT,
        "split": SPLIT,
        "wide": WIDE,
        "best": BEST,
        "pem": OLH_PEM,
    }
    scores = {
        f"{dataset}_{short}_{column}": float(rungs.loc[(dataset, variant)][column])
        for dataset in PAPER_TABLE_2
        for short, variant in names.items()
        for column in ("precision", "recall", "f1")
    }
    as_run = rungs.loc[("brown", AS_RUN)]
    means = table[table.sweep == "ladder"].groupby("dataset")[["heavy", "distinct"]].mean()
    return {
        "n_users": n,
        "epsilon": epsilon,
        "runs": params.repetitions,
        "threshold": threshold(params, n),
        "threshold_fraction": threshold(params, n) / n,
        "eta_fraction": eta / n,
        "three_eta_fraction": 3 * eta / n,
        "brown_as_run_recall_error": float(as_run.recall_sd / math.sqrt(as_run.runs)),
        "brown_as_run_recall_expected_error": float(as_run.expected_recall_sd / math.sqrt(as_run.runs)),
        **{
            f"{dataset}_as_run_recall_expected": float(rungs.loc[(dataset, AS_RUN)].expected_recall)
            for dataset in PAPER_TABLE_2
        },
        **{f"{dataset}_{column}": float(means.loc[dataset, column]) for dataset in PAPER_TABLE_2 for column in means},
        "pem_bits": bits_a_user(params, OLH_PEM),
        "best_error": protocol(params, BEST, n, epsilon).level_error(LETTERS.depth - 1, n),
        "shared_noise": 3 * theory.noise_standard_error(n, epsilon, 285),
        **scores,
    }
