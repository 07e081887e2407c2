"""HEAVYTHRESH with roles by lot: crews of voters and reporters as in `crew_thresh`, for the words of a dictionary.

**Computes** estimates of all words' frequencies in each of `horizon` epochs. The voters of a crew vote as in HEAVYTHRESH, on
signed sums of their words; in update k the reporters of crew k sample one of their words each and send it through OLH.

**Guarantee.** Pure epsilon-local differential privacy of **everything that one user ever sends**; neighbouring inputs are
any two sequences of words of that user. The proof is that of `crew_thresh`: the lot, and hash functions, do not depend on
data; a voter's 8 bits that may differ cost epsilon / 8 each; a reporter sends one report of epsilon, `core.olh`.

**Error.** Of a word of frequency f in a planned update: sqrt(variances(f) / reporters), `once_words`; a spare update has a
quarter of the reporters.

**Source.** Ours; OLH: Wang et al. (2017). `simulate` has the law of `heavy_simulation` for votes, and that of `once_words`
for reports.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.evolving import heavy_protocol, heavy_simulation
from evolvingdp.evolving.constants import hashed_unit
from evolvingdp.evolving.heavy_projection import Projection, chosen
from evolvingdp.evolving.heavy_protocol import Words
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals.crews import Crews, check_voting, served
from evolvingdp.evolving.rivals.once_words import OnceWords, WordTally, sampled
from evolvingdp.evolving.streams import WordStream
from evolvingdp.evolving.thresh_protocol import Release, State


@checks.plain
@dataclass(frozen=True)
class CrewWords:
    """`voting` is the HEAVYTHRESH of one crew's voters, who never report. Make one with `CrewWords.plan`."""

    n_users: int
    epsilon: float
    voting: HeavyThresh
    changes: int
    cell: int  # reporters of a planned update
    spare_cell: int

    def __post_init__(self) -> None:
        checks.integer_at_least(1, n_users=self.n_users, cell=self.cell, spare_cell=self.spare_cell)
        checks.positive(epsilon=self.epsilon)
        voting = self.voting.voting
        if not 0 <= self.changes < self.crews:
            raise ValueError(f"changes must be at least 0 and below the number of crews, {self.crews}, got {self.changes}")
        check_voting(voting, self.epsilon, sum(self.parts), self.n_users)

    @classmethod
    def plan(
        cls,
        n_users: int,
        horizon: int,
        epoch_length: int,
        epsilon: float,
        n_words: int,
        *,
        changes: int,
        spare: int = 1,
        min_group: int | None = None,
        n_groups: int = 1,
        beta: float = 0.05,
        phi: Projection | None = None,
    ) -> CrewWords:
        """As `CrewThresh.plan`, with the same errors."""
        crews = Crews.plan(n_users, horizon, epsilon, changes, spare, min_group, n_groups, beta)
        step = hashed_unit(2 * crews.voters, horizon, epoch_length, chosen(phi, n_words).width, beta)
        voting = HeavyThresh(crews.voting(horizon, epoch_length, epsilon, step, beta, reach=2), n_words, phi)
        return cls(n_users, epsilon, voting, changes, crews.cell, crews.spare_cell)

    @property
    def crews(self) -> int:
        """One for the start, for each planned change, and to spare."""
        return self.voting.voting.estimate_cap

    @property
    def parts(self) -> list[int]:
        """Into what a lot deals users: the voters of each crew, then the reporters of each update."""
        return [self.voting.voting.n_users] * self.crews + [self.reporters(update).n_users for update in range(self.crews)]

    def reporters(self, update: int) -> OnceWords:
        """Who reports in `update` (from 0)."""
        size = self.cell if update <= self.changes else self.spare_cell
        return OnceWords(size, 1, self.voting.n_words, self.epsilon)

    def standard_error(self, update: int = 0, frequency: float = 0.0) -> float:
        """Of a rare word's planned estimate."""
        reporters = self.reporters(update)
        return math.sqrt(float(reporters.variances(frequency)) / reporters.n_users)


def estimated(reporters: OnceWords, sums: NDArray[np.int64]) -> NDArray[np.float64]:
    """Frequencies, (n_words,), unbiased, not clipped."""
    return np.asarray(reporters.estimates(WordTally(np.array([reporters.n_users]), sums[None, :]))[0])


