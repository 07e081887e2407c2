"""Bitstogram on synthetic words and on Brown, as printed and with its variants; and a map of which method wins where.

`run` gives a row a run and a row per heaviest word of a bucket, `values` the numbers that claims and prose read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from evolvingdp.book import engine
from evolvingdp.book.own import Release, checked
from evolvingdp.book.params import Metric
from evolvingdp.core import checks, words
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import planning, theory
from evolvingdp.heavy_hitters.binary_code import ReedMuller
from evolvingdp.heavy_hitters.bitstogram import Bitstogram, BitstogramProtocol, CodeHashes
from evolvingdp.heavy_hitters.listing import Reports
from evolvingdp.notebooks.heavy_hitters.lists import brown_words, data, find, judge, leaves_of
from evolvingdp.streams import reading

METRIC = Metric("brown_best_f1", "F1 of Bitstogram with one bit a user on Brown")

CLAIMS = """
correctable / code_length >= 1 / 10   The code corrects at least a tenth of its bits, as Lemma 6.8's proof asks
wrong_off <= 0.02   Bits are wrong as often as noise alone predicts: largest difference, both protocols
corrected_off <= 0.05 + noise   A heavy word is decoded as often as predicted: largest difference, both protocols
synthetic_best_f1 - synthetic_printed_f1 >= 0.02   Users split, the bit as the sign: F1 gained over Algorithm 8, synthetic
synthetic_best_f1 >= 0.85 - noise   Users split, the bit as the sign, finds heavy words: F1, synthetic
brown_best_f1 - brown_printed_f1 >= 0.02   Users split, the bit as the sign: F1 gained over Algorithm 8, brown
brown_best_f1 >= 0.85 - noise   Users split, the bit as the sign, finds heavy words: F1, brown
recall_lost >= 0   More hash functions cost recall: recall with the fewest less that with the most
groups_over_users >= 1   The lemma asks for more groups than there are users: groups over n
? -0.01 - 4 * map_several_error <= map_several_off <= 0.01 + 4 * map_several_error   The map, epsilon from 1 on: mean F1 less prediction, TreeHist
? -0.01 - 4 * map_buckets_error <= map_buckets_off <= 0.01 + 4 * map_buckets_error   The map, epsilon from 1 on: mean F1 less prediction, Bitstogram
map_nobody <= map_by_chance + 4 * sqrt(map_by_chance)   The map: words that Bitstogram lists and nobody holds, no more than noise gives
"""
# Bounds of the map: what normal errors predict before a run, four standard errors of theirs, a hundredth for the normal law.

DATASETS = ["synthetic", "brown"]
PRINTED, SUCCINCT = "Algorithm 8", "no code (SuccinctHist)"
BEST = "users split, bit as the sign"
VARIANTS: dict[str, dict[str, Any]] = {
    PRINTED: {"printed": True, "rows": 285, "width": 4096},
    BEST: {},
    SUCCINCT: {"coded": False},
}
LADDER = list(VARIANTS)
BETA = 0.05
SEVERAL, BUCKETS = METHODS = "TreeHist", "Bitstogram"
SETTING = ["dataset", "n_users", "epsilon"]
DRAWS = 400  # of a bucket's noise
SHORT = {"several": SEVERAL, "buckets": BUCKETS}  # in values' names


def check(params: Any) -> dict[str, Any]:
    """Sorted sweeps; raises ValueError for numbers of buckets, or where no word is heavy."""
    if params.data:
        return checked(params, _own_words)
    sizes = {f"bucket_sweep[{place}]": size for place, size in enumerate(params.bucket_sweep)}
    checks.power_of_two(buckets=params.buckets, **sizes)
    if threshold(params) > params.n_users / 100:
        raise ValueError(
            f"factor must be at most {params.n_users / 100 / math.isqrt(params.n_users):.3g} with {params.n_users} users, so that "
            f"some words are heavy, got {params.factor:g}"
        )
    return {
        name: tuple(sorted(getattr(params, name))) for name in ("bucket_sweep", "repeat_sweep", "map_epsilons", "map_users")
    }


def threshold(params: Any) -> float:
    return float(params.factor * math.isqrt(params.n_users))


def method(params: Any, variant: str, **changes: Any) -> Bitstogram:
    """The variant with these parameters; `changes` override its choices."""
    choices = {"buckets": params.buckets} | VARIANTS[variant] | changes
    return Bitstogram(params.epsilon, threshold(params), **choices)


def messages_of(settings: Bitstogram, texts: pd.Index) -> NDArray[np.uint64]:
    return _brown_messages(settings.length) if texts is brown_words() else settings.encode(texts)


@cache
def _brown_messages(length: int) -> NDArray[np.uint64]:
    return words.index(brown_words(), length)


def corrected(code: ReedMuller, certain: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of words (words,) that are decoded where bits are as much more certain than normal noise of deviation 1 as
    `certain` says (words, bits): of a fixed draw of that noise."""
    noise = stream(0, "noise of a bucket").normal(size=(DRAWS, code.length))
    return np.array([(code.decode(word + noise) == 0).mean() for word in certain])


