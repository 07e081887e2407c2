"""Everything that a user ever sends where users are split over epochs: lots, silence and one report, enumerated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evolvingdp.audit.exact.draws import law_of
from evolvingdp.audit.exact.rivals import once_loss, once_words_loss
from evolvingdp.evolving.rivals import once
from evolvingdp.evolving.rivals.once import Once, State, Tally
from evolvingdp.evolving.rivals.once_words import ORACLES, OnceWords

LN3 = math.log(3)


def test_the_law_of_all_draws_is_the_law():
    law = law_of(lambda rng: (int(rng.integers(0, 3)), bool(rng.random() < 0.25)), 8)
    assert law == pytest.approx({(digit, yes): (1 / 4 if yes else 3 / 4) / 3 for digit in range(3) for yes in (False, True)})
    pair = law_of(lambda rng: int(rng.integers(0, np.array([2, 3])).sum()), 8)
    assert pair == pytest.approx({0: 1 / 6, 1: 2 / 6, 2: 2 / 6, 3: 1 / 6})


@pytest.mark.parametrize(("horizon", "epoch_length", "every"), [(2, 2, 1), (3, 1, 2), (3, 1, 1)])
def test_one_bit_a_user_costs_exactly_epsilon(horizon, epoch_length, every):
    assert once_loss(Once(1, horizon, epoch_length, LN3, every)) == pytest.approx(LN3, rel=1e-9)


@pytest.mark.parametrize("oracle", ORACLES)
def test_one_word_a_user_costs_exactly_epsilon(oracle):
    assert once_words_loss(OnceWords(1, 2, 3, LN3, oracle)) == pytest.approx(LN3, rel=1e-9)
    assert once_words_loss(OnceWords(1, 1, 2, LN3, oracle), words_held=2) == pytest.approx(LN3, rel=1e-9)


def twice(settings, state, counts, rng):
    """A mutant: users report in the epoch after their lot, too."""
    later = State(state.epoch, state.lots + 1)
    _, extra = once.step(settings, later, counts, rng)
    state, tally = once.step(settings, state, counts, rng)
    return state, tally + extra


def silent(settings, state, counts, rng):
    """A mutant: a user without ones does not answer."""
    kept, tally = once.step(settings, state, counts, rng)
    return kept, Tally(tally.reports * (counts[0] > 0), tally.ones * (counts[0] > 0))


def waiting(settings, state, counts, rng):
    """A mutant: a user without ones reports in the last epoch instead."""
    moved = np.where((state.lots == state.epoch + 1) & (counts == 0), settings.horizon, state.lots)
    return once.step(settings, State(state.epoch, moved), counts, rng)


def test_a_second_report_doubles_the_loss_and_lots_that_depend_on_data_have_none():
    settings = Once(1, 2, 1, LN3)
    assert once_loss(settings, twice, 8) == pytest.approx(2 * LN3)
    assert once_loss(settings, silent, 8) == math.inf
    assert once_loss(settings, waiting, 8) == math.inf
