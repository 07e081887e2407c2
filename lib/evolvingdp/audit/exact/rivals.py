"""Laws of everything that one user ever sends in the protocols of `evolving.rivals`, from their shipped steps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from evolvingdp.audit.exact.draws import loss_of
from evolvingdp.core.seeds import stream
from evolvingdp.evolving.rivals import once, once_words
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


def once_words_loss(settings: OnceWords, words_held: int = 1, seed: int = 0) -> float:
    """The same for all sequences of `words_held` words an epoch. OLH's function is drawn with `seed`: it is public, and the
    tally of a user is which words it supports, which is what its report says about words."""
    held = list(itertools.combinations_with_replacement(range(settings.n_words), words_held))
    histograms = [np.bincount(words, minlength=settings.n_words)[None] for words in held]

    def transcript(sequence: tuple[Any, ...], rng: Any) -> Hashable:
        public = stream(seed, "public") if settings.oracle == "olh" else rng
        state, sent = once_words.start(settings, rng), []
        for counts in sequence:
            state, tally = once_words.step(settings, state, counts, public, rng)
            sent.append((tuple(tally.reports.tolist()), tuple(tally.sums.ravel().tolist())))
        return tuple(sent)

    inputs = itertools.product(histograms, repeat=settings.horizon)
    return loss_of(transcript, inputs)