def alone(settings: Bitstogram, counts: NDArray[np.integer], n_users: int) -> NDArray[np.float64]:
    """`corrected` for words of so many users alone in their buckets."""
    code = settings.code
    return corrected(code, np.array([np.full(code.length, settings.bit_error(int(count), n_users)) for count in counts]))


def predicted_f1(
    drawn: BitstogramProtocol, messages: NDArray[np.uint64], counts: NDArray[np.integer], n_users: int
) -> tuple[float, float]:
    """The F1 that normal errors predict, and its standard deviation, given who shares a bucket with whom.

    A word is listed if its bits, which all words of its bucket add to, decode to it, and its estimate passes.
    """
    settings, heavy = drawn.settings, np.flatnonzero(counts > drawn.settings.threshold / 4)  # lighter ones never pass
    hashes = drawn.bits.hashes
    assert isinstance(hashes, CodeHashes)
    home = hashes.buckets.cells(np.zeros(1, dtype=int), messages)
    signs = 1.0 - 2.0 * settings.code.encode(messages)
    agreeing = np.zeros((len(heavy), settings.code.length))  # users, of each bit
    for place, word in enumerate(heavy):
        mates = home == home[word]
        agreeing[place] = signs[word] * (counts[mates] @ signs[mates])
    passed = np.zeros(len(counts))
    passed[heavy] = corrected(settings.code, agreeing * settings.bit_error(1, n_users))
    share = settings.shares[1]
    error = drawn.final.standard_error(round(n_users * share), "mean") / share
    passed *= ndtr((counts - settings.threshold) / error)
    return planning.f1_of(passed, 0.0, np.asarray(counts > settings.threshold))


def decoded_by_chance(settings: Bitstogram) -> float:
    """The probability that a bucket of noise reads as a word that is hashed there."""
    return float(26**settings.length / 2**settings.code.message_bits / settings.buckets)


def run(params: Any, seed: int) -> pd.DataFrame:
    """A row per run (part: ladder, buckets, repetitions or map) and a row per heaviest word of a bucket (part: bits)."""
    calls: list[tuple[Any, ...]] = [(_trial, params, seed, *setting) for setting in _settings(params)]
    calls += [(_compared, params, seed, *setting) for setting in _points(params)]
    return pd.DataFrame(engine.rows(calls))


