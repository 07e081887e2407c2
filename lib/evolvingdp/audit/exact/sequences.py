"""All that one user sends over a few epochs, to the `collect` that ships, following all that it may draw."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.exact.draws import loss_of
from evolvingdp.evolving.rivals import memoized, tree


def tree_loss(settings: tree.ChangeTree, others: int = 0) -> float:
    """Of a dyadic tree's clients over all sequences of bits; `others` report beside the user, whose bits are 1."""
    return _collected(tree.collect, settings, _every(settings.horizon), others)


def memoized_loss(settings: memoized.Memoized, *, constant: bool = False, others: int = 0) -> float:
    """The same of memoization's clients, over all sequences, or over the two `constant` ones. Hash functions are
    public, and tell bits apart."""
    every = _every(settings.horizon)
    return _collected(memoized.collect, settings, every[[0, -1]] if constant else every, others)


def _collected(collect: Callable[[Any, Any, Any], Any], settings: Any, sequences: NDArray[np.uint8], others: int) -> float:
    def sent(bits: NDArray[np.uint8], rng: Any) -> Any:
        rng.integers = _zeros if getattr(settings, "hashed", False) else rng.integers
        return collect(settings, np.vstack([bits, *[np.ones_like(bits)] * others]), rng)

    return loss_of(sent, sequences)


def _zeros(low: int, high: int, size: Any, dtype: Any) -> NDArray[Any]:
    return np.zeros(size, dtype=dtype)


def _every(length: int) -> NDArray[np.uint8]:
    """(2^length, length): all sequences of bits, the constant ones first and last."""
    return np.array(list(itertools.product((0, 1), repeat=length)), dtype=np.uint8)
