"""Laws of everything that one user ever sends in the protocols of `evolving.rivals`, from their shipped steps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.exact.draws import loss_of
from evolvingdp.audit.exact.reports import telling
from evolvingdp.evolving.rivals import memoized, once, once_words, tree
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.rivals.once_words import OnceWords


def once_loss(settings: Once, step: Callable[..., Any] = once.step) -> float:
    """The worst loss over all sequences of counts of the first user; others have none: lots, silence, reports together."""

    def transcript(counts: tuple[int, ...], rng: Any) -> Hashable:
        state, sent = once.start(settings, rng), []
        for count in counts:
            state, tally = step(settings, state, np.array([count, *[0] * (settings.n_users - 1)]), rng)
            sent.append((tuple(tally.reports.tolist()), tuple(tally.ones.tolist())))
        return tuple(sent)

    inputs = itertools.product(range(settings.epoch_length + 1), repeat=settings.horizon)
    return loss_of(transcript, inputs)


def once_words_loss(settings: OnceWords, words_held: int = 1) -> float:
    """The same for all sequences of `words_held` words an epoch. OLH's function is public, and tells words apart; the tally
    of a user is which words it supports, which is what its report says about words."""
    held = list(itertools.combinations_with_replacement(range(settings.n_words), words_held))
    known: Any = telling(settings.local_hash, np.arange(settings.n_words)) if settings.oracle == "olh" else None
    histograms = [np.bincount(words, minlength=settings.n_words)[None] for words in held]

    def transcript(sequence: tuple[Any, ...], rng: Any) -> Hashable:
        state, sent = once_words.start(settings, rng), []
        for counts in sequence:
            state, tally = once_words.step(settings, state, counts, known or rng, rng)
            sent.append((tuple(tally.reports.tolist()), tuple(tally.sums.ravel().tolist())))
        return tuple(sent)

    inputs = itertools.product(histograms, repeat=settings.horizon)
    return loss_of(transcript, inputs)


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