def _settings(params: Any) -> Iterator[tuple[str, str, str, dict[str, int], int]]:
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
    params: Any, seed: int, part: str, dataset: str, variant: str, changes: dict[str, int], repetition: int
) -> Iterator[dict[str, Any]]:
    truth = data(params.n_items, dataset, params.n_users, seed, repetition)
    counts = truth.to_numpy()
    settings = method(params, variant, **changes)
    name = (part, dataset, variant, *changes.values(), repetition)
    drawn = settings.draw_hashes(stream(seed, "hashes", *name))
    messages = messages_of(settings, truth.index)
    reports = drawn.simulate(messages, counts, stream(seed, "reports", *name))
    found = drawn.search(reports, params.n_users)
    setting = {"part": part, "dataset": dataset, "variant": variant, "repetition": repetition, **changes}
    yield setting | judge(found.words, truth, settings.threshold)
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
    """Of every word that is the heaviest of its bucket and has a fifth of the threshold: its wrong bits, and whether it is
    decoded."""
    hashes = drawn.bits.hashes
    assert isinstance(hashes, CodeHashes)
    home = hashes.buckets.cells(np.zeros(1, dtype=int), messages)
    order = np.argsort(-counts, kind="stable")
    _, first = np.unique(home[order], return_index=True)
    heaviest = order[first]
    shown = heaviest[counts[heaviest] > settings.threshold / 5]
    certain = drawn.certainty(reports)[home[shown]]
    wrong = ((certain < 0) != settings.code.encode(messages[shown])).sum(axis=1)
    decoded, predicted = settings.code.decode(certain), alone(settings, counts[shown], n_users)
    for place, word in enumerate(shown):
        yield setting | {
            "part": "bits",
            "count": int(counts[word]),
            "wrong": int(wrong[place]),
            "corrected": int(decoded[place] == messages[word]),
            "predicted_wrong": float(ndtr(-settings.bit_error(int(counts[word]), n_users))),
            "predicted_corrected": predicted[place],
        }


def _points(params: Any) -> Iterator[tuple[str, int, float, int]]:
    """The synthetic words at every number of users, Brown at the largest."""
    for n_users in params.map_users:
        for dataset in ("synthetic", "brown") if n_users == max(params.map_users) else ("synthetic",):
            for epsilon in params.map_epsilons:
                for repetition in range(params.map_runs):
                    yield dataset, n_users, epsilon, repetition


def _compared(
    params: Any, seed: int, dataset: str, n_users: int, epsilon: float, repetition: int
) -> Iterator[dict[str, Any]]:
    """A row per method, all on the same words: how good its list is.  A search that would never end lists nothing."""
    truth = data(params.n_items, dataset, n_users, seed, repetition)
    least = params.factor * math.isqrt(n_users)
    for method in METHODS:
        name = ("map", dataset, method, n_users, str(epsilon), repetition)
        predicted = math.nan, math.nan
        try:
            found, predicted = _found(method, epsilon, n_users, least, truth, seed, name)
        except ValueError:
            found = pd.DataFrame({"word": [], "estimate": [], "standard_error": []})
        setting = {"part": "map", "dataset": dataset, "variant": method, "n_users": n_users, "epsilon": epsilon}
        nobody = int((truth.reindex(found.word, fill_value=0) == 0).sum())
        setting |= dict(
            zip(("repetition", "nobody", "expected_f1", "f1_deviation"), (repetition, nobody, *predicted), strict=True)
        )
        yield setting | judge(found, truth, least)


def _found(
    method: str, epsilon: float, n_users: int, least: float, truth: pd.Series, seed: int, name: tuple[Any, ...]
) -> tuple[pd.DataFrame, tuple[float, float]]:
    """The list, the F1 that is expected of it, and its deviation."""
    counts = truth.to_numpy()
    if method != BUCKETS:
        plan = _planned(epsilon, n_users, least)
        expected = planning.prospect(plan, leaves_of(plan.tree, truth.index), counts, least)
        return find(plan, truth, seed, *name).words, expected.f1
    drawn = Bitstogram(epsilon, least).draw_hashes(stream(seed, "hashes", *name))
    messages = messages_of(drawn.settings, truth.index)
    found = drawn.search(drawn.simulate(messages, counts, stream(seed, "reports", *name)), n_users)
    return found.words, predicted_f1(drawn, messages, counts, n_users)


_planned = cache(planning.planned)


