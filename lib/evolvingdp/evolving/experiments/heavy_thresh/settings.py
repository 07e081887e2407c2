"""What is compared on which words: Brown's categories one after the other, and dictionaries whose frequent words change."""

from __future__ import annotations

import numpy as np

from evolvingdp.core import brown
from evolvingdp.evolving.experiments.heavy_thresh.params import Params
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals.crew_words import CrewWords
from evolvingdp.evolving.streams import WordStream

TUNED, NAIVE, OPTIMAL = "HEAVYTHRESH, tuned", "every epoch, epsilon/T", "every epoch, optimal"
PAPER = "HEAVYTHRESH, paper's constants"
COMPOSITIONS = {NAIVE: "basic", OPTIMAL: "optimal"}  # of recomputation's reports
ONCE, HINDSIGHT = "one word a user, once (OLH)", "once (OLH), averaged in hindsight"
HADAMARD, PERIODS = "one word a user, once (Hadamard)", "users split over the categories (OLH)"
CREWS = "HEAVYTHRESH, roles by lot"
METHODS = [TUNED, *COMPOSITIONS, HADAMARD, ONCE, HINDSIGHT, PERIODS, CREWS]
DELTA = 1e-6
TOP = 10  # words
# n, d, T, ell, epsilon of the dictionaries whose five frequent words are drawn anew twice
DICTIONARIES = (
    (10**6, 1_000, 64, 10**5, 2.0),
    (10**6, 100_000, 64, 10**6, 2.0),
    (10**7, 100_000, 256, 10**6, 1.0),
)


def brown_settings(params: Params) -> HeavyThresh:
    categories = brown.categories()
    horizon = params.epochs_each * categories.shape[1]
    size = (params.n_users, horizon, params.epoch_length, params.epsilon, len(categories))
    return HeavyThresh.tuned(*size, changes=categories.shape[1] - 1, beta=params.beta)


def by_lot(settings: HeavyThresh) -> CrewWords:
    """Roles by lot for as many changes, at the same sizes."""
    voting = settings.voting
    size = (voting.n_users, voting.horizon, voting.epoch_length, voting.epsilon, settings.n_words)
    return CrewWords.plan(*size, changes=voting.changes, beta=voting.beta)


def brown_stream(params: Params) -> WordStream:
    """All users draw words of one category for some epochs, then of the next, in alphabetical order."""
    categories = brown.categories()
    laws = (categories / categories.sum()).to_numpy().T
    which = np.repeat(np.arange(len(laws)), params.epochs_each)[None, :]
    return WordStream.make([params.n_users], laws, which, params.epoch_length)


def dictionary(
    n_users: int, n_words: int, horizon: int, epoch_length: int, epsilon: float, rng: np.random.Generator
) -> tuple[HeavyThresh, WordStream]:
    """.6 of the mass on five words, the rest even; the five are drawn anew at a third and at two thirds of the horizon."""
    laws = np.full((3, n_words), 0.4 / (n_words - 5))
    for law in laws:
        law[rng.choice(n_words, size=5, replace=False)] = (0.2, 0.15, 0.1, 0.1, 0.05)
    which = np.minimum(3 * np.arange(horizon) // horizon, 2)[None, :]
    settings = HeavyThresh.tuned(n_users, horizon, epoch_length, epsilon, n_words, changes=2)
    return settings, WordStream.make([n_users], laws / laws.sum(axis=1, keepdims=True), which, epoch_length)
