"""THRESH with roles by lot: users serve in crews, one from each update to the next, as voters or as reporters.

**Computes** an estimate of the population's mean bit in each of `horizon` epochs. As in THRESH, votes on dyadic thresholds
say when to estimate again. But nobody does both: a lot deals each user to one crew, and there to a role. When update k
comes, the reporters that the lot names for it report, each `reports` times in all with epsilon / `reports`, most often once;
the voters of crew k remember their bits, and watch until update k + 1. A vote thus costs epsilon / 8, however many changes
there are, and a report may cost all of epsilon.

**Guarantee.** Pure epsilon-local differential privacy of **everything that one user ever sends**; neighbouring inputs are
any two sequences of bits of that user, whatever the other users and the server do. *Proof.* The lot does not depend on data;
fix it, and the public updates. A voter sends bits only in the epochs between two public updates. Under either of two inputs
it says yes truthfully at most `VOTES_PER_CHANGE` = 4 times, so the laws of at most 8 bits differ, each by a factor of at
most e^(epsilon/8). A reporter sends `reports` bits, in updates that its lot names, each with ratio at most
e^(epsilon/reports).
The loss is exactly epsilon: attained by a voter as in THRESH, and by a reporter with means 0 and 1.

**Error.** The standard error of a planned update is coth(epsilon/2r) / (2 sqrt(m)), m of its reporters, r reports of each.
r is 1 for small epsilon; the one that minimizes it is chosen. Spare updates, for changes that nobody planned for, have a
quarter of m. `error_bound` holds in all epochs with probability 1 - beta while no more than `changes` changes have happened
and no group changes again before its last change has led to an update (a crew has votes for one), for groups of `min_group`
users or more. Failures add up to .6 beta: beta/10 (an update from noise alone: the exact binomial tail), beta/12 (a group
that votes as one is not heard: a binomial tail by Hoeffding 1956), beta/12 (a crew holds too few of a group), beta/6 (a
voter's own mean is far from its group's), beta/6 (reports).

**Source.** Ours. Thresholds, the four votes of a change, and the protocol of voters are those of `thresh`.
`simulate` is exact: crews are hypergeometric over groups, voters as in `thresh_simulation`, reported ones binomial.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.evolving import thresh_protocol, thresh_simulation
from evolvingdp.evolving.constants import unit
from evolvingdp.evolving.rivals.crews import Crews, check_voting, served
from evolvingdp.evolving.streams import BitStream
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.evolving.thresh_protocol import Release, State


@checks.plain
@dataclass(frozen=True)
class CrewThresh:
    """`voting` is the THRESH of one crew's voters, who never report; its `estimate_cap` counts the crews. The reporters of
    `changes` + 1 planned updates come in as many cells of `cell` users: cell c reports in `reports` planned updates from the
    c-th on, cyclically. Each spare update has `spare_cell` reporters of its own. Make one with `CrewThresh.plan`."""

    n_users: int
    epsilon: float  # of a user, over the whole horizon
    voting: Thresh
    changes: int  # that are planned for
    cell: int  # users
    spare_cell: int  # users
    reports: int = 1  # of a reporter, epsilon / reports each

    def __post_init__(self) -> None:
        checks.integer_at_least(1, n_users=self.n_users, cell=self.cell, spare_cell=self.spare_cell, reports=self.reports)
        checks.positive(epsilon=self.epsilon)
        if not 0 <= self.changes < self.crews or not self.reports <= self.changes + 1:
            raise ValueError(f"reports must be at most changes + 1, and these at most {self.crews}, got {self.reports}")
        check_voting(self.voting, self.epsilon, sum(self.parts), self.n_users)

    @classmethod
    def plan(
        cls,
        n_users: int,
        horizon: int,
        epoch_length: int,
        epsilon: float,
        *,
        changes: int,
        spare: int = 1,
        min_group: int | None = None,
        n_groups: int = 1,
        beta: float = 0.05,
    ) -> CrewThresh:
        """As few voters as the proof allows, with what remains for reports, and the best number of reports of each.

        Raises ValueError that names the smallest epsilon that would work where there are not enough users.
        """
        crews = Crews.plan(n_users, horizon, epsilon, changes, spare, min_group, n_groups, beta)
        step = unit(2 * crews.voters, horizon, epoch_length, beta)
        reports = min(range(1, changes + 2), key=lambda r: SignFlip(epsilon / r).debias ** 2 / r)
        return cls(
            n_users,
            epsilon,
            crews.voting(horizon, epoch_length, epsilon, step, beta),
            changes,
            crews.cell,
            crews.spare_cell,
            reports,
        )

    @property
    def crews(self) -> int:
        """One for the start, for each planned change, and to spare."""
        return self.voting.estimate_cap

    @property
    def parts(self) -> list[int]:
        """Into what a lot deals users: the voters of each crew, the cells of planned updates, those of spare ones."""
        planned = self.changes + 1
        return [self.voting.n_users] * self.crews + [self.cell] * planned + [self.spare_cell] * (self.crews - planned)

    def reporting(self, update: int) -> list[int]:
        """The parts that report in `update` (from 0)."""
        planned = self.changes + 1
        cells = [update] if update >= planned else [(update - back) % planned for back in range(self.reports)]
        return [self.crews + cell for cell in cells]

    def randomizer(self, update: int) -> SignFlip:
        """Of a report."""
        return SignFlip(self.epsilon / (self.reports if update <= self.changes else 1))

    def estimate(self, update: int, ones: int) -> float:
        """Of the mean, unbiased, not clipped."""
        randomizer, reporters = self.randomizer(update), sum(self.parts[part] for part in self.reporting(update))
        return (ones / reporters - randomizer.flip) / (randomizer.keep - randomizer.flip)

    def standard_error(self, update: int = 0) -> float:
        """Of an update, the largest for any data and any groups."""
        reporters = sum(self.parts[part] for part in self.reporting(update))
        return self.randomizer(update).debias / (2 * math.sqrt(reporters))

    @property
    def predicted_error(self) -> float:
        """The mean absolute error of a planned update, if it is normal."""
        return math.sqrt(2 / math.pi) * self.standard_error()

    @property
    def error_bound(self) -> float:
        """In all epochs, with probability 1 - beta, as above; from 1 on it says nothing."""
        deviations = math.sqrt(2 * math.log(12 * self.crews / self.voting.beta))
        return 2 * (self.voting.levels + 2) * self.voting.unit + deviations * self.standard_error(self.changes)


@dataclass(frozen=True, eq=False, repr=False)
class CrewState:
    """Secret, but for `votes.release`, the last one, and the lots in `order`: users in the order of `CrewThresh.parts`."""

    order: NDArray[np.int64]
    votes: State[float]  # of the voters of the crew that serves
    settings: CrewThresh  # whose state it is: `step` refuses it for others
    since: int = 0  # the epoch of the last update

    @property
    def release(self) -> Release[float]:
        return self.votes.release


def members(settings: CrewThresh, order: NDArray[np.int64], parts: list[int]) -> NDArray[np.int64]:
    """The users of these parts, in turn."""
    ends = np.cumsum([0, *settings.parts])
    return np.concatenate([order[ends[part] : ends[part + 1]] for part in parts])


def start(settings: CrewThresh, rng: np.random.Generator) -> CrewState:
    """Before the first epoch: users are dealt."""
    return CrewState(rng.permutation(settings.n_users), thresh_protocol.start(settings.voting), settings)


def step(
    settings: CrewThresh, state: CrewState, counts: NDArray[np.integer], rng: np.random.Generator
) -> tuple[CrewState, Release[float]]:
    """An epoch in which user i has counts[i] ones among `epoch_length` bits, (n_users,)."""
    checks.state(state, CrewState, settings)
    voting = settings.voting
    counts = checks.integer_array("counts", counts, below=voting.epoch_length + 1)
    if len(counts) != settings.n_users:
        raise ValueError(f"counts must have one entry per user ({settings.n_users}), got {len(counts)}")
    update = voting.estimate_cap - state.release.estimates_left  # the next one, from 0

    def ask(last: Release[float]) -> float:
        reporters = members(settings, state.order, settings.reporting(update))
        shares = counts[reporters] / voting.epoch_length
        return settings.estimate(update, int(np.count_nonzero(settings.randomizer(update).draw_reports(shares, rng))))

    voters = members(settings, state.order, [max(0, update - 1)])
    votes, release = thresh_protocol.step(voting, state.votes, counts[voters], rng, ask)
    since = release.epoch if release.updated else state.since
    release = served(settings.voting, release, since)
    reference, used = votes.reference, votes.used
    if release.updated:
        reference, used = counts[members(settings, state.order, [update])], np.zeros_like(used)
    return CrewState(state.order, State(reference, used, release, voting), settings, since), release


def run(
    settings: CrewThresh, stream: BitStream, *, bits: np.random.Generator, private: np.random.Generator
) -> list[Release[float]]:
    """All epochs of `stream`, user by user; `bits` draws the users' data, `private` their lots and noise."""
    state, releases = start(settings, private), []
    for epoch in range(1, stream.horizon + 1):
        state, release = step(settings, state, stream.counts(epoch, bits), private)
        releases.append(release)
    return releases