def scores(table: pd.DataFrame) -> pd.DataFrame:
    """Mean F1 over runs: a row a setting, a column a method."""
    part = table[table.part == "map"]
    means = part.astype({"n_users": int}).pivot_table(index=SETTING, columns="variant", values="f1", sort=False)
    return means[list(METHODS)].sort_index(ascending=[False, True, True])


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    rungs, settings, heavy = (
        summary(table, "ladder").set_index(["dataset", "variant"]),
        method(params, BEST),
        int(threshold(params)),
    )
    bits = table[(table.part == "bits") & (table["count"] > threshold(params))].groupby("variant")
    repeats = summary(table, "repetitions").set_index("repetitions").recall
    asked = theory.bitstogram_constants(params.n_users, min(1.0, params.epsilon), BETA)
    found: dict[str, Any] = lemmas(params.n_users, params.epsilon, settings.length) | {
        "noise": 0.1 / math.sqrt(params.repetitions),
        "code_length": settings.code.length,
        "message_bits": settings.code.message_bits,
        "threshold": threshold(params),
        "correctable": settings.code.correctable,
        "wrong_off": (bits.wrong.mean() / settings.code.length - bits.predicted_wrong.mean()).abs().max(),
        "corrected_off": (bits.corrected.mean() - bits.predicted_corrected.mean()).abs().max(),
        "recall_lost": repeats.iloc[0] - repeats.iloc[-1],
        "groups_over_users": asked["groups"] / params.n_users,
        "wrong_at_threshold_best": ndtr(-settings.bit_error(heavy, params.n_users)),
        "wrong_at_threshold_printed": ndtr(-method(params, PRINTED).bit_error(heavy, params.n_users)),
    }
    names = {"printed": PRINTED, "best": BEST, "succinct": SUCCINCT}
    for dataset in DATASETS:
        for short, variant in names.items():
            for column in ("precision", "recall", "f1"):
                found[f"{dataset}_{short}_{column}"] = rungs[column][dataset, variant]
    return found | _of_the_map(params, table)


