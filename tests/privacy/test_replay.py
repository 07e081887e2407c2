"""Record and replay: along random runs of random settings, what is drawn hides a neighbour, at no more than is promised."""

from __future__ import annotations

from functools import partial

import pytest
from generators import MECHANISMS, SEED, cases, refusal, settings

from evolvingdp.audit.exact.replay import ChangedError, replayed
from evolvingdp.audit.registry.entry import FINITE
from evolvingdp.core.seeds import stream

PER_MECHANISM = 25
MORE = {"binary": 100}  # types and magnitudes
REPLAYED = [name for name, one in MECHANISMS.items() if one.how != FINITE]


@pytest.mark.parametrize("name", cases("replay", REPLAYED))
def test_a_neighbour_is_hidden_by_the_noise_at_no_more_than_the_promise(name):
    accepted = 0
    for number, rng in settings(name, MORE.get(name, PER_MECHANISM)):
        trial = MECHANISMS[name].trial(rng)
        where = f"seed {SEED}, {name} {number}: {trial.settings}"
        make = partial(stream, SEED, "noise", name, number)
        refused = [refusal(partial(trial.run, data, make())) for data in trial.data]
        assert len(set(refused)) == 1, f"what is refused depends on a user's data: {refused}, {where}"
        if refused[0]:
            continue
        accepted += 1
        for data in trial.data[1:]:
            try:
                loss = replayed(trial.run, trial.data[0], data, make)
            except ChangedError as changed:
                pytest.fail(f"{changed}; {where}")
            assert loss.kept(trial.epsilon, trial.delta), f"{loss} for {trial.epsilon, trial.delta}; {where}"
    assert accepted > PER_MECHANISM // 4