def traced(settings: CrewThresh, stream: BitStream, rng: np.random.Generator) -> thresh_simulation.Trace:
    """Estimates and updates of `simulate`."""
    sizes = (settings.n_users, settings.voting.horizon, settings.voting.epoch_length)
    if (stream.n_users, stream.horizon, stream.epoch_length) != sizes:
        raise ValueError(f"stream must have n_users, horizon, epoch_length = {sizes}")
    return _Crews(settings, stream, rng).run()


def simulate(settings: CrewThresh, stream: BitStream, rng: np.random.Generator) -> list[Release[float]]:
    """The same law at a cost that does not grow with the number of users."""
    releases, since = [], 0
    for release in traced(settings, stream, rng).public:
        since = release.epoch if release.updated else since
        releases.append(served(settings.voting, release, since))
    return releases


class _Crews(thresh_simulation.Simulation):
    def __init__(self, settings: CrewThresh, stream: BitStream, rng: np.random.Generator) -> None:
        super().__init__(settings.voting, stream, rng)
        left, dealt = stream.sizes.copy(), []
        for part in settings.parts:
            dealt.append(
                np.array([part]) if len(left) == 1 else rng.multivariate_hypergeometric(left, part, method="marginals")
            )
            left -= dealt[-1]
        self.crews, self.dealt = settings, np.array(dealt)  # (parts, groups)
        self.enlist(self.dealt[0])

    def update(self, epoch: int, left: int, draws: object) -> float:
        number = self.settings.estimate_cap - left
        self.enlist(self.dealt[number])
        self.groups = [self.everybody(group, epoch)() for group in range(len(self.groups))]
        reporters = self.dealt[self.crews.reporting(number)].sum(axis=0)
        chances = self.crews.randomizer(number).report_one(self.stream.group_means[:, epoch - 1])
        return self.crews.estimate(number, int(self.rng.binomial(reporters, chances).sum()))
