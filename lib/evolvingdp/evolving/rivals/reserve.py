"""Users once, with a reserve: most users report steadily, and a crew reports at once when what was reported shows a change.

**Computes** estimates of all words' frequencies (a bit is one of two words) in every epoch, each there when its epoch ends.
A share `steady` of the users reports in one epoch each, which a lot names. The others wait in `changes` + 1 crews and a
spare one of a quarter of their size. The first crew reports in epoch 1, and the next one whenever online change detection
(`detection.Watch`) finds that the last segment begins after the last call: a crew's reports of that epoch join its steady
ones, and an estimate is the mean of the last segment.

**Guarantee.** Pure epsilon-local differential privacy of **everything that one user ever sends**; neighbouring inputs are
any two sequences of words of that user, whatever the other users hold (proof: thm-reserve in the book). It needs that roles
are dealt before any data, that reports of others alone decide on a call, and that no user has two roles: with two it would
lose 2 epsilon, and a call that reads its members' data could tell them for any epsilon. Attained.

**Error.** Of the reports of a segment that have come; unbiased where the segment holds no change. At any number of changes
estimates go on, at worst with the error of `detect(online=True)` from a share `steady` of the users.

**Source.** Ours. `simulate` is exact: roles are hypergeometric, lots multinomial, reports have the law of `draw_sums`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.core.detection import Watch
from evolvingdp.core.reports import BITS, Report, best_report
from evolvingdp.evolving.rivals.once import Once, check_words, draw_sums, same_sizes
from evolvingdp.evolving.streams import BitStream, WordStream, sampled

SPARE = 4  # users of a crew for each of the spare one


@checks.plain
@dataclass(frozen=True)
class Reserve:
    """Users of `horizon` epochs; `epsilon` of a user's only report."""

    n_users: int
    horizon: int
    epsilon: float
    changes: int  # that crews wait for
    n_words: int = 2
    steady: float = 0.75  # of the users, who report in an epoch that a lot names
    report: Report = None  # type: ignore[assignment]  # as of `Once`

    def __post_init__(self) -> None:
        checks.integer_at_least(0, changes=self.changes)
        checks.probability(steady=self.steady)
        checks.integer_at_least(1, n_users=self.n_users)
        checks.integer_at_least(2, n_words=self.n_words)
        if self.report is None:
            object.__setattr__(self, "report", best_report(self.n_words, self.epsilon, BITS))
        if self.cell < SPARE:
            raise ValueError(
                f"n_users must be larger for a reserve of {self.changes + 2} crews, got {self.n_users}, of whom a crew has "
                f"{self.cell}"
            )

    @cached_property
    def once(self) -> Once:
        """Those who report steadily."""
        steady = max(1, round(self.steady * self.n_users))
        return Once(steady, self.horizon, self.epsilon, self.n_words, report=self.report)

    @cached_property
    def cell(self) -> int:
        """Users of a crew."""
        return int((self.n_users - self.once.n_users) / (self.changes + 1 + 1 / SPARE))

    @cached_property
    def parts(self) -> list[int]:
        """Into what a lot deals users: those who report steadily, and the crews; few may be left, who never report."""
        return [self.once.n_users] + [self.cell] * (self.changes + 1) + [self.cell // SPARE]

    def standard_error(self, epochs: float = 1.0) -> float:
        """Of a mean near 1/2, or a rare word, from the steady reports of so many epochs, before any data."""
        return self.once.standard_error() / math.sqrt(epochs)


@dataclass(frozen=True, eq=False)
class Release:
    """What everybody sees after an epoch: the estimate of all words, (n_words,), not clipped, nan before the first report;
    how many `reports` it is made of, since which epoch (from 1); whether a crew was `called`, and how many are left."""

    epoch: int
    estimate: NDArray[np.float64]
    reports: float
    since: int
    called: bool
    crews_left: int


class Crews:
    """How many of these `crews`, by size, are `called` in each of so many series, and `since` which epoch the last one."""

    def __init__(self, crews: Sequence[int], series: int = 1) -> None:
        self.crews = np.array([*crews, 0], dtype=float)
        self.called, self.since = np.zeros((2, series), dtype=np.int64)

    def call(self, watch: Watch) -> NDArray[np.float64]:
        """Users who report in the last epoch, too, (series,): the first crew in epoch 1, and the next one wherever the last
        segment begins after the last call."""
        asked = (self.called == 0) | watch.explained & (watch.start >= self.since)
        asked &= self.called < len(self.crews) - 1
        users = np.where(asked, self.crews[self.called], 0)
        self.called, self.since = self.called + asked, np.where(asked, watch.epoch, self.since)
        return users


def follow(
    settings: Reserve,
    told: NDArray[np.float64],
    reports: NDArray[Any],
    joined: Callable[[int, NDArray[np.float64]], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Estimates of the watched word in all epochs, (epochs, series), of series that are watched together, and each by
    itself: `told` by the steady `reports` of each epoch, (epochs, series) each, and, where a crew is called, by all of its
    reports, joined(epoch, users), (series,), of so many more users of each series."""
    watch, crews = Watch(settings.horizon, 1, series=told.shape[1]), Crews(settings.parts[1:], told.shape[1])
    found = np.empty(told.shape)
    for epoch, (one, many) in enumerate(zip(told, reports, strict=True)):
        watch.tell(one[:, None], many, settings.report)
        if (more := crews.call(watch)).any():
            watch.tell(joined(epoch, more)[:, None], many + more, settings.report, again=True)
        found[epoch] = watch.estimate[:, 0]
    return found


class Server:
    """Who is called, and what is estimated: from reports alone."""

    def __init__(self, settings: Reserve) -> None:
        self.settings, self.crews = settings, Crews(settings.parts[1:])
        looked = np.array([1]) if settings.n_words == 2 else None
        self.watch = Watch(settings.horizon, settings.n_words, looked)

    def add(self, reports: int, sums: NDArray[np.int64], again: bool = False) -> None:
        """The reports of an epoch; `again`: all of the last one."""
        report = self.settings.report
        self.watch.tell(report.estimates(sums, reports)[None], reports, report, again)

    def call(self) -> int:
        """The crew that is called in the last epoch, from 1; 0 for none."""
        return int(self.crews.called[0]) if self.crews.call(self.watch)[0] else 0

    def release(self) -> Release:
        watch, called = self.watch, bool(self.crews.since[0] == self.watch.epoch)
        left = len(self.settings.parts) - 1 - int(self.crews.called[0])
        return Release(watch.epoch, watch.estimate[0], float(watch.reports[0]), int(watch.start[0]) + 1, called, left)


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """The server, which is public, and each user's role: the epoch in which it reports, or minus the number of its crew
    (from 1; 0 for who never reports). Nothing of a user's data is kept."""

    server: Server
    roles: NDArray[np.int64]
    settings: Reserve  # whose state it is: `step` refuses it for others


@checks.draws
def start(settings: Reserve, rng: np.random.Generator) -> State:
    """Before the first epoch: users draw their roles."""
    order, (steady, *crews) = rng.permutation(settings.n_users), settings.parts
    roles = np.zeros(settings.n_users, dtype=np.int64)
    roles[order[:steady]] = settings.once.lots.deal(rng)
    roles[order[steady : steady + sum(crews)]] = -np.repeat(np.arange(1, len(crews) + 1), crews)
    return State(Server(settings), roles, settings)


@checks.draws
def step(
    settings: Reserve, state: State, counts: NDArray[np.integer], public: np.random.Generator, private: np.random.Generator
) -> tuple[State, Release]:
    """An epoch in which users hold `counts`, as in `once.step`. Everybody's are checked before any report. `public` draws
    hash functions and rows."""
    checks.state(state, State, settings)
    server = copy.deepcopy(state.server)
    if (epoch := server.watch.epoch + 1) > settings.horizon:
        raise ValueError(f"horizon must be larger to go on: {settings.horizon} epochs are over")
    counts = check_words(counts, settings.n_users, settings.n_words)

    def reported(role: int) -> tuple[int, NDArray[np.int64]]:
        users = np.flatnonzero(state.roles == role)
        return len(users), settings.report.collect(sampled(counts[users], private), public, private)

    reports, sums = reported(epoch)
    server.add(reports, sums)
    if crew := server.call():
        more, joined = reported(-crew)
        server.add(reports + more, sums + joined, again=True)
    return State(server, state.roles, settings), server.release()


@checks.draws
def run(
    settings: Reserve,
    stream: BitStream | WordStream,
    *,
    words: np.random.Generator,
    public: np.random.Generator,
    private: np.random.Generator,
) -> list[Release]:
    """All epochs of `stream`, user by user; `words` draws the users' data, `private` their roles and noise."""
    state, releases = start(settings, private), []
    for epoch in range(1, stream.horizon + 1):
        state, release = step(settings, state, stream.histograms(epoch, words), public, private)
        releases.append(release)
    return releases


@checks.draws
def simulate(settings: Reserve, stream: BitStream | WordStream, rng: np.random.Generator) -> list[Release]:
    """The law of `run`, at any number of users."""
    same_sizes(settings, stream)
    dealt, left = [], stream.sizes  # how many of each group a lot deals to each of the parts
    for part in settings.parts:
        one = np.array([part]) if len(left) == 1 else rng.multivariate_hypergeometric(left, part, method="marginals")
        dealt.append(one)
        left = left - one
    steady = settings.once.lots.split(dealt[0], rng)
    epochs = np.arange(1, settings.horizon + 1)
    sums, reports = draw_sums(settings.report, stream, epochs, steady, rng), steady.sum(axis=0)
    server, releases = Server(settings), []
    for epoch in epochs:
        server.add(reports[epoch - 1], sums[epoch - 1])
        if crew := server.call():
            joined = draw_sums(settings.report, stream, np.array([epoch]), dealt[crew][:, None], rng)[0]
            server.add(reports[epoch - 1] + settings.parts[crew], sums[epoch - 1] + joined, again=True)
        releases.append(server.release())
    return releases