def _of_the_map(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    part, means = table[table.part == "map"], scores(table)
    settings = Bitstogram(min(params.map_epsilons), params.factor * math.isqrt(min(params.map_users)))
    buckets, least = part[part.variant == BUCKETS], min(params.map_epsilons)
    found: dict[str, Any] = {
        "map_least": least,
        "map_settings": len(means),
        "map_nobody": buckets.nobody.sum(),
        "map_by_chance": len(buckets) * settings.buckets * decoded_by_chance(settings),
    }
    enough = means[means.index.get_level_values("epsilon") >= 1]
    for place, rows in (("least", means.xs(least, level="epsilon")), ("enough", enough)):
        if rows.empty:
            continue
        found |= {f"map_{place}_{short}": rows[column].mean() for short, column in SHORT.items()}
        found[f"map_{place}_best"] = str(rows[list(METHODS)].mean().idxmax())
    part = part[part.epsilon >= 1]
    if part.empty:
        return found
    for short in SHORT:
        runs = part[part.variant == SHORT[short]]
        found[f"map_{short}_off"] = (runs.f1 - runs.expected_f1).mean()
        found[f"map_{short}_error"] = math.sqrt(float(np.square(runs.f1_deviation).sum())) / len(runs)
    return found


def summary(table: pd.DataFrame, part: str) -> pd.DataFrame:
    """Mean and standard deviation over runs of precision, recall and F1 per setting."""
    keys = ["dataset", "variant"] + ([part] if part != "ladder" else [])
    grouped = table[table.part == part].groupby(keys, sort=False)
    columns = ["precision", "recall", "f1"]
    parts = [grouped[columns].mean(), grouped[columns].std().add_suffix("_sd"), grouped.size().rename("runs")]
    return pd.concat(parts, axis=1).reset_index()


def by_frequency(seen: pd.DataFrame, edges: NDArray[np.float64], length: int) -> pd.DataFrame:
    """Heaviest words of a bucket grouped by their frequency: the share of bits read wrongly and of words decoded, with 95%
    intervals."""
    groups = seen.groupby(np.digitize(seen["count"], edges))
    part = groups.agg(
        count=("count", "mean"), wrong=("wrong", "mean"), corrected=("corrected", "mean"), words=("wrong", "size")
    )
    share, decoded = part.wrong / length, part.corrected
    half = 1.96 * np.sqrt((decoded * (1 - decoded)).clip(lower=0.25 / part.words) / part.words)
    below, above = np.minimum(half, decoded), np.minimum(half, 1 - decoded)
    share_half = 1.96 * np.sqrt(share * (1 - share) / (part.words * length))
    return part.assign(share=share, share_half=share_half, below=below, above=above).reset_index(drop=True)


def score_table(table: pd.DataFrame) -> pd.DataFrame:
    rungs = summary(table, "ladder").set_index(["dataset", "variant"])
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


def lemmas(n_users: int, epsilon: float, length: int) -> dict[str, float]:
    """Of SuccinctHist by Lemma 6.3, w, from which on a word is listed with probability 1/2, and T = 32 n / w; of Hashtogram,
    asked about all words, by Lemma 6.6 the least R and T, and the error; for epsilon of 1 at most, which they are for."""
    epsilon, bits = min(1.0, epsilon), length * math.log2(26)
    from_users = 32 * bits * math.log(16 * bits) + 48 / epsilon * math.sqrt(2 * n_users * bits * math.log(64 * bits))
    tail = math.log(n_users / BETA) + length * math.log(26)
    return {
        "succinct_from_fraction": from_users / n_users,
        "succinct_list": 32 * n_users / from_users,
        "hashtogram_rows": 300 * (math.log(12) + tail),
        "hashtogram_buckets": epsilon * math.sqrt(n_users / tail),
        "hashtogram_error_fraction": 400 / epsilon * math.sqrt((math.log(12) + tail) / n_users),
    }


def lemma_table(params: Any) -> pd.DataFrame:
    """What the proof of Lemma 6.8 asks at this n (at epsilon = 1, the largest that it covers) beside what we run."""
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


OWN_LETTERS = 10  # of a word of a reader's own, at most: 27^10 words are numbers of those of eleven letters


def _own_words(path: Any) -> reading.Words:
    return reading.read_words(path, letters=OWN_LETTERS)


def of_own(params: Any, seed: int) -> Release:
    """Bitstogram on the words of a file, a user each, at a threshold of five standard errors of the final oracle."""
    own = _own_words(params.data)
    n_users, share = int(own.counts.sum()), 0.3
    least = 5 * theory.mean_standard_error(round(n_users * share), params.epsilon) / share
    settings = Bitstogram(params.epsilon, least, length=OWN_LETTERS + 1, final_share=share)
    protocol = settings.draw_hashes(stream(seed, "own", "hashes"))
    reports = protocol.simulate(words.encode(own.words), own.counts, stream(seed, "own", "noise"))
    found = protocol.search(reports, n_users).words
    held = dict(zip(words.encode(own.words).tolist(), own.words, strict=True))
    keys = words.index(found.word, OWN_LETTERS + 1).tolist()
    truth = dict(zip(own.words, own.counts.tolist(), strict=True))
    off = 1.96 * found.standard_error
    table = pd.DataFrame({"word": [held.get(key) or _decoded(key) for key in keys], "estimate": found.estimate})
    table = table.assign(low=found.estimate - off, high=found.estimate + off, truth=table.word.map(truth).fillna(0))
    promise = f"pure {params.epsilon:g}-local differential privacy of a user's only report"
    return Release(own.name, "word", "users", f"Bitstogram, from {least:,.0f} users on", promise, table)


def _decoded(key: int) -> str:
    """A word that nobody holds, or what is none."""
    try:
        return words.decode([key])[0]
    except ValueError:
        return f"no word ({key})"
