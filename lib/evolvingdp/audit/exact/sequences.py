"""All that one user sends over a few epochs, from the library's own clients, driven with all that they may draw.

Lots are independent of data, so that a transcript's loss is the largest over lots.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from evolvingdp.evolving.rivals import memoized, tree
from evolvingdp.evolving.rivals.signs import Signs
from evolvingdp.evolving.rivals.threshold_stream import truncate

Array = NDArray[np.float64]


def tree_loss(settings: tree.ChangeTree, *, extra: int = 0) -> float:
    """Of a dyadic tree's clients, over all levels and sequences of bits. `extra` > 0 is a mutant whose clients let so many
    more changes through, and draw their signs as if they were the first."""
    kept = truncate(_every(settings.horizon), settings.changes + extra)
    return max(_loss(_level_law(tree.partial_sums(kept, level), law, extra)) for level, law in enumerate(settings.signs))


def memoized_loss(settings: memoized.Memoized, horizon: int, *, constant: bool = False) -> float:
    """Of memoization's clients whose hash function, if any, tells bits apart: over all sequences, or the `constant` ones."""
    inputs = _every(horizon)[[0, -1]] if constant else _every(horizon)
    slips, noises = _every(2).astype(bool), _every(horizon).astype(bool)
    noise_law = _independent(noises, float(expit(-settings.report_epsilon)))
    laws = np.zeros((len(inputs), 2**horizon))
    for slip, chance in zip(slips, _independent(slips, float(expit(-settings.permanent_epsilon))), strict=True):
        answers = (np.array([0, 1], dtype=np.uint8) ^ slip)[None].repeat(len(noises), axis=0)
        for law, bits in zip(laws, inputs, strict=True):
            sent = memoized.reports(bits[None].repeat(len(noises), axis=0), answers, noises)
            law += np.bincount(_numbers(sent), chance * noise_law, minlength=len(law))
    return _loss(laws)


def _level_law(sums: NDArray[np.int8], law: Signs, extra: int) -> Array:
    """(inputs, outputs): of a level's reports for each row of `sums`."""
    flips, coins = _every(law.changes + extra).astype(bool), 2 * _every(sums.shape[1]).astype(np.int8) - 1
    chances = np.ones(len(flips))
    for place in range(law.changes + extra):
        seen = place % law.changes
        flipped = law.flip_chances[seen, flips[:, place - seen : place].sum(axis=1)]
        chances *= np.where(flips[:, place], flipped, 1 - flipped)
    laws = []
    for row in sums:
        drawn, tossed = (np.ravel(index) for index in np.meshgrid(range(len(flips)), range(len(coins)), indexing="ij"))
        sent = tree.reports(row[None].repeat(len(drawn), axis=0), flips[drawn], coins[tossed])
        laws.append(np.bincount(_numbers(sent > 0), chances[drawn] / len(coins), minlength=len(coins)))
    return np.array(laws)


def _every(length: int) -> NDArray[np.uint8]:
    """(2^length, length): all sequences of bits, the constant ones first and last."""
    return np.array(list(itertools.product((0, 1), repeat=length)), dtype=np.uint8)


def _independent(rows: NDArray[np.bool_], chance: float) -> Array:
    return np.asarray(np.where(rows, chance, 1 - chance).prod(axis=1))


def _numbers(sent: NDArray[np.generic]) -> NDArray[np.int64]:
    return sent.astype(np.int64) @ (1 << np.arange(sent.shape[1]))


def _loss(laws: Array) -> float:
    """The largest log ratio of two rows, which must be laws; inf where one alone can show an output."""
    if not np.allclose(laws.sum(axis=1), 1):
        raise ValueError("laws must sum to 1")
    shown = laws[:, laws.max(axis=0) > 0]
    return math.inf if not shown.all() else float(np.log(shown.max(axis=0) / shown.min(axis=0)).max())
