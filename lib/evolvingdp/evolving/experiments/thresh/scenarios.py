"""What is compared on which streams: THRESH and recomputation on three steps of one group, and streams beyond these, each
with the THRESH that one would choose for it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from evolvingdp.evolving import streams
from evolvingdp.evolving.constants import paper_epsilons
from evolvingdp.evolving.experiments.split_users import CREWS, HINDSIGHT, ONCE, ONLINE, SIXTEEN
from evolvingdp.evolving.experiments.thresh.params import Params
from evolvingdp.evolving.rivals.crew_thresh import CrewThresh
from evolvingdp.evolving.streams import BitStream
from evolvingdp.evolving.thresh import Thresh

PAPER, TUNED = "THRESH, paper's constants", "THRESH, tuned"
NAIVE, ADVANCED, OPTIMAL = "every epoch, epsilon/T", "every epoch, advanced", "every epoch, optimal"
BASELINES = {NAIVE: "basic", ADVANCED: "advanced", OPTIMAL: "optimal"}  # how each composes its reports
METHODS = [PAPER, TUNED, *BASELINES]
RIVALS = [CREWS, ONCE, ONLINE, HINDSIGHT, SIXTEEN]  # voters never report, and a user reports once
START = 0.3
CHANGES = ((0.2, 0.5), (0.5, 0.25), (0.8, 0.65))  # share of the horizon after which the mean becomes this


def protocols(params: Params, n_users: int, horizon: int) -> dict[str, Thresh]:
    """Both constants with caps for the changes and a spare estimate. Where the paper's b is not small enough for four votes
    a change besides, it has fewer votes, one a change at least: all that these streams need. Where n is so small that b
    does not allow that either, its caps last for fewer changes."""
    size, changes = (n_users, horizon, params.epoch_length, params.epsilon), len(CHANGES)
    vote, estimate = paper_epsilons(n_users, horizon, params.epoch_length, n_users, 1, params.beta)
    affordable = math.floor((params.epsilon - estimate) / (estimate + 8 * vote) * (1 - 1e-12))
    paper = Thresh.paper(*size, beta=params.beta, changes=min(changes, max(0, affordable)))
    votes = math.floor((params.epsilon - (changes + 2) * estimate) / (2 * vote) * (1 - 1e-12))
    if votes >= changes:
        paper = replace(paper, estimate_cap=changes + 2, vote_cap=votes)
    return {
        PAPER: paper,
        TUNED: Thresh.tuned(*size, beta=params.beta, changes=changes),
    }


def by_lot(params: Params, n_users: int, horizon: int, changes: int = len(CHANGES), **options: int) -> CrewThresh | None:
    """THRESH with roles by lot, where there are users enough."""
    size = (n_users, horizon, params.epoch_length, params.epsilon)
    try:
        return CrewThresh.plan(*size, changes=changes, beta=params.beta, **options)
    except ValueError:
        return None


def bits(n_users: int, horizon: int, epoch_length: int) -> BitStream:
    """Three changes at a fifth, a half and four fifths of the horizon."""
    changes = {max(2, round(share * horizon)): mean for share, mean in CHANGES}
    return BitStream.make([n_users], streams.steps(horizon, START, changes), epoch_length)


@dataclass(frozen=True, eq=False)
class Scenario:
    """A name that a table can show, the data, and the settings of THRESH and of that with roles by lot."""

    name: str
    data: BitStream
    settings: Thresh
    crews: CrewThresh | None


def scenarios(params: Params) -> list[Scenario]:
    """Staggered changes of two groups, a change within an epoch, small changes, and more changes than the caps are for."""
    n_users, horizon, epoch_length = params.n_users, params.horizon, params.epoch_length

    def at(share: float) -> int:
        return max(2, round(share * horizon))

    def tuned(changes: int, **options: int) -> Thresh:
        size = (n_users, horizon, epoch_length, params.epsilon)
        return Thresh.tuned(*size, changes=changes, beta=params.beta, **options)

    def both(changes: int, **options: int) -> tuple[Thresh, CrewThresh | None]:
        return tuned(changes, **options), by_lot(params, n_users, horizon, changes, **options)

    def one_group(changes: dict[int, float]) -> BitStream:
        return BitStream.make([n_users], streams.steps(horizon, 0.3, changes), epoch_length)

    small_group = 2 * n_users // 5
    groups = np.array(
        [
            streams.steps(horizon, 0.3, {at(0.3): 0.6, at(0.7): 0.2}),
            streams.steps(horizon, 0.5, {at(0.5): 0.8}),
        ]
    )
    after = streams.steps(horizon, 0.3, {at(0.4) + 1: 0.6})
    half = np.where(np.arange(1, horizon + 1) == at(0.4), epoch_length // 2, 0)
    step = 0.4 * tuned(3).threshold(1)
    if 3 * step > 0.7:  # thresholds fall as one over the root of the epoch's length
        needed = math.ceil(epoch_length * (3 * step / 0.7) ** 2)
        raise ValueError(
            f"epoch_length must be at least {needed}, so that three changes that are voted for fit, got {epoch_length}"
        )
    small = {at(share): 0.3 + step * (number + 1) for number, share in enumerate((0.2, 0.5, 0.8))}
    many = {
        at(share): mean for share, mean in zip((0.1, 0.2, 0.35, 0.5, 0.7, 0.85), (0.6, 0.2, 0.7, 0.3, 0.8, 0.4), strict=True)
    }
    few, few_crews = both(3, spare=0)
    two_groups = BitStream.make([small_group, n_users - small_group], groups, epoch_length)
    return [
        Scenario("two groups, staggered changes", two_groups, *both(3, min_group=small_group, n_groups=2)),
        Scenario(
            "a change in the middle of an epoch",
            BitStream.make([n_users], after, epoch_length, late=half, late_means=np.full(horizon, 0.6)),
            *both(2),
        ),
        Scenario("three changes of .4 of the top threshold", one_group(small), *both(3)),
        Scenario("six changes, caps for three: freeze", one_group(many), few, few_crews),
        Scenario("six changes, caps for three: as printed", one_group(many), replace(few, exhaustion="printed"), None),
    ]
