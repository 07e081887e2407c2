"""The protocols of the Bitstogram experiment."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom

from evolvingdp.core import words
from evolvingdp.heavy_hitters.binary_code import BinaryCode
from evolvingdp.heavy_hitters.bitstogram import Bitstogram, BitstogramProtocol, CodeHashes
from evolvingdp.heavy_hitters.experiments.bitstogram.params import Params, threshold
from evolvingdp.heavy_hitters.experiments.lists import brown_words
from evolvingdp.heavy_hitters.planning import f1_of

DATASETS = ["synthetic", "brown"]
PRINTED, SUCCINCT = "Algorithm 8", "no code (SuccinctHist)"
SPLIT_CELL, BEST = "users split, bit as a cell", "users split, bit as the sign"
SOFT, SOFT_BITS = "the same, soft decisions", 3
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
    SOFT: {"soft_bits": SOFT_BITS},
    SUCCINCT: {"code": BinaryCode(29, 29)},
}
LADDER = list(VARIANTS)


def method(params: Params, variant: str, **changes: Any) -> Bitstogram:
    """The variant with these parameters; `changes` override its choices."""
    code = BinaryCode(params.code_length, params.message_bits)
    choices = {"code": code, "buckets": params.buckets} | VARIANTS[variant] | changes
    return Bitstogram(params.epsilon, threshold(params), **choices)


def messages_of(settings: Bitstogram, texts: pd.Index) -> NDArray[np.uint64]:
    return _brown_messages(settings.length) if texts is brown_words() else settings.encode(texts)


@cache
def _brown_messages(length: int) -> NDArray[np.uint64]:
    return words.index(brown_words(), length)


def corrected(settings: Bitstogram, count: int, n_users: int) -> float:
    """The probability that a word of `count` users alone in its bucket is decoded: few enough of its bits are wrong."""
    wrong = ndtr(-settings.bit_error(count, n_users))
    return float(binom.cdf(settings.code.correctable, settings.code.length, wrong))


def predicted_f1(
    drawn: BitstogramProtocol, messages: NDArray[np.uint64], counts: NDArray[np.integer], n_users: int
) -> tuple[float, float]:
    """The F1 that normal errors predict, and its standard deviation, given who shares a bucket with whom.

    A word is listed if few enough of its bits are wrong, which all words of its bucket add to, and its estimate passes.
    """
    settings, heavy = drawn.settings, np.flatnonzero(counts > drawn.settings.threshold / 4)  # lighter ones never pass
    hashes, length = drawn.bits.hashes, drawn.settings.code.length
    assert isinstance(hashes, CodeHashes)
    home = hashes.buckets.cells(np.zeros(1, dtype=int), messages)
    signs = 1.0 - 2.0 * settings.code.encode(messages)
    passed = np.zeros(len(counts))
    for word in heavy:
        mates = home == home[word]
        agreeing = signs[word] * (counts[mates] @ signs[mates])  # users, of each bit
        wrong = ndtr(-agreeing * settings.bit_error(1, n_users))
        law = np.zeros(length + 1)
        law[0] = 1.0
        for p in wrong:
            law[1:] = law[1:] * (1 - p) + law[:-1] * p
            law[0] *= 1 - p
        passed[word] = law[: settings.code.correctable + 1].sum()
    share = settings.shares[1]
    error = drawn.final.standard_error(round(n_users * share), settings.estimator) / share
    passed *= ndtr((counts - settings.threshold) / error)
    return f1_of(passed, 0.0, np.asarray(counts > settings.threshold))


def decoded_by_chance(settings: Bitstogram) -> float:
    """The probability that a bucket of fair coins reads as a word that is hashed there."""
    code = settings.code
    near = sum(math.comb(code.length, wrong) for wrong in range(code.correctable + 1))
    return float(near * 26**settings.length / 2**code.length / settings.buckets)
