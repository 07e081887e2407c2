"""Whole outputs: the exact law of all that a mechanism shows, on tiny settings and at the edges of what a double holds."""

from __future__ import annotations

from functools import partial

import pytest
from generators import MECHANISMS, SEED, settings

from evolvingdp.audit.exact.draws import OnGrid, TooManyWaysError, law_of
from evolvingdp.audit.exact.laws import epsilon_at
from evolvingdp.audit.registry.entry import FINITE

PER_MECHANISM, WAYS = 9, 500
ENUMERATED = [name for name, one in MECHANISMS.items() if one.how == FINITE]


@pytest.mark.parametrize("name", ENUMERATED)
def test_the_law_of_all_that_is_shown_keeps_the_promise(name):
    followed = 0
    for number, rng in settings(name, PER_MECHANISM):
        trial = MECHANISMS[name].trial(rng)
        where = f"seed {SEED}, {name} {number}: {trial.settings}"
        try:
            laws = [law_of(partial(trial.run, data), OnGrid, WAYS) for data in trial.data]
        except TooManyWaysError:
            continue
        followed += 1
        loss = epsilon_at(laws, trial.delta)
        assert loss <= trial.epsilon * (1 + 1e-9), f"{loss} for {trial.epsilon, trial.delta}; {where}"
    assert followed >= PER_MECHANISM // 3
