"""Bitstogram: all bits of a word at once, with a code.  What the code, the sign and the split buy, and what the lemmas ask."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator
from scipy.stats import binom, norm

from evolvingdp import experiment
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Claim, Result, Scalar, at_least, at_most, engine, parameter
from evolvingdp.heavy_hitters import theory
from evolvingdp.heavy_hitters.binary_code import BinaryCode, check_length
from evolvingdp.heavy_hitters.bitstogram import Bitstogram, BitstogramProtocol, CodeHashes
from evolvingdp.heavy_hitters.experiments.treehist import data
from evolvingdp.heavy_hitters.tree_hist import Reports
from evolvingdp.heavy_hitters.tree_scores import judge

NOTEBOOK = "heavy_hitters/bitstogram"
DATASETS = ["synthetic", "brown"]
BETA = 0.05

PRINTED, SUCCINCT = "Algorithm 8", "no code (SuccinctHist)"
SPLIT_CELL, BEST = "users split, bit as a cell", "users split, bit as the sign"
_AS_PRINTED: dict[str, Any] = {
    "plan": "two_reports",
    "bit_as": "cell",
    "signed_final": False,
    "estimator": "median",
    "final_cut": False,
    "rows": 285,
    "width": 4096,
}
VARIANTS: dict[str, dict[str, Any]] = {
    PRINTED: _AS_PRINTED,
    SPLIT_CELL: {"bit_as": "cell"},
    BEST: {},
    SUCCINCT: {"code": BinaryCode(29, 29)},
}
LADDER = list(VARIANTS)

Buckets = Annotated[int, Field(ge=2, le=2**20)]
Repetitions = Annotated[int, Field(ge=1, le=64)]


class Params(experiment.Params):
    """Section 4.2's data and threshold; the preset `quick` differs from `paper` in the number of runs."""

    n_users: int = parameter(10_000_000, symbol="$n$", unit="users", meaning="users", ge=10**5, le=10**10)
    epsilon: float = parameter(2.0, symbol=r"$\epsilon$", meaning="privacy loss of a user over all reports", ge=0.1, le=8)
    factor: float = parameter(15.0, symbol="", meaning="a heavy hitter has more than factor * floor(sqrt(n)) users", ge=1)
    n_items: int = parameter(100, symbol="$d$", unit="items", meaning="items of the synthetic data", ge=10, le=10**4)
    code_length: int = parameter(127, symbol="", unit="bits", meaning="length of a codeword (a BCH code)", ge=31, le=1023)
    message_bits: int = parameter(29, symbol="", unit="bits", meaning="message bits of the code", ge=29, le=63)
    buckets: int = parameter(1024, symbol="$T$", unit="buckets", meaning="range of the hash function", ge=2, le=2**20)
    repetitions: int = parameter(2, symbol="", unit="runs", meaning="runs of each protocol and data set", ge=2, le=10**4)
    sweep_repetitions: int = parameter(2, symbol="", unit="runs", meaning="runs per point of the sweeps", ge=2, le=10**4)
    bucket_sweep: tuple[Buckets, ...] = parameter(
        (256, 1024), symbol="$T$", unit="buckets", meaning="numbers of buckets on Brown", min_length=2
    )
    repeat_sweep: tuple[Repetitions, ...] = parameter(
        (1, 2), symbol="$R$", meaning="numbers of hash functions on Brown", min_length=2
    )

    metric = experiment.Metric("brown_best_f1", "F1 of Bitstogram with one bit a user on Brown", better="higher")
    presets = {
        "paper": {
            "repetitions": 10,
            "sweep_repetitions": 5,
            "bucket_sweep": (64, 256, 1024, 4096),
            "repeat_sweep": (1, 2, 4),
        }
    }

    @field_validator("bucket_sweep", "repeat_sweep")
    @classmethod
    def _each_once_in_order(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(sorted(experiment.distinct(values)))

    @field_validator("buckets", "bucket_sweep")
    @classmethod
    def _powers_of_two(cls, values: Any) -> Any:
        for value in values if isinstance(values, tuple) else (values,):
            if value & (value - 1):
                raise ValueError(f"must be powers of two, got {value}")
        return values

    @model_validator(mode="after")
    def _some_words_are_heavy(self) -> Self:
        if threshold(self) > self.n_users / 100:
            raise ValueError(
                f"factor must be at most {self.n_users / 100 / math.isqrt(self.n_users):.3g} with {self.n_users} users, so that "
                f"some words are heavy, got {self.factor:g}"
            )
        return self

    @field_validator("code_length")
    @classmethod
    def _a_length_that_exists(cls, value: int) -> int:
        check_length(value)
        return value

    @field_validator("message_bits")
    @classmethod
    def _a_code_that_exists(cls, value: int, info: Any) -> int:
        if "code_length" in info.data:  # else that is what is wrong
            BinaryCode(info.data["code_length"], value)
        return value


def threshold(params: Params) -> float:
    return params.factor * math.isqrt(params.n_users)


def method(params: Params, variant: str, **changes: Any) -> Bitstogram:
    """The variant with these parameters; `changes` override its choices."""
    code = BinaryCode(params.code_length, params.message_bits)
    choices = {"code": code, "buckets": params.buckets} | VARIANTS[variant] | changes
    return Bitstogram(params.epsilon, threshold(params), **choices)


def run(params: Params, seed: int) -> Result[Params]:
    """A row per run (part: ladder, buckets or repetitions) and a row per heaviest word of a bucket (part: bits)."""
    table = pd.DataFrame(engine.rows((_trial, params, seed, *setting) for setting in _settings(params)))
    return Result(NOTEBOOK, params, seed, table, _claims(params, table), _values(params, table))


def _settings(params: Params) -> Iterator[tuple[str, str, str, dict[str, int], int]]:
    for dataset in DATASETS:
        for variant in VARIANTS:
            for repetition in range(params.repetitions):
                yield "ladder", dataset, variant, {}, repetition
    for repetition in range(params.sweep_repetitions):
        for buckets in params.bucket_sweep:
            yield "buckets", "brown", BEST, {"buckets": buckets}, repetition
        for repetitions in params.repeat_sweep:
            yield "repetitions", "brown", BEST, {"repetitions": repetitions}, repetition


def _trial(
    params: Params, seed: int, part: str, dataset: str, variant: str, changes: dict[str, int], repetition: int
) -> Iterator[dict[str, Any]]:
    words, counts = data(params.n_items, dataset, params.n_users, seed, repetition)
    settings = method(params, variant, **changes)
    name = (part, dataset, variant, *changes.values(), repetition)
    drawn = settings.draw_hashes(stream(seed, "hashes", *name))
    messages = settings.encode(words)
    reports = drawn.simulate(messages, counts, stream(seed, "reports", *name))
    found = drawn.search(reports, params.n_users)
    setting = {"part": part, "dataset": dataset, "variant": variant, "repetition": repetition, **changes}
    truth = pd.Series(counts, index=words)
    yield setting | judge(found.words, truth, settings.threshold) | {"decoded": int(found.path.decoded.iloc[0])}
    if part == "ladder" and variant in (PRINTED, BEST):
        yield from _bits(setting, settings, drawn, reports, messages, counts, params.n_users)


def _bits(
    setting: dict[str, Any],
    settings: Bitstogram,
    drawn: BitstogramProtocol,
    reports: Reports,
    messages: NDArray[np.uint64],
    counts: NDArray[np.int64],
    n_users: int,
) -> Iterator[dict[str, Any]]:
    """Of every word that is the heaviest of its bucket and has a fifth of the threshold: its wrong bits, and whether
    they are few enough for the code."""
    hashes = drawn.bits.hashes
    assert isinstance(hashes, CodeHashes)
    home = hashes.buckets.cells(np.zeros(1, dtype=int), messages)
    order = np.argsort(-counts, kind="stable")
    _, first = np.unique(home[order], return_index=True)
    heaviest = order[first]
    shown = heaviest[counts[heaviest] > settings.threshold / 5]
    wrong = (drawn.read_bits(reports)[home[shown]] != settings.code.encode(messages[shown])).sum(axis=1)
    for word, errors in zip(shown, wrong, strict=True):
        yield setting | {
            "part": "bits",
            "count": int(counts[word]),
            "wrong": int(errors),
            "corrected": int(errors <= settings.code.correctable),
            "predicted_wrong": float(norm.sf(settings.bit_error(int(counts[word]), n_users))),
            "predicted_corrected": corrected(settings, int(counts[word]), n_users),
        }


def corrected(settings: Bitstogram, count: int, n_users: int) -> float:
    """The probability that a word of `count` users alone in its bucket is decoded: few enough of its bits are wrong."""
    wrong = norm.sf(settings.bit_error(count, n_users))
    return float(binom.cdf(settings.code.correctable, settings.code.length, wrong))


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
            row |= {f"{dataset} P": shown[0], f"{dataset} R": shown[1], f"{dataset} F1": f"{rung.f1:.3f}"}
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
        ("groups of users", f"{asked['groups']:,.0f}", f"{ours.code.length * ours.repetitions}"),
        ("buckets T, at most", f"{asked['buckets']:.1f}", f"{ours.buckets}"),
        (
            "a word is found from",
            f"{asked['found_from'] / params.n_users:,.0f} n",
            f"{threshold(params) / params.n_users:.4f} n",
        ),
    ]
    return pd.DataFrame(rows, columns=["", "Lemma 6.8, explicit", "here"])


