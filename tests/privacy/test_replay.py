"""Record and replay: along random runs of random settings, what is drawn hides a neighbour, at no more than is promised."""

from __future__ import annotations

from functools import partial

import pytest
from generators import MECHANISMS, SEED, refusal, settings

from evolvingdp.audit.exact.replay import ChangedError, check_hidden, replayed
from evolvingdp.audit.registry.entry import FINITE
from evolvingdp.core.seeds import stream

PER_MECHANISM = 16
OTHERWISE = {"binary": 60, "coordinates": 6}  # types and magnitudes; several means
REPLAYED = [name for name, one in MECHANISMS.items() if one.how != FINITE]


@pytest.mark.parametrize("name", REPLAYED)
def test_a_neighbour_is_hidden_by_the_noise_at_no_more_than_the_promise(name):
    accepted = 0
    for number, rng in settings(name, OTHERWISE.get(name, PER_MECHANISM)):
        trial = MECHANISMS[name].trial(rng)
        where = f"seed {SEED}, {name} {number}: {trial.settings}"
        make = partial(stream, SEED, "noise", name, number)
        seen = [{refusal(partial(trial.run, one, make())) for one in data} for data in (trial.data, trial.large)]
        assert all(len(kinds) <= 1 for kinds in seen), f"what is refused depends on a user's data: {seen}, {where}"
        if any(seen[0]):
            continue
        accepted += 1
        try:
            for data in trial.data[1:]:
                loss, moves = replayed(trial.run, trial.data[0], data, make)
                assert loss.kept(trial.epsilon, trial.delta), f"{loss} for {trial.epsilon, trial.delta}; {where}"
            if trial.large and not any(seen[1]):
                check_hidden(trial.run, *trial.large, make, moves)
        except ChangedError as changed:
            pytest.fail(f"{changed}; {where}")
    assert accepted >= 5
