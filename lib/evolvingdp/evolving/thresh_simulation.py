"""THRESH simulated exactly, at a cost that does not grow with the number of users.

Users of a group are exchangeable: what matters of them is how many have had r ones at the last update and have cast v
truthful votes. In an epoch they vote by the tails of a binomial law, all at once; in an update their new counts follow that
law given their votes. Nothing is approximated but the law's tails beyond a mass of 1e-30.

Most epochs are cheaper still. With all references between two values, there is a range of counts for which *every* user
votes no, and two for which every user votes yes, whatever the reference; when nearly all mass lies in one of them, the few
users outside are drawn one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evolvingdp.evolving import count_law
from evolvingdp.evolving.count_law import CountLaw
from evolvingdp.evolving.streams import BitStream
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.evolving.thresh_protocol import Release, after, before, pays

_FEW = 10.0  # expected users outside of the common range, for which the others need no cells
_USER_BY_USER = 3_000_000  # users who are drawn by inverting the law, instead of a multinomial for every reference


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

    @cached_property
    def by_votes(self) -> NDArray[np.int64]:
        """(v,) users by the truthful votes that they have cast."""
        return np.asarray(self.users.sum(axis=0))

    @cached_property
    def size(self) -> int:
        return int(self.by_votes.sum())

    @cached_property
    def votes_cast(self) -> int:
        return int(self.by_votes @ np.arange(len(self.by_votes)))

    def advanced(self, voted: NDArray[np.int64]) -> _Group:
        """After voted[i, j] of the users in each cell have cast one more truthful vote."""
        users = np.zeros((len(self.values), self.users.shape[1] + 1), dtype=np.int64)
        users[:, :-1] = self.users - voted
        users[:, 1:] += voted
        return _Group.make(self.values, users)

    def may_vote(self, cap: int) -> NDArray[np.int64]:
        """The users that have votes left, cell by cell; zero in the column of those who have none."""
        return np.where(np.arange(self.users.shape[1]) < cap, self.users, 0)


@dataclass(eq=False)
class Trace:
    """One simulated run: `public`, a release an epoch; and `hidden`, which only the simulation knows, a tuple an epoch."""

    public: list[Release]
    hidden: list[tuple[int, int, float, int]]

    @cached_property
    def releases(self) -> pd.DataFrame:
        """What everybody sees: a row an epoch."""
        return pd.DataFrame([vars(each) | {"live": each.live} for each in self.public])

    @cached_property
    def secret(self) -> pd.DataFrame:
        """Truthful yes votes of each epoch, and the mean and the largest number of truthful votes that a user has cast."""
        return pd.DataFrame(self.hidden, columns=["epoch", "yes", "mean_votes", "max_votes"])


def simulate(settings: Thresh, stream: BitStream, rng: np.random.Generator) -> Trace:
    """Releases with exactly the law of `thresh_protocol` on bits drawn from `stream`.

    Raises ValueError where the stream has another size than the settings.
    """
    for name in ("n_users", "horizon", "epoch_length"):
        if getattr(stream, name) != getattr(settings, name):
            raise ValueError(f"stream must have {name} = {getattr(settings, name)}, got {getattr(stream, name)}")
    return Simulation(settings, stream, rng).run()


class Simulation:
    """One run; `update` may be told otherwise where others than the voters report."""

    def __init__(self, settings: Thresh, stream: BitStream, rng: np.random.Generator) -> None:
        self.settings, self.stream, self.rng = settings, stream, rng
        self.enlist(stream.sizes)
        self.sure: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        self.laws: dict[tuple[float, float, int], CountLaw] = {}

    def enlist(self, sizes: NDArray[np.int64]) -> None:
        """Let the groups be of `sizes` users who have not voted."""
        before = np.array([-self.settings.epoch_length])  # a mean of -1
        self.groups = [_Group(before, np.array([[size]])) for size in sizes]

    def run(self) -> Trace:
        settings = self.settings
        release = before(settings)
        releases: list[Release] = []
        secret: list[tuple[int, int, float, int]] = []
        self._foresee(0)
        for epoch in range(1, settings.horizon + 1):
            if epoch == 1 and settings.start == "forced":
                yes, wanted = 0, True
                draws: list[Callable[[], _Group]] = [self.everybody(group, epoch) for group in range(len(self.groups))]
            else:
                votes = [self._vote(group, epoch) for group in range(len(self.groups))]
                yes, draws = sum(truthful for truthful, _ in votes), [draw for _, draw in votes]
                randomizer = settings.vote_randomizer
                shown = self.rng.binomial(yes, randomizer.keep)
                shown += self.rng.binomial(settings.n_users - yes, randomizer.flip)
                wanted = bool(shown / settings.n_users > settings.update_cut)
            release = self._release(release, epoch, wanted, draws)
            releases.append(release)
            secret.append((epoch, yes, *self._votes_cast()))
        return Trace(releases, secret)

    def _release(self, last: Release, epoch: int, wanted: bool, draws: list[Callable[[], _Group]]) -> Release:
        if not pays(self.settings, last, wanted):
            return after(self.settings, last, wanted, None)
        estimate = self.update(last, draws)
        self._foresee(epoch)
        return after(self.settings, last, wanted, estimate)

    def update(self, last: Release, draws: list[Callable[[], _Group]]) -> float:
        """The users' counts of this epoch, from now on their references, and their reports."""
        settings, ones = self.settings, 0
        self.groups = [draw() for draw in draws]
        for group in self.groups:
            shares = group.values / settings.epoch_length if last.estimates_left > 0 else np.zeros(len(group.values))
            ones += int(self.rng.binomial(group.users.sum(axis=1), settings.report_one(shares)).sum())
        return settings.estimate(ones)

    def _votes_cast(self) -> tuple[float, int]:
        cast = sum(group.votes_cast for group in self.groups)
        return cast / self.settings.n_users, max(group.users.shape[1] - 1 for group in self.groups)

    def _law(self, group: int, epoch: int) -> CountLaw:
        stream, column = self.stream, epoch - 1
        late = int(stream.late[column])
        key = (float(stream.means[group, column]), float(stream.late_means[group, column]) if late else 0.0, late)
        if key not in self.laws:
            law = CountLaw.binomial(stream.epoch_length - late, key[0])
            self.laws[key] = law + CountLaw.binomial(late, key[1]) if late else law
            if len(self.laws) > 64:  # a drift has a new law in every epoch
                self.laws.pop(next(iter(self.laws)))
        return self.laws[key]

    def _foresee(self, epoch: int) -> None:
        """For all later epochs the probabilities that one user surely votes no, surely votes yes, group by group."""
        settings, stream = self.settings, self.stream
        later = np.arange(epoch + 1, settings.horizon + 1)
        cuts = np.array([settings.cut(int(each)) for each in later], dtype=float)
        self.first, self.sure = epoch + 1, []
        for group, state in enumerate(self.groups):
            low, high = float(state.values.min()), float(state.values.max())
            law = settings.epoch_length, stream.means[group, epoch:]
            at_most, at_least = partial(count_law.at_most, *law), partial(count_law.at_least, *law)
            # beyond the range in which all vote no, and short of the ranges in which all vote yes
            some_yes = at_most(high - cuts) + at_least(low + cuts)
            up, down = at_least(high + cuts), at_most(low - cuts)
            some_no = np.where(up > down, at_most(high + cuts - 1), at_least(low - cuts + 1))
            late = stream.late[epoch:] > 0
            self.sure.append((np.where(late, np.inf, some_yes), np.where(late, np.inf, some_no)))  # late: cell by cell

    def _vote(self, group: int, epoch: int) -> tuple[int, Callable[[], _Group]]:
        """The truthful yes votes of a group, and how to draw its state if an update follows."""
        state, ahead = self.groups[group], epoch - self.first
        some_yes, some_no = self.sure[group][0][ahead], self.sure[group][1][ahead]
        if state.size * min(some_yes, some_no) <= _FEW:
            return self._vote_as_one(group, epoch, all_yes=some_no < some_yes, outside=min(some_yes, some_no))
        return self._vote_cell_by_cell(group, epoch)

    def everybody(self, group: int, epoch: int) -> Callable[[], _Group]:
        """The counts of users who have not voted."""
        law, users = self._law(group, epoch), self.groups[group].users.sum(axis=0)
        return lambda: _Group.make(law.values, law.draw(users, np.ones(len(law.mass), dtype=bool), self.rng))

    def _vote_as_one(self, group: int, epoch: int, all_yes: bool, outside: float) -> tuple[int, Callable[[], _Group]]:
        """Each user's count is in the range where all vote alike, except with probability `outside`."""
        settings, state = self.settings, self.groups[group]
        few = int(self.rng.binomial(state.size, min(1.0, outside)))
        cut = settings.cut(epoch)
        rows, columns, counts = self._outsiders(group, epoch, all_yes, few)
        votes = (np.abs(counts - state.values[rows]) >= cut) & (columns < settings.vote_cap)
        crowd = state.by_votes - np.bincount(columns, minlength=len(state.by_votes))
        crowd_may = np.arange(len(crowd)) < settings.vote_cap

        def draw() -> _Group:
            law = self._law(group, epoch)
            allowed = self._common_range(state, law, cut, all_yes)
            users = np.zeros((len(law.mass), len(crowd) + 1), dtype=np.int64)
            drawn = law.draw(crowd, allowed, self.rng)
            shift = np.where(crowd_may, int(all_yes), 0)
            for column in range(len(crowd)):
                users[:, column + shift[column]] += drawn[:, column]
            np.add.at(users, (counts - law.low, columns + votes), 1)
            return _Group.make(law.values, users)

        if not all_yes and not votes.any():
            return 0, draw
        voted = state.may_vote(settings.vote_cap) if all_yes else np.zeros_like(state.users)
        may = columns < settings.vote_cap
        np.add.at(voted, (rows[may], columns[may]), votes[may] - int(all_yes))
        self.groups[group] = state.advanced(voted)
        return int(voted.sum()), draw

    def _common_range(self, state: _Group, law: CountLaw, cut: int, all_yes: bool) -> NDArray[np.bool_]:
        """The counts for which every user of `state` votes alike: no, or yes on the likelier side."""
        low, high, values = state.values.min(), state.values.max(), law.values
        up, down = values >= high + cut, values <= low - cut
        if all_yes:
            return np.asarray(up if law.mass[up].sum() > law.mass[down].sum() else down)
        return np.asarray((values > high - cut) & (values < low + cut))

    def _outsiders(
        self, group: int, epoch: int, all_yes: bool, few: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """`few` different users, uniform: rows and columns of their cells, and their counts, outside the common range."""
        state = self.groups[group]
        if not few:
            nobody = np.zeros(0, dtype=np.int64)
            return nobody, nobody, nobody
        chosen: set[int] = set()
        while len(chosen) < few:
            chosen.add(int(self.rng.integers(state.size)))
        cells = np.searchsorted(np.cumsum(state.users.ravel()), np.array(sorted(chosen)), side="right")
        law = self._law(group, epoch)
        mass = np.where(self._common_range(state, law, self.settings.cut(epoch), all_yes), 0.0, law.mass)
        counts = self.rng.choice(law.values, size=few, p=mass / mass.sum())
        rows, columns = np.divmod(cells, state.users.shape[1])
        return rows, columns, counts

    def _vote_cell_by_cell(self, group: int, epoch: int) -> tuple[int, Callable[[], _Group]]:
        """Every cell votes by its own probability."""
        settings, state, law = self.settings, self.groups[group], self._law(group, epoch)
        cut = settings.cut(epoch)
        below = np.concatenate([[0.0], np.cumsum(law.mass)])  # P(K < low + i)
        above = np.concatenate([np.cumsum(law.mass[::-1])[::-1], [0.0]])  # P(K >= low + i)
        last = len(law.mass)
        low = np.clip(state.values - cut + 1 - law.low, 0, last)  # yes: the first `low` values ...
        high = np.clip(state.values + cut - law.low, 0, last)  # ... and those from `high` on
        may = state.may_vote(settings.vote_cap)
        voted = self.rng.binomial(may, np.clip(above[high] + below[low], 0, 1)[:, None])

        def draw() -> _Group:
            columns = state.users.shape[1]
            users = np.zeros((last, columns + 1), dtype=np.int64)
            for column in range(columns):
                yes, no = voted[:, column], may[:, column] - voted[:, column]
                users[:, column + 1] += self._draw_rows(law, below, yes, low, high, outside=True)
                users[:, column] += self._draw_rows(law, below, no, low, high, outside=False)
            users[:, :columns] += law.draw(state.by_votes - may.sum(axis=0), np.ones(last, dtype=bool), self.rng)
            return _Group.make(law.values, users)

        self.groups[group] = state.advanced(voted)
        return int(voted.sum()), draw

    def _draw_rows(
        self,
        law: CountLaw,
        below: NDArray[np.float64],
        users: NDArray[np.int64],
        low: NDArray[np.int64],
        high: NDArray[np.int64],
        outside: bool,
    ) -> NDArray[np.int64]:
        """The counts, in all, of users[i] users with counts outside (inside) of values low[i] to high[i] - 1, (values,)."""
        result, place = np.zeros(len(law.mass), dtype=np.int64), np.arange(len(law.mass))
        rows = np.flatnonzero(users)
        if users.sum() > _USER_BY_USER:
            for row in rows:
                inside = (place >= low[row]) & (place < high[row])
                result += law.draw(users[row : row + 1], ~inside if outside else inside, self.rng)[:, 0]
            return result
        who = np.repeat(rows, users[rows])
        first, beyond = below[low[who]], below[high[who]]
        mass = below[-1] - (beyond - first) if outside else beyond - first
        at = self.rng.random(len(who)) * mass
        at = np.where(at < first, at, at - first + beyond) if outside else at + first
        value = np.clip(np.searchsorted(below, at, side="right") - 1, 0, len(law.mass) - 1)
        np.add.at(result, value, 1)
        return result
