"""The protocols of the Bitstogram experiment."""

from __future__ import annotations

from typing import Any

from scipy.stats import binom, norm

from evolvingdp.heavy_hitters.binary_code import BinaryCode
from evolvingdp.heavy_hitters.bitstogram import Bitstogram
from evolvingdp.heavy_hitters.experiments.bitstogram.params import Params, threshold

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


def corrected(settings: Bitstogram, count: int, n_users: int) -> float:
    """The probability that a word of `count` users alone in its bucket is decoded: few enough of its bits are wrong."""
    wrong = norm.sf(settings.bit_error(count, n_users))
    return float(binom.cdf(settings.code.correctable, settings.code.length, wrong))
