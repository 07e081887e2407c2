"""Everything that a user ever sends where users are split over epochs: lots, silence and one report, enumerated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evolvingdp.audit.exact.draws import law_of
from evolvingdp.audit.exact.rivals import once_loss
from evolvingdp.evolving.rivals import once
from evolvingdp.evolving.rivals.once import Once, State, Tally
from evolvingdp.sparse_vector.noise import MonitorNoise

LN3 = math.log(3)


def test_the_law_of_all_draws_is_the_law():
    law = law_of(lambda rng: (int(rng.integers(0, 3)), bool(rng.random() < 0.25)))
    assert law == pytest.approx({(digit, yes): (1 / 4 if yes else 3 / 4) / 3 for digit in range(3) for yes in (False, True)})
    pair = law_of(lambda rng: int(rng.integers(0, np.array([2, 3])).sum()))
    assert pair == pytest.approx({0: 1 / 6, 1: 2 / 6, 2: 2 / 6, 3: 1 / 6})


def test_what_is_known_of_a_draw_is_not_drawn_again():
    def twice(rng):
        number = rng.laplace(0.0, 2.0)
        return bool(number > 1), bool(number > 0), bool(number + 0.5 > 1)

    law = law_of(twice)
    tails = {cut: math.exp(-cut / 2) / 2 for cut in (0, 0.5, 1)}
    assert law == pytest.approx(
        {
            (True, True, True): tails[1],
            (False, True, True): tails[0.5] - tails[1],
            (False, True, False): tails[0] - tails[0.5],
            (False, False, False): 1 - tails[0],
        }
    )


@pytest.mark.parametrize("inner", [0.7, 30.0])
def test_a_sum_of_two_draws_has_the_law_of_their_sum(inner):
    noise = MonitorNoise(1.0, inner)
    for cut in (-30.0, -3.0, 0.0, 0.5, 1.0, 4.0, 60.0):
        law = law_of(lambda rng, cut=cut: bool(noise.draw(rng) < cut))
        assert [law[True], law[False]] == pytest.approx([float(noise.cdf(cut)), float(noise.sf(cut))], rel=1e-9)


def twice(settings, state, counts, rng):
    """A mutant: users report in the epoch after their lot, too."""
    later = State(state.epoch, state.lots + 1, settings)
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
    return once.step(settings, State(state.epoch, moved, settings), counts, rng)


def test_a_second_report_doubles_the_loss_and_lots_that_depend_on_data_have_none():
    settings = Once(1, 2, 1, LN3)
    assert once_loss(settings, twice) == pytest.approx(2 * LN3)
    assert once_loss(settings, silent) == math.inf
    assert once_loss(settings, waiting) == math.inf
