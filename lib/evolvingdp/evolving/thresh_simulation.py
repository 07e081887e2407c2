"""THRESH simulated exactly, at any number of users.

Users of a group are exchangeable: what matters is how many have had r ones at the last update and have cast v truthful
votes. They vote by the tails of a binomial law, and in an update their new counts follow that law given their votes. Only
the law's tails beyond a mass of 1e-30 are left out.

Most epochs are cheaper still. Where nearly all mass lies in counts for which *every* user votes alike, whatever its
reference, the few others are drawn one by one. How many they are, and what the noise of a silent crowd shows, is drawn for
all epochs up to the next update together: an epoch in which that is nothing is passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.evolving import count_law
from evolvingdp.evolving.count_law import CountLaw
from evolvingdp.evolving.streams import BitStream
from evolvingdp.evolving.thresh import Thresh

_FEW = 1000.0  # expected users outside of the common range, for which the others need no cells


@dataclass(eq=False)
class _Group:
    """How many users of a group have values[i] ones at the last update and j truthful votes: users[i, j]."""

    values: NDArray[np.int64]
    users: NDArray[np.int64]

    @classmethod
    def make(cls, values: NDArray[np.int64], users: NDArray[np.int64]) -> _Group:
        """Without empty rows and without empty columns on the right."""
        rows = np.asarray(users.any(axis=1))
        rows[0] |= not rows.any()  # of nobody
        columns = np.flatnonzero(users.any(axis=0)).max(initial=0) + 1
        return cls(values[rows], users[rows, :columns])

    @property
    def by_votes(self) -> NDArray[np.int64]:
        """(v,) users by the truthful votes that they have cast."""
        return np.asarray(self.users.sum(axis=0))

    @cached_property
    def up_to(self) -> NDArray[np.int64]:
        """(r,) users with a reference of at most values[i]: votes do not change that."""
        return np.cumsum(self.users.sum(axis=1))

    def cast(self, voted: NDArray[np.int64]) -> None:
        """voted[i, j] of the users in each cell cast one more truthful vote."""
        if not voted.any():
            return
        users = np.zeros((len(self.values), self.users.shape[1] + 1), dtype=np.int64)
        users[:, :-1] = self.users - voted
        users[:, 1:] += voted
        self.users = users if users[:, -1].any() else users[:, :-1]

    def may_vote(self, cap: int) -> NDArray[np.int64]:
        """The users that have votes left, cell by cell; zero in the column of those who have none."""
        return np.where(np.arange(self.users.shape[1]) < cap, self.users, 0)


@dataclass(eq=False)
class Trace:
    """One simulated run, an entry an epoch. Only the simulation knows `yes` and `max_votes`: the truthful yes votes of the
    epoch, and the largest number of them that a user has cast up to it."""

    settings: Thresh
    estimate: NDArray[np.float64]
    updated: NDArray[np.bool_]
    frozen: NDArray[np.bool_]
    yes: NDArray[np.int64]
    max_votes: NDArray[np.int64]


@checks.draws
def simulate(settings: Thresh, stream: BitStream, rng: np.random.Generator) -> Trace:
    """Releases with exactly the law of `protocol` on bits drawn from `stream`.

    Raises ValueError where the stream has another size than the settings.
    """
    for name in ("n_users", "horizon", "epoch_length"):
        if getattr(stream, name) != getattr(settings, name):
            raise ValueError(f"stream must have {name} = {getattr(settings, name)}, got {getattr(stream, name)}")
    return Simulation(settings, stream, rng).run()


class Simulation:
    """One run."""

    def __init__(self, settings: Thresh, stream: BitStream, rng: np.random.Generator) -> None:
        self.settings, self.stream, self.rng = settings, stream, rng
        epochs = np.arange(1, settings.horizon + 1)
        level_cuts = np.array([settings.cut(1 << trailing) for trailing in range(settings.levels + 1)])
        self.cuts = level_cuts[np.bitwise_count((epochs & -epochs) - 1)]  # of epochs 1, 2, ...

    def run(self) -> Trace:
        settings, rng, groups = self.settings, self.rng, range(len(self.stream.sizes))
        vote, horizon, epoch = settings.vote_randomizer, settings.horizon, 1
        trace = Trace(
            settings,
            np.full(horizon, np.nan),
            *(np.zeros(horizon, dtype) for dtype in (bool, bool, np.int64, np.int64)),
        )
        left = self._update(trace, epoch, settings.estimate_cap, [self._start(group) for group in groups])
        self._foresee(epoch)
        while (epoch := self._next_event(epoch)) <= horizon:
            votes = [self._vote(group, epoch) for group in groups]
            yes = sum(truthful for truthful, _ in votes)
            shown = self.silent[epoch - self.first]
            if yes:
                shown = rng.binomial(yes, vote.keep) + rng.binomial(settings.n_users - yes, vote.flip)
            trace.yes[epoch - 1] = yes
            trace.max_votes[epoch - 1 :] = max(group.users.shape[1] - 1 for group in self.groups)
            if shown / settings.n_users > settings.update_cut:
                if left == 0 and settings.exhaustion == "freeze":
                    trace.frozen[epoch - 1 :] = True  # until an update
                else:
                    left = self._update(trace, epoch, left, [draw() for _, draw in votes])
                    self._foresee(epoch)
        return trace

    def _update(self, trace: Trace, epoch: int, left: int, groups: list[_Group]) -> int:
        """The users' counts of this epoch, from now on their references, and the estimate from their reports; the estimates
        left after it."""
        settings, ones, self.groups = self.settings, 0, groups
        for group in groups:
            shares = group.values / settings.epoch_length if left > 0 else np.zeros(len(group.values))
            ones += int(self.rng.binomial(group.users.sum(axis=1), settings.report_one(shares)).sum())
        trace.estimate[epoch - 1 :], trace.updated[epoch - 1] = settings.estimate(ones), True
        trace.frozen[epoch - 1 :] = False
        return max(0, left - 1)

    def _law(self, group: int, epoch: int) -> CountLaw:
        return CountLaw.binomial(self.stream.epoch_length, float(self.stream.means[group, epoch - 1]))

    def _foresee(self, epoch: int) -> None:
        """For all later epochs, up to an update: whether nearly all users of a group vote alike and how many do not, and the
        yes votes that are shown when nobody has any."""
        settings, stream, rng = self.settings, self.stream, self.rng
        self.first, cuts = epoch + 1, self.cuts[epoch:].astype(float)
        self.all_yes, self.few, quiet = [], [], np.ones(len(cuts), dtype=bool)
        for group, state in enumerate(self.groups):
            low, high = float(state.values[0]), float(state.values[-1])
            law = settings.epoch_length, stream.means[group, epoch:]
            some_up, up, not_down = count_law.at_least(*law, np.array([low + cuts, high + cuts, low - cuts + 1]))
            some_down, down, not_up = count_law.at_most(*law, np.array([high - cuts, low - cuts, high + cuts - 1]))
            # beyond the range in which all vote no, and short of the ranges in which all vote yes
            some_yes, some_no = some_up + some_down, np.where(up > down, not_up, not_down)
            outside, size = np.minimum(1, np.minimum(some_yes, some_no)), int(stream.sizes[group])
            crowd = size * outside <= _FEW
            self.all_yes.append(some_no < some_yes)
            self.few.append(np.where(crowd, rng.binomial(size, np.where(crowd, outside, 0)), -1))  # -1: cell by cell
            quiet &= (self.few[-1] == 0) & ~self.all_yes[-1]
        self.silent = rng.binomial(settings.n_users, settings.vote_randomizer.flip, size=len(cuts))
        self.events = self.first + np.flatnonzero(~quiet | (self.silent / settings.n_users > settings.update_cut))

    def _next_event(self, epoch: int) -> int:
        """The next epoch in which somebody may vote yes, or noise alone asks for an update."""
        place = int(np.searchsorted(self.events, epoch, side="right"))
        return int(self.events[place]) if place < len(self.events) else self.settings.horizon + 1

    def _start(self, group: int) -> _Group:
        """The counts of the first epoch, of users who have not voted."""
        law = self._law(group, 1)
        return _Group.make(law.values, self.rng.multinomial(self.stream.sizes[group], law.mass)[:, None])

    def _vote(self, group: int, epoch: int) -> tuple[int, Callable[[], _Group]]:
        """The truthful yes votes of a group, and how to draw its state, given these, if an update follows."""
        state, law, ahead = self.groups[group], self._law(group, epoch), epoch - self.first
        cut, last = int(self.cuts[epoch - 1]), len(law.mass)
        low = np.minimum(np.maximum(state.values - cut + 1 - law.low, 0), last)  # yes: the first `low` values of the law ...
        high = np.minimum(np.maximum(state.values + cut - law.low, 0), last)  # ... and those from `high` on
        may, few = state.may_vote(self.settings.vote_cap), int(self.few[group][ahead])
        if few < 0:
            below = np.concatenate([[0.0], np.cumsum(law.mass)])  # P(K < law.low + i)
            above = np.concatenate([np.cumsum(law.mass[::-1])[::-1], [0.0]])  # P(K >= law.low + i)
            voted = self.rng.binomial(may, np.clip(above[high] + below[low], 0, 1)[:, None])
        else:
            voted = self._vote_as_one(state, law, low, high, few, may if self.all_yes[group][ahead] else None)
        spent = state.by_votes - may.sum(axis=0)

        def draw() -> _Group:
            users = np.zeros((last, len(spent) + 1), dtype=np.int64)
            for drawn, held, later in ((law.draw_outside, voted, 1), (law.draw_inside, may - voted, 0)):
                if len(some := np.flatnonzero(held.any(axis=0))):  # few numbers of votes occur
                    users[:, some + later] += drawn(held[:, some], low, high, self.rng)
            if len(some := np.flatnonzero(spent)):
                users[:, some] += self.rng.multinomial(spent[some], law.mass).T
            return _Group.make(law.values, users)

        state.cast(voted)
        return int(voted.sum()), draw

    def _vote_as_one(
        self,
        state: _Group,
        law: CountLaw,
        low: NDArray[np.int64],
        high: NDArray[np.int64],
        few: int,
        all_yes: NDArray[np.int64] | None,
    ) -> NDArray[np.int64]:
        """The votes, cell by cell, where all users vote no, or `all_yes` vote yes, but for `few` different users, uniform,
        whose counts are not in the range where all vote alike."""
        voted = np.zeros_like(state.users) if all_yes is None else all_yes.copy()
        if few:
            places, rng = np.arange(len(law.mass)), self.rng
            alike = (places >= low[-1]) & (places < high[0])
            if all_yes is not None:
                up, down = places >= high[-1], places < low[0]
                alike = up if law.mass[up].sum() > law.mass[down].sum() else down
            chosen = rng.choice(int(state.up_to[-1]), size=few, replace=False)
            rows = np.searchsorted(state.up_to, chosen, side="right")
            ranks = chosen - (state.up_to[rows] - state.users[rows].sum(axis=1))
            columns = (np.cumsum(state.users[rows], axis=1) <= ranks[:, None]).sum(axis=1)
            mass = np.where(alike, 0.0, law.mass)
            place = rng.choice(places, size=few, p=mass / mass.sum())
            yes = (place < low[rows]) | (place >= high[rows])
            other = np.where(columns < self.settings.vote_cap, yes.astype(np.int64) - (all_yes is not None), 0)
            np.add.at(voted, (rows, columns), other)
        return voted
