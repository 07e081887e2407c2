"""Laws of everything that one user ever sends in the protocols of `evolving.rivals`, from their shipped steps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from local_laws import told
from numpy.typing import NDArray

from evolvingdp.audit.exact.draws import loss_of
from evolvingdp.evolving.rivals import once, reserve
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.rivals.reserve import Reserve


def once_loss(settings: Once, words_held: int = 1, step: Callable[..., Any] = once.step) -> float:
    """The worst loss over all sequences of `words_held` words an epoch of the first user; others hold the last word: lots,
    silence, reports together. A hash function is public, and tells words apart; the tally of a user is which words it
    supports, which is what its report says about words."""
    public = told(settings.report)

    def transcript(sequence: tuple[Any, ...], rng: Any) -> Hashable:
        state, sent = once.start(settings, rng), []
        for counts in sequence:
            state, tally = step(settings, state, counts, public or rng, rng)
            sent.append((tuple(tally.reports.tolist()), tuple(tally.sums.ravel().tolist())))
        return tuple(sent)

    return loss_of(transcript, itertools.product(_histograms(settings, words_held), repeat=settings.horizon))


def reserve_loss(settings: Reserve, roles: list[int], step: Callable[..., Any] = reserve.step) -> float:
    """The same of the first of users with these `roles`, as `reserve.State` has them, over all sequences of one word an
    epoch; others hold the last word. What is sent are all reports; that a crew is called is among what is released."""
    public = told(settings.report)
    dealt = np.array(roles)

    def transcript(sequence: tuple[Any, ...], rng: Any) -> Hashable:
        state, sent = reserve.State(reserve.Server(settings), dealt, settings), []
        for counts in sequence:
            state, release = step(settings, state, counts, public or rng, rng)
            server = state.server
            sent.append((release.called, server.watch.totals[server.watch.epoch].round(9).tobytes()))
        return tuple(sent)

    return loss_of(transcript, itertools.product(_histograms(settings, 1), repeat=settings.horizon))


def _histograms(settings: Once | Reserve, words_held: int) -> list[NDArray[np.int64]]:
    """Of all users, (n_users, n_words): the first holds any words, the others the last one."""
    found = []
    for words in itertools.combinations_with_replacement(range(settings.n_words), words_held):
        counts = np.zeros((settings.n_users, settings.n_words), dtype=np.int64)
        counts[:, -1] = words_held
        counts[0] = np.bincount(words, minlength=settings.n_words)
        found.append(counts)
    return found