@dataclass(frozen=True, eq=False, repr=False)
class CrewWordsState:
    """Secret, but for `votes.release`, the last one, and the lots in `order`: users in the order of `CrewWords.parts`."""

    order: NDArray[np.int64]
    votes: State[Words]  # of the voters of the crew that serves
    settings: CrewWords  # whose state it is: `step` refuses it for others
    since: int = 0  # the epoch of the last update

    @property
    def release(self) -> Release[Words]:
        return self.votes.release


def start(settings: CrewWords, rng: np.random.Generator) -> CrewWordsState:
    """Before the first epoch: users are dealt."""
    return CrewWordsState(rng.permutation(settings.n_users), heavy_protocol.start(settings.voting), settings)


def step(
    settings: CrewWords,
    state: CrewWordsState,
    counts: NDArray[np.integer],
    public: np.random.Generator,
    private: np.random.Generator,
) -> tuple[CrewWordsState, Release[Words]]:
    """An epoch in which user i has counts[i, v] words v, (n_users, n_words), `epoch_length` in all; `public` draws the hash
    functions. Everybody's counts are checked before any noise, whether they serve in this epoch or not."""
    checks.state(state, CrewWordsState, settings)
    voting, update = settings.voting.voting, settings.crews - state.release.estimates_left
    held = heavy_protocol.histograms(counts, settings.n_users, settings.voting.n_words, voting.epoch_length)
    ends = np.cumsum([0, *settings.parts])

    def part(number: int) -> NDArray[np.int64]:
        return np.asarray(held[state.order[ends[number] : ends[number + 1]]])

    def ask(last: Release[Words]) -> NDArray[np.float64]:
        reporters = settings.reporters(update)
        words = sampled(part(settings.crews + update), private)
        return estimated(reporters, reporters.collect(words, public, private))

    voters = part(max(0, update - 1))
    votes, release = heavy_protocol.step(settings.voting, state.votes, voters, public, private, ask)
    since = release.epoch if release.updated else state.since
    release = served(voting, release, since)
    reference, used = votes.reference, votes.used
    if release.updated:
        successors = part(update) if update else voters
        reference, used = successors, np.zeros(voting.n_users, dtype=np.int64)
    return CrewWordsState(state.order, State(reference, used, release, settings.voting), settings, since), release


def run(
    settings: CrewWords, stream: WordStream, *, words: np.random.Generator, public: np.random.Generator,
    private: np.random.Generator,
) -> list[Release[Words]]:  # fmt: skip
    """All epochs of `stream`, user by user; `words` draws the users' data, `private` their lots and noise."""
    state, releases = start(settings, private), []
    for epoch in range(1, stream.which.shape[1] + 1):
        state, release = step(settings, state, stream.counts(epoch, words), public, private)
        releases.append(release)
    return releases


def simulate(settings: CrewWords, stream: WordStream, rng: np.random.Generator) -> heavy_simulation.Trace:
    """The law of `run`, but for `Trace.distance`; the same errors as `heavy_simulation.simulate`."""
    left, dealt = stream.sizes.copy(), []
    for part in settings.parts:
        dealt.append(np.array([part]) if len(left) == 1 else rng.multivariate_hypergeometric(left, part, method="marginals"))
        left = left - dealt[-1]

    def ask(
        hashed: heavy_simulation.Hashed, last: Release[Words]
    ) -> tuple[Words, list[heavy_simulation.Cells | heavy_simulation.Alike]]:
        epoch, update = last.epoch + 1, settings.crews - last.estimates_left
        crew = heavy_simulation.voters(hashed, dealt[update], rng)
        for group in crew:
            group.enlist(epoch)
        laws = stream.distributions[stream.which[:, epoch - 1]]
        reporters = settings.reporters(update)
        return estimated(reporters, reporters.draw_sums(dealt[settings.crews + update], laws, rng)), crew

    if stream.n_users != settings.n_users:
        raise ValueError(f"stream must have n_users = {settings.n_users}, got {stream.n_users}")
    trace = heavy_simulation.simulate(settings.voting, replace(stream, sizes=dealt[0]), rng, ask)
    releases, since = [], 0
    for release in trace.public:
        since = release.epoch if release.updated else since
        releases.append(served(settings.voting.voting, release, since))
    return replace(trace, public=releases)
