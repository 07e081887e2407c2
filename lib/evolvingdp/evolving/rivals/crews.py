"""THRESH and HEAVYTHRESH with roles by lot: users serve in crews, from each update to the next, as voters or as reporters.

**Computes** an estimate of the mean bit, or of all words' frequencies, in each of `horizon` epochs. Votes on dyadic
thresholds say when to estimate again. A lot deals each user to one crew, and there to a role: when update k comes, its
reporters report one of their words each, once and for all; the voters of crew k remember theirs, and watch until the next.

**Guarantee.** Pure epsilon-local differential privacy of **everything that one user ever sends**; neighbouring inputs are
any two sequences of words of that user, whatever the other users and the server do (proof: thm-crews in the book). A vote
costs epsilon / 8, as at most 2 `VOTES_PER_CHANGE` bits of a voter have different laws; a report, all of epsilon. Attained.

**Error.** That of m reports (`standard_error`); spare updates, for changes that nobody planned for, have a quarter of m.
`error_bound` holds with probability 1 - beta while no more than `changes` changes have happened and no group changes again
before its last change has led to an update, for groups of `min_group` users or more: noise alone, a group that is not heard,
a crew with too few of it, voters and reports that are far off have .6 beta in all. Then estimates **stay as they are**.

**Source.** Ours, with the thresholds and voters of `thresh` and `heavy_thresh`. `simulate` has the law of their simulations
for votes, and of `Report.draw_sums` for reports; crews are hypergeometric over groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from evolvingdp.core import checks
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.reports import Report, best_report
from evolvingdp.evolving import heavy_protocol, heavy_simulation, thresh_protocol, thresh_simulation
from evolvingdp.evolving.constants import (
    VOTES_PER_CHANGE,
    check_beta,
    hashed_unit,
    smallest_group,
    smallest_users,
    unit,
)
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals.once import BITS, draw_sums, same_sizes, sampled
from evolvingdp.evolving.streams import BitStream, WordStream
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.evolving.thresh_protocol import Release, State

LARGEST = 2**53  # from here on a float holds no such count, and a binomial quantile is not a number
SPARE = 4  # reporters of a planned update for each of a spare one


@checks.plain
@dataclass(frozen=True)
class Crews:
    """`voting` is the THRESH, or of words the HEAVYTHRESH, of one crew's voters, who never report; its `estimate_cap`
    counts the crews. Make one with `Crews.plan`."""

    n_users: int
    epsilon: float  # of a user, over the whole horizon
    voting: Thresh | HeavyThresh
    changes: int  # that are planned for
    cell: int  # reporters of a planned update
    spare_cell: int

    def __post_init__(self) -> None:
        checks.integer_at_least(1, n_users=self.n_users, cell=self.cell, spare_cell=self.spare_cell)
        checks.positive(epsilon=self.epsilon)
        votes = self.votes
        if votes.estimate_epsilon or votes.privacy_loss > self.epsilon * (1 + 1e-9):
            raise ValueError(f"voting must have estimate_epsilon 0 and a loss of at most {self.epsilon}, got {votes}")
        if votes.start != "forced" or votes.exhaustion != "freeze":
            raise ValueError(
                f"voting must have start='forced' and exhaustion='freeze', as nobody is left to report after the last crew, "
                f"got {votes.start!r} and {votes.exhaustion!r}"
            )
        if not 0 <= self.changes < self.crews:
            raise ValueError(f"changes must be at least 0 and below the number of crews, {self.crews}, got {self.changes}")
        if sum(self.parts) > self.n_users:
            raise ValueError(f"n_users must be at least {sum(self.parts)}, all crews together, got {self.n_users}")

    @classmethod
    def plan(
        cls,
        n_users: int,
        horizon: int,
        epoch_length: int,
        epsilon: float,
        n_words: int = 2,
        *,
        changes: int,
        spare: int = 1,
        min_group: int | None = None,
        n_groups: int = 1,
        beta: float = 0.05,
    ) -> Crews:
        """As few voters as can be heard, and the others report; of two words the voters are THRESH's.

        A crew's voters must be heard when a group of `min_group` users votes as one, and its noise must not be: both are
        binomial tails, exact for one group; for a part of a crew the tail is bounded by Hoeffding (1956), the part by his
        inequality. Raises ValueError that names a number of users or an epsilon, or says that none would do.
        """
        checks.integer_at_least(0, changes=changes, spare=spare)
        checks.integer_at_least(1, horizon=horizon)
        checks.integer_at_least(2, n_words=n_words)
        checks.positive(epsilon=epsilon)
        check_beta(beta)
        share = smallest_group(min_group, n_users, n_groups) / n_users
        count, planned, vote = changes + 1 + spare, changes + 1, epsilon / (2 * VOTES_PER_CHANGE)

        def cut(voters: int) -> int | None:
            return heard_cut(voters, horizon, vote, share, n_groups, count, beta)

        voters = smallest_users(lambda voters: cut(voters) is not None, 1)
        if voters is None:
            raise ValueError(
                f"epsilon must be larger, or groups, which have {share:.3g} of all users: at {epsilon!r} they are not heard "
                f"among any number of voters below {LARGEST:,}, got n_users {n_users:,}"
            )
        needed = count * voters + SPARE * planned + spare
        if n_users < needed:
            raise ValueError(
                f"n_users must be at least {needed:,} for {count} crews of {voters:,} voters, whom {changes} changes of "
                f"groups of {share:.3g} of all users need at epsilon {epsilon!r}, got {n_users:,}"
            )
        decided = cut(voters)
        assert decided is not None
        margin = (decided + 0.5) / voters - SignFlip(vote).flip
        size, caps = (voters, horizon, epoch_length, epsilon), (VOTES_PER_CHANGE, count)
        voting: Thresh | HeavyThresh
        if n_words == 2:
            step = unit(2 * voters, horizon, epoch_length, beta)
            voting = Thresh(*size, vote, 0.0, *caps, step, beta, margin=margin)
        else:
            step = hashed_unit(2 * voters, horizon, epoch_length, 1 << (n_words - 1).bit_length(), beta)
            voting = HeavyThresh(Thresh(*size, vote, 0.0, *caps, step, beta, margin=margin, reach=2), n_words)
        cell = int((n_users - count * voters) // (planned + spare / SPARE))
        return cls(n_users, epsilon, voting, changes, cell, cell // SPARE)

    @property
    def votes(self) -> Thresh:
        """The numbers of the voting."""
        return self.voting.voting if isinstance(self.voting, HeavyThresh) else self.voting

    @property
    def n_words(self) -> int:
        return self.voting.n_words if isinstance(self.voting, HeavyThresh) else 2

    @property
    def horizon(self) -> int:
        return self.votes.horizon

    @property
    def crews(self) -> int:
        """One for the start, for each planned change, and to spare."""
        return self.votes.estimate_cap

    @property
    def report(self) -> Report:
        """Of a reporter."""
        return best_report(self.n_words, self.epsilon, BITS)

    def reporters(self, update: int) -> int:
        """How many report in `update` (from 0)."""
        return self.cell if update <= self.changes else self.spare_cell

    @property
    def parts(self) -> list[int]:
        """Into what a lot deals users: the voters of each crew, then the reporters of each update."""
        return [self.votes.n_users] * self.crews + [self.reporters(update) for update in range(self.crews)]

    def estimate(self, update: int, sums: NDArray[np.int64]) -> Any:
        """Of the mean, or of all words' frequencies, (n_words,); unbiased, not clipped."""
        found = self.report.estimates(sums, self.reporters(update))
        return float(found[1]) if isinstance(self.voting, Thresh) else found

    def standard_error(self, update: int = 0, frequency: float | None = None) -> float:
        """Of an update, before any data: of a mean near 1/2, which has the largest, and of a rare word, unless its
        `frequency` is given."""
        share = (0.5 if self.n_words == 2 else 0.0) if frequency is None else frequency
        return math.sqrt(float(self.report.variance(share)) / self.reporters(update))

    @property
    def error_bound(self) -> float:
        """Of a mean in all epochs, with probability 1 - beta, as above; inf for words. From 1 on it says nothing."""
        if isinstance(self.voting, HeavyThresh):
            return math.inf
        deviations = math.sqrt(2 * math.log(12 * self.crews / self.votes.beta))
        return 2 * (self.votes.levels + 2) * self.votes.unit + deviations * self.standard_error(self.changes)


