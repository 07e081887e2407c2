"""Everything that a user ever sends where users are split over epochs: lots, silence and one report, enumerated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from evolving_losses import once_loss, reserve_loss

from evolvingdp.audit.exact.draws import law_of
from evolvingdp.core.noise import MonitorNoise
from evolvingdp.core.reports import Hashed, Sign, Subset
from evolvingdp.evolving.rivals import once, reserve
from evolvingdp.evolving.rivals.once import Once, State, Tally
from evolvingdp.evolving.rivals.reserve import Reserve

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
        law = law_of(lambda rng, cut=cut: bool(noise.draw(1, rng)[0] < cut))
        assert [law[True], law[False]] == pytest.approx([float(noise.cdf(cut)), float(noise.sf(cut))], rel=1e-9)


def twice(settings, state, counts, public, private):
    """A mutant: users report in the epoch after their lot, too."""
    later = State(state.epoch, state.lots + 1, settings)
    _, extra = once.step(settings, later, counts, public, private)
    state, tally = once.step(settings, state, counts, public, private)
    return state, tally + extra


def silent(settings, state, counts, public, private):
    """A mutant: a user without ones does not answer."""
    kept, tally = once.step(settings, state, counts, public, private)
    return kept, Tally(tally.reports * (counts[0, 1] > 0), tally.sums * (counts[0, 1] > 0))


def waiting(settings, state, counts, public, private):
    """A mutant: a user without ones reports in the last epoch instead."""
    moved = np.where((state.lots == state.epoch + 1) & (counts[:, 1] == 0), settings.horizon, state.lots)
    return once.step(settings, State(state.epoch, moved, settings), counts, public, private)


def test_a_second_report_doubles_the_loss_and_lots_that_depend_on_data_have_none():
    settings = Once(1, 2, LN3)
    assert once_loss(settings) == pytest.approx(LN3)
    assert once_loss(settings, step=twice) == pytest.approx(2 * LN3)
    assert once_loss(settings, step=silent) == math.inf
    assert once_loss(settings, step=waiting) == math.inf


CREW, SPARE = [-1, -1, 1, *[0] * 8], [-2, -1, 1, *[0] * 8]


def always(server):
    """The next crew is called in every epoch, whatever was reported."""
    return server.called if server.called < 2 else None


def at_ones(server):
    """The next crew is called when a report of the last epoch is a one."""
    return server.called if server.called < 2 and (not server.called or server.watch.totals[-1, 1] > 0.5) else None


@pytest.mark.parametrize("roles", [[2, -1, *[0] * 9], CREW, SPARE])
@pytest.mark.parametrize("trigger", [None, always, at_ones])
@pytest.mark.parametrize("kind", [Subset, Hashed, Sign])
def test_whatever_triggers_a_call_a_user_with_one_role_loses_epsilon(roles, trigger, kind, monkeypatch):
    """Exactly, or nothing where its crew is never called."""
    if trigger:
        monkeypatch.setattr(reserve.Server, "crew", property(trigger))
    settings = Reserve(11, 2, LN3, 0, steady=0.5, report=kind(2, LN3))
    loss = reserve_loss(settings, roles)
    assert loss == pytest.approx(LN3) or (loss == 0 and roles is SPARE and trigger is not always)


def shared(settings, state, counts, public, private):
    """A mutant: the first crew's members report steadily, too, in the last epoch."""
    state, release = reserve.step(settings, state, counts, public, private)
    both = np.where(state.roles == -1, settings.horizon, state.roles)
    return reserve.State(state.server, both, settings), release


def reading(settings, state, counts, public, private):
    """A mutant: a crew is called when its first member holds a one."""
    calls = state.server.called < 2 and counts[0, 1] > 0
    roles = np.where(state.roles == -1, 0 if not calls else -1, state.roles)
    return reserve.step(settings, reserve.State(state.server, roles, settings), counts, public, private)


def test_crews_that_overlap_or_read_their_own_data_lose_more():
    settings = Reserve(11, 2, LN3, 0, steady=0.5)
    one = [-1, *[0] * 10]
    assert reserve_loss(settings, one) == pytest.approx(LN3)
    assert reserve_loss(settings, one, step=shared) == pytest.approx(2 * LN3)
    assert reserve_loss(settings, one, step=reading) == math.inf
