"""The runs of the Bitstogram experiment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result, engine
from evolvingdp.heavy_hitters.bitstogram import Bitstogram, BitstogramProtocol, CodeHashes
from evolvingdp.heavy_hitters.experiments.bitstogram import where
from evolvingdp.heavy_hitters.experiments.bitstogram.claims import claims, values
from evolvingdp.heavy_hitters.experiments.bitstogram.params import Params
from evolvingdp.heavy_hitters.experiments.bitstogram.variants import (
    BEST,
    DATASETS,
    PRINTED,
    VARIANTS,
    corrected,
    messages_of,
    method,
)
from evolvingdp.heavy_hitters.experiments.lists import data, judge
from evolvingdp.heavy_hitters.listing import Reports

NOTEBOOK = "heavy_hitters/bitstogram"


def run(params: Params, seed: int) -> Result[Params]:
    """A row per run (part: ladder, buckets, repetitions or map) and a row per heaviest word of a bucket (part: bits)."""
    calls: list[tuple[Any, ...]] = [(_trial, params, seed, *setting) for setting in _settings(params)]
    calls += [(where.trial, params, seed, *setting) for setting in where.settings(params)]
    table = pd.DataFrame(engine.rows(calls))
    return Result(NOTEBOOK, params, seed, table, claims(params, table), values(params, table))


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
    truth = data(params.n_items, dataset, params.n_users, seed, repetition)
    counts = truth.to_numpy()
    settings = method(params, variant, **changes)
    name = (part, dataset, variant, *changes.values(), repetition)
    drawn = settings.draw_hashes(stream(seed, "hashes", *name))
    messages = messages_of(settings, truth.index)
    reports = drawn.simulate(messages, counts, stream(seed, "reports", *name))
    found = drawn.search(reports, params.n_users)
    setting = {"part": part, "dataset": dataset, "variant": variant, "repetition": repetition, **changes}
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
            "predicted_wrong": float(ndtr(-settings.bit_error(int(counts[word]), n_users))),
            "predicted_corrected": corrected(settings, int(counts[word]), n_users),
        }