def heard_cut(
    voters: int, horizon: int, vote_epsilon: float, share: float, n_groups: int, crews: int, beta: float
) -> int | None:
    """The yes votes above which an update follows, from noise alone with probability beta / 10 in all epochs at most; None
    where a group with `share` of the users does not exceed it, but with probability beta / 6 in all epochs and crews."""
    if voters >= LARGEST:
        return None
    randomizer = SignFlip(vote_epsilon)
    cut, group = int(binom.isf(beta / (10 * horizon), voters, randomizer.flip)), float(voters)
    if share < 1:
        group = share * voters - math.sqrt(voters * math.log(12 * n_groups * crews / beta) / 2)
    yes = randomizer.flip + group / voters * (randomizer.keep - randomizer.flip)
    if group <= 0 or cut > yes * voters - 1:
        return None
    return cut if binom.cdf(cut, voters, yes) <= beta / (12 * n_groups * horizon) else None


@dataclass(frozen=True, eq=False, repr=False)
class CrewState:
    """Secret, but for `votes.release`, the last one, and the lots in `order`: users in the order of `Crews.parts`."""

    order: NDArray[np.int64]
    votes: State[Any]  # of the voters of the crew that serves
    settings: Crews  # whose state it is: `step` refuses it for others
    since: int = 0  # the epoch of the last update

    @property
    def release(self) -> Release[Any]:
        return self.votes.release


