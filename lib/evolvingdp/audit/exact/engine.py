"""The exact loss of one trial of the registry: one engine for each kind of output.

Where noise is added to sums, and where randomizers report, a run is recorded and replayed (`replay`); where outputs are
finitely many, the law of all of them is followed (`draws`), with uniform numbers as they are drawn. Replay takes the word of
`replay.RANDOMIZERS` for what law a report of theirs has, so that each of these has an entry whose law is followed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial, partialmethod
from typing import Any

import numpy as np

from evolvingdp.audit.exact.draws import Follower, TooManyWaysError, law_of, replaced, stated
from evolvingdp.audit.exact.laws import epsilon_at
from evolvingdp.audit.exact.replay import ChangedError, check_hidden, replayed
from evolvingdp.audit.registry.entry import FINITE, Mechanism, Trial
from evolvingdp.core.noise import DiscreteLaplace, IntegerNoise, MonitorNoise
from evolvingdp.core.seeds import stream

_WAYS = 500  # of a law that is followed
# Sums, or of more integers than can be followed: by the laws that they state, which rows of `formulas` compare with what is
# drawn; whether it is of integers.
_STATED: dict[Any, bool] = {IntegerNoise: True, DiscreteLaplace: True, MonitorNoise: False}


def trial_of(mechanism: Mechanism, number: int, seed: int = 0) -> Trial:
    """The settings and data that have this number; which they are depends on the name of the mechanism alone."""
    return mechanism.trial(stream(seed, "privacy", mechanism.id, number))


def loss_of_trial(mechanism: Mechanism, number: int, seed: int = 0) -> tuple[Trial, float | None]:
    """A trial, and the smallest epsilon at its delta; None where its settings are refused, or have too many ways.

    Raises `ChangedError` where anything but noise and reports depends on the data, refusals included.
    """
    trial = trial_of(mechanism, number, seed)
    make = partial(stream, seed, "noise", mechanism.id, number)
    try:
        return trial, _followed(trial) if mechanism.how == FINITE else _replayed(trial, make)
    except ChangedError as changed:
        raise ChangedError(f"{changed}; {mechanism.id} {number}, seed {seed}: {trial.settings}") from None


def _followed(trial: Trial) -> float | None:
    probes = [(kind, "draw", partialmethod(_drawn, kind.draw, atoms)) for kind, atoms in _STATED.items()]
    with replaced(*probes), suppress(TooManyWaysError):
        return epsilon_at([law_of(partial(trial.run, data), _WAYS) for data in trial.data], trial.delta)
    return None


def _drawn(noise: Any, shipped: Any, atoms: bool, size: Any, rng: Any) -> Any:
    return rng.drawn(stated(noise, atoms), size) if isinstance(rng, Follower) else shipped(noise, size, rng)


def _replayed(trial: Trial, make: Callable[[], np.random.Generator]) -> float | None:
    refused, large = ([_refused(trial, data, make()) for data in datas] for datas in (trial.data, trial.large))
    if len(set(refused)) > 1 or len(set(large)) > 1:
        raise ChangedError(f"what is refused must not depend on a user's data, got {refused} and {large}")
    if refused[0]:
        return None
    found = [replayed(trial.run, trial.data[0], data, make) for data in trial.data[1:]]
    if large and not large[0]:
        check_hidden(trial.run, trial.large[0], trial.large[1], make, found[-1][1])
    return max(loss.epsilon(trial.delta) for loss, _ in found)


def _refused(trial: Trial, data: Any, rng: np.random.Generator) -> str:
    try:
        trial.run(data, rng)
    except (TypeError, ValueError) as refusal:
        return type(refusal).__name__
    return ""