def _claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    rungs = summary(table, "ladder").set_index(["dataset", "variant"])
    bits = table[(table.part == "bits") & (table["count"] > threshold(params))]
    length = method(params, BEST).code.length
    noise = 0.1 / math.sqrt(params.repetitions)
    claims = [
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
        claims += [
            at_least(
                f"Splitting the users and sending the bit as the sign adds F1 to Algorithm 8, {dataset}",
                f1[BEST] - f1[PRINTED],
                0.02,
            ),
            at_least(f"The best variant finds heavy words: F1, {dataset}", f1[BEST], 0.85 - noise),
        ]
    repeats = summary(table, "repetitions").set_index("repetitions")
    claims += [
        at_least(
            "More hash functions cost recall: the first over the last", repeats.recall.iloc[0] - repeats.recall.iloc[-1], 0.0
        ),
        at_least(
            "The lemma asks for more groups than there are users: groups over n",
            theory.bitstogram_constants(params.n_users, min(1.0, params.epsilon), BETA)["groups"] / params.n_users,
            1.0,
        ),
    ]
    return claims


def _values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    rungs = summary(table, "ladder").set_index(["dataset", "variant"])
    settings = method(params, BEST)
    heavy = int(threshold(params))
    proved, bits = min(1.0, params.epsilon), math.log2(26**settings.length)  # the lemmas are for epsilon <= 1
    succinct = theory.succinct_hist_constants(params.n_users, proved, bits)
    hashtogram = theory.hashtogram_constants(params.n_users, proved, BETA, bits * math.log(2))
    values: dict[str, Scalar] = {
        "succinct_from_fraction": succinct["found_from"] / params.n_users,
        "succinct_list": succinct["list_length"],
        **{f"hashtogram_{name}": hashtogram[name] for name in ("rows", "buckets")},
        "hashtogram_error_fraction": hashtogram["error"] / params.n_users,
        "n_users": params.n_users,
        "epsilon": params.epsilon,
        "runs": params.repetitions,
        "threshold": threshold(params),
        "correctable": settings.code.correctable,
        "message_bits": settings.code.message_bits,
        "code_length": settings.code.length,
        "wrong_at_threshold_best": float(norm.sf(settings.bit_error(heavy, params.n_users))),
        "wrong_at_threshold_printed": float(norm.sf(method(params, PRINTED).bit_error(heavy, params.n_users))),
        "corrected_at_threshold_best": corrected(settings, heavy, params.n_users),
        "corrected_at_threshold_printed": corrected(method(params, PRINTED), heavy, params.n_users),
    }
    names = {"printed": PRINTED, "cell": SPLIT_CELL, "best": BEST, "succinct": SUCCINCT}
    for dataset in DATASETS:
        for short, variant in names.items():
            for column in ("precision", "recall", "f1"):
                values[f"{dataset}_{short}_{column}"] = float(rungs.loc[(dataset, variant)][column])
    return values