def start(settings: Crews, rng: np.random.Generator) -> CrewState:
    """Before the first epoch: users are dealt."""
    voting = settings.voting
    votes: State[Any] = heavy_protocol.start(voting) if isinstance(voting, HeavyThresh) else thresh_protocol.start(voting)
    return CrewState(rng.permutation(settings.n_users), votes, settings)


def step(
    settings: Crews,
    state: CrewState,
    counts: NDArray[np.integer],
    public: np.random.Generator,
    private: np.random.Generator,
) -> tuple[CrewState, Release[Any]]:
    """An epoch in which user i has counts[i, v] words v, (n_users, n_words), `epoch_length` in all; `public` draws the hash
    functions. Everybody's counts are checked before any noise, whether they serve in this epoch or not."""
    checks.state(state, CrewState, settings)
    voting, update = settings.voting, settings.crews - state.release.estimates_left
    held = heavy_protocol.histograms(counts, settings.n_users, settings.n_words, settings.votes.epoch_length)
    ends = np.cumsum([0, *settings.parts])

    def part(number: int) -> NDArray[np.int64]:
        return np.asarray(held[state.order[ends[number] : ends[number + 1]]])

    def ask(last: Release[Any]) -> Any:
        words = sampled(part(settings.crews + update), private)
        return settings.estimate(update, settings.report.collect(words, public, private))

    voters, successors = part(max(0, update - 1)), part(min(update, settings.crews - 1))
    votes: State[Any]
    release: Release[Any]
    if isinstance(voting, HeavyThresh):
        votes, release = heavy_protocol.step(voting, state.votes, voters, public, private, ask)
    else:
        votes, release = thresh_protocol.step(voting, state.votes, voters[:, 1], private, ask)
        successors = successors[:, 1]
    since = release.epoch if release.updated else state.since
    release = served(settings.votes, release, since)
    reference, used = votes.reference, votes.used
    if release.updated:
        reference, used = successors, np.zeros(settings.votes.n_users, dtype=np.int64)
    return CrewState(state.order, State(reference, used, release, voting), settings, since), release


def served(voting: Thresh, release: Release[Any], since: int) -> Release[Any]:
    """`release` with the votes that every voter of the crew has left at least, when the crew serves since that epoch."""
    voted = voting.voting_epochs(release.epoch) - voting.voting_epochs(since)
    return replace(release, votes_left=max(0, voting.vote_cap - voted))


def run(
    settings: Crews, stream: BitStream | WordStream, *, words: np.random.Generator, public: np.random.Generator,
    private: np.random.Generator,
) -> list[Release[Any]]:  # fmt: skip
    """All epochs of `stream`, user by user; `words` draws the users' data, `private` their lots and noise."""
    state, releases = start(settings, private), []
    for epoch in range(1, stream.horizon + 1):
        state, release = step(settings, state, stream.histograms(epoch, words), public, private)
        releases.append(release)
    return releases


def simulate(settings: Crews, stream: BitStream | WordStream, rng: np.random.Generator) -> list[Release[Any]]:
    """The law of `run`, for words but for the distance that `heavy_simulation` allows; the same errors as that."""
    same_sizes(settings, stream)
    if stream.epoch_length != settings.votes.epoch_length:
        raise ValueError(f"stream must have epoch_length = {settings.votes.epoch_length}, got {stream.epoch_length}")
    if isinstance(stream, BitStream) != isinstance(settings.voting, Thresh):
        raise ValueError(f"stream must be a BitStream for two words, and else a WordStream, got {type(stream).__name__}")
    dealt = deal(settings.parts, stream.sizes, rng)
    public: list[Release[Any]]
    if isinstance(stream, BitStream):
        public = _Votes(settings, stream, dealt, rng).run().public
    else:
        public = _voted(settings, stream, dealt, rng)
    releases, since = [], 0
    for release in public:
        since = release.epoch if release.updated else since
        releases.append(served(settings.votes, release, since))
    return releases


def deal(parts: list[int], sizes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """How many of each group a lot deals to each of `parts`, (parts, groups)."""
    left, dealt = sizes.copy(), []
    for part in parts:
        one = np.array([part]) if len(left) == 1 else rng.multivariate_hypergeometric(left, part, method="marginals")
        dealt.append(one)
        left = left - one
    return np.array(dealt)


class _Votes(thresh_simulation.Simulation):
    """Of bits."""

    def __init__(self, settings: Crews, stream: BitStream, dealt: NDArray[np.int64], rng: np.random.Generator) -> None:
        super().__init__(settings.votes, replace(stream, sizes=dealt[0]), rng)
        self.crews, self.dealt = settings, dealt

    def update(self, epoch: int, left: int, draws: object) -> float:
        number = self.crews.crews - left
        self.enlist(self.dealt[number])
        self.groups = [self.everybody(group, epoch)() for group in range(len(self.groups))]
        reporters = self.dealt[self.crews.crews + number]
        sums = draw_sums(self.crews.report, self.stream, np.array([epoch]), reporters[:, None], self.rng)
        return float(self.crews.estimate(number, sums[0]))


def _voted(
    settings: Crews, stream: WordStream, dealt: NDArray[np.int64], rng: np.random.Generator
) -> list[Release[heavy_protocol.Words]]:
    """Of words."""
    assert isinstance(settings.voting, HeavyThresh)

    def ask(hashed: heavy_simulation.Hashed, last: Release[Any]) -> tuple[Any, list[heavy_simulation.Alike]]:
        epoch, update = last.epoch + 1, settings.crews - last.estimates_left
        crew = heavy_simulation.voters(hashed, dealt[update], rng)
        for group in crew:
            group.enlist(epoch)
        reporters = dealt[settings.crews + update]
        sums = draw_sums(settings.report, stream, np.array([epoch]), reporters[:, None], rng)
        return settings.estimate(update, sums[0]), crew

    return heavy_simulation.simulate(settings.voting, replace(stream, sizes=dealt[0]), rng, ask).public
