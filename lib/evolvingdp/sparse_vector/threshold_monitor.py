"""ThresholdMonitor: which queries exceed a threshold, paying per user and not per report.

**Computes** yes or no for each of any number of adaptively chosen counting queries: whether the noisy sum of the query over
the users exceeds `threshold`. A yes counts for the users who contributed to it; whoever has counted `reports` is deleted.

**Guarantee.** That of the noise's price: (epsilon, delta)-differential privacy of **all answers together**, for one user in
all steps, however many there are, whatever the adversary chooses and however the other users' data evolve.
`ThresholdMonitorEvolving` takes new data in every step (Definition 4.3), `ThresholdMonitor` has fixed data.

| noise | made by | what is counted for a user |
|---|---|---|
| `MonitorNoise` | `Calibration`, which states its unit | yeses |
| `IntegerNoise` | `calibrated`; `unlisted`, for replacement | yeses; unlisted also queries |
| `GaussianNoise` | `calibrated`, for replacement | yeses, and queries |

Where queries are counted (`moved`), a user is deleted at the one of that number in which its value is not 0, too, whatever
the answers were. `step_held` asks about the elements that somebody holds, of no list; it needs noise with a limit.

That is for real-valued noise: `rng.laplace` is never more than 52 ln 2 = 36.04 scales from 0, so that each query whose yes
needs more may add 2^-53 to delta. Only below 2^53 delta such queries (9e9 at 1e-6) is that less than delta itself; with
`IntegerNoise` it holds for any number of queries on its grid.
The state is **secret**, the release is public; where queries are not counted, a no leaves the state as it is.
A query's value for a user must depend on that user's data alone, as the paper's f: X -> [0, 1] does: that is the caller's
promise, no check can see it. Errors name users and values; they are for the curator, not for the analyst.

**Error.** A query at `threshold` + z or more of users not yet deleted is missed with probability `noise.cdf(-z)`; one that
nobody meets is reported with `noise.sf(threshold)`.

**Source.** Algorithms 3 and 5: `step` is line 3. Users are deleted at c >= k, and all go on counting (E-SV-7).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.sparse_vector.calibration import QUERIES, Calibration
from evolvingdp.sparse_vector.integer_noise import IntegerNoise
from evolvingdp.sparse_vector.noise import GaussianNoise, MonitorNoise, rare_count

Noise = MonitorNoise | IntegerNoise | GaussianNoise
Query = Callable[[Any], ArrayLike]  # (n_users,) inputs -> (n_users,) values, each from the input of its user alone


@dataclass(frozen=True)
class Release:
    """What everybody sees of a query."""

    above: bool


ABOVE, BELOW = Release(True), Release(False)
_ONE = np.asarray(1.0).view(np.uint64)  # read as integers, 0 to 1 are the smallest floats; nan and signs come after
_FEWEST, _CELLS = 16, 1 << 17  # queries of a block of `run`, and their values


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """Secret, of these `settings`. `counted` (n_users,): what each user has contributed to yes answers; `moves` (n_users,):
    in how many queries it was, where these are counted; `active`: not deleted."""

    settings: ThresholdMonitorEvolving
    counted: NDArray[np.float64]
    moves: NDArray[np.int64] | None
    active: NDArray[np.bool_]

    @property
    def n_users(self) -> int:
        return len(self.active)

    @cached_property
    def live(self) -> NDArray[np.float64]:
        """`active` as numbers, made once for all queries up to the next deletion."""
        return self.active.astype(float)


@checks.plain
@dataclass(frozen=True)
class ThresholdMonitorEvolving:
    """Algorithm 5; `queries`: "binary" takes values in {0, 1}, "interval" in [0, 1]."""

    noise: Noise
    threshold: float
    reports: int  # k
    queries: str = "binary"
    moved: int | None = None  # m, of queries in which a user's value is not 0; None where the noise does not pay for them

    def __post_init__(self) -> None:
        checks.finite(threshold=self.threshold)
        checks.integer_at_least(1, reports=self.reports)
        checks.one_of(QUERIES, queries=self.queries)
        if not self.noise.per_query:
            if self.moved is not None:
                raise ValueError(f"moved must be left out for noise that pays for any number of queries, got {self.moved!r}")
        elif self.moved is None or self.queries != "binary":
            raise ValueError(
                f"moved must be given, and queries binary, for {self.noise!r}, got {self.moved!r}, {self.queries!r}"
            )
        else:
            checks.integer_at_least(1, moved=self.moved)

    @classmethod
    def calibrated(cls, calibration: Calibration, threshold: float) -> ThresholdMonitorEvolving:
        """With the noise and the reports of `calibration`."""
        return cls(calibration.noise, threshold, calibration.reports, calibration.queries)

    @property
    def unlisted(self) -> bool:
        """Whether it is for `step_held`: what nobody holds is never reported."""
        return self.noise.limit is not None and self.threshold >= self.noise.limit

    def start(self, n_users: int) -> State:
        """The state before the first query: all counters 0; secret."""
        checks.integer_at_least(1, n_users=n_users)
        moves = None if self.moved is None else np.zeros(n_users, dtype=np.int64)
        return State(self, np.zeros(n_users), moves, np.ones(n_users, dtype=bool))

    def step(self, state: State, data: Any, query: Query, rng: np.random.Generator) -> tuple[State, Release]:
        """Answer `query`, which maps this step's `data` to a value for each user, from that user's data alone."""
        checks.state(state, State, self)
        values = self._checked(state, query(data), 1)
        above = not self._weights(state, values) + self.noise.draw(rng) < self.threshold
        return self._asked(state, values, values if above else None), ABOVE if above else BELOW

    def step_elements(
        self, state: State, inputs: ArrayLike, n_elements: int, rng: np.random.Generator
    ) -> tuple[State, NDArray[np.bool_]]:
        """A time step of Theorem 4.7: all queries "holds x", x < `n_elements`, of users who hold `inputs` (n_users,).

        The same, bit for bit, as a `step` for each element in order: the queries of a step concern different users.
        """
        checks.state(state, State, self)
        held = checked_inputs(inputs, state.n_users, n_elements)
        weights = np.bincount(held[state.active], minlength=n_elements)
        above = ~(weights + self.noise.sample(n_elements, rng) < self.threshold)
        return self._asked(state, 1, above[held] if above.any() else None), above

    def step_held(self, state: State, inputs: ArrayLike, rng: np.random.Generator) -> tuple[State, NDArray[np.int64]]:
        """A time step of elements that are in no list: those reported, increasing, of users who hold `inputs` (n_users,).

        The law of a query for each element that an active user holds. Of those that one user holds the number of reports is
        drawn, so that it costs users and reports.  Raises ValueError for noise without a limit up to the threshold.
        """
        checks.state(state, State, self)
        if not self.unlisted:
            raise ValueError(f"noise must have a limit up to the threshold for elements in no list, got {self!r}")
        held = checked_inputs(inputs, state.n_users, 2**62)
        present, weights = np.unique(held[state.active], return_counts=True)
        alone, several = present[weights == 1], weights > 1
        count = rare_count(len(alone), float(self.noise.sf(self.threshold - 1)), rng)
        loud = weights[several] + self.noise.sample(int(np.count_nonzero(several)), rng) >= self.threshold
        chosen = rng.choice(len(alone), size=count, replace=False, shuffle=False)
        found = np.sort(np.concatenate([present[several][loud], alone[chosen]]))
        return self._asked(state, 1, np.isin(held, found) if len(found) else None), found

    def run(self, state: State, values: ArrayLike, rng: np.random.Generator) -> tuple[State, NDArray[np.bool_]]:
        """All queries with `values` (queries, n_users) one after the other: bit for bit what as many `step`s give.

        Linear in queries and deletions: sums are computed for a block of queries, again only after somebody is deleted,
        and the block grows and shrinks with the distance to that.
        """
        checks.state(state, State, self)
        table, moves = self._checked(state, values, 2), state.moves
        if moves is not None:
            asked = moves + np.cumsum(table, axis=0)  # queries beyond the last that is paid for are not met
            table, moves = table & (asked <= (self.moved or 0)), asked[-1] if len(asked) else moves
        noise = self.noise.sample(len(table), rng)
        above, first, rows = np.zeros(len(table), dtype=bool), 0, _FEWEST
        while first < len(table):
            block = table[first : first + rows]
            hits = np.flatnonzero(~(self._weights(state, block) + noise[first : first + rows] < self.threshold))
            counted = np.cumsum(np.concatenate([state.counted[None], block[hits]]), axis=0)  # as `_asked` adds up
            gone = ((counted >= self.reports) & state.active).any(axis=1)
            last = int(gone.argmax()) if gone.any() else len(hits)  # row 0 is before the first yes
            above[first + hits[:last]] = True
            state = self._after(counted[last], state.moves) if last else state
            done = int(hits[last - 1]) + 1 if gone.any() else len(block)
            first += done
            rows = max(_FEWEST, min(2 * done, _CELLS // state.n_users))
        return state if moves is None else self._after(state.counted, moves), above

    def _asked(self, state: State, values: Any, reported: Any) -> State:
        """The state after queries of these `values` (n_users,), of which those `reported` (n_users,) were a yes; secret."""
        counted, moves = state.counted, state.moves
        if moves is not None:
            reported = None if reported is None else reported & (moves < (self.moved or 0))
            moves = moves + values
        elif reported is None:
            return state
        return self._after(counted if reported is None else counted + reported, moves)

    def _after(self, counted: NDArray[np.float64], moves: NDArray[np.int64] | None) -> State:
        active = counted < self.reports
        return State(self, counted, moves, active if moves is None else active & (moves < (self.moved or 0)))

    def _weights(self, state: State, values: NDArray[Any]) -> Any:
        """The sums over active users; exact for {0, 1}, and for [0, 1] in the same order for one query as for many."""
        if values.ndim == 1 and self.queries == "binary":
            return np.count_nonzero(values & state.active)
        return values @ state.live if self.queries == "binary" else np.add.reduce(values * state.live, axis=-1)

    def _checked(self, state: State, values: ArrayLike, dimensions: int) -> NDArray[Any]:
        """The values of one query (n_users,), or of many (queries, n_users): bool for queries in {0, 1}, else float.

        A user's value repeated in another dimension would be summed again, against noise that pays for one.
        """
        array = np.asarray(values)
        if array.ndim != dimensions or array.shape[-1:] != state.active.shape:
            shape = f"({', '.join(['queries'] * (dimensions - 1) + [str(state.n_users)])})"
            raise ValueError(
                f"data must hold {state.n_users} users in every step, as at the start, in shape {shape}, got {array.shape}"
            )
        if self.queries == "binary":
            held = array if array.dtype == bool else array == 1
            if held is not array and np.count_nonzero(held) != np.count_nonzero(array != 0):  # nan is not 0, either
                raise self._misfit(array, held | (array == 0), "{0, 1}")
            return held
        array = np.asarray(array, dtype=float)
        if np.count_nonzero(array.view(np.uint64) > _ONE):
            good = (array >= 0) & (array <= 1)
            if not good.all():  # else it was -0.0
                raise self._misfit(array, good, "[0, 1]")
        if isinstance(self.noise, IntegerNoise):
            steps = array * self.noise.grid
            if (whole := steps == np.rint(steps)).all():
                return array
            raise self._misfit(array, whole, f"[0, 1] that are multiples of 1/{self.noise.grid}, the grid of its noise")
        return array

    @staticmethod
    def _misfit(array: NDArray[Any], good: NDArray[np.bool_], range_: str) -> ValueError:
        place = tuple(np.argwhere(~good)[0].tolist())
        return ValueError(f"query must have values in {range_}, got {array[place].item()!r} for user {place[-1]}")


def checked_inputs(inputs: ArrayLike, n_users: int, n_elements: int) -> NDArray[np.int64]:
    """`inputs` (n_users,) of elements below `n_elements`; raises ValueError where the number of users has changed."""
    checks.integer_at_least(1, n_elements=n_elements)
    if np.shape(inputs) != (n_users,):
        raise ValueError(f"inputs must hold {n_users} users in every step, as at the start, got shape {np.shape(inputs)}")
    return checks.integer_array("inputs", inputs, below=n_elements)


@dataclass(frozen=True, eq=False, repr=False)
class FixedState:
    """Secret, of these `settings`: the counters, and the data, an entry a user."""

    settings: ThresholdMonitor
    counters: State
    data: Any


@dataclass(frozen=True)
class ThresholdMonitor:
    """Algorithm 3: the data are given at the start and stay."""

    evolving: ThresholdMonitorEvolving

    @classmethod
    def calibrated(cls, calibration: Calibration, threshold: float) -> ThresholdMonitor:
        """As `ThresholdMonitorEvolving.calibrated`."""
        return cls(ThresholdMonitorEvolving.calibrated(calibration, threshold))

    def start(self, data: Sequence[Any] | NDArray[Any]) -> FixedState:
        """The state before any query; `data` has an entry a user."""
        return FixedState(self, self.evolving.start(len(data)), data)

    def step(self, state: FixedState, query: Query, rng: np.random.Generator) -> tuple[FixedState, Release]:
        """Answer a query, `query(data)` in {0, 1} for each user."""
        checks.state(state, FixedState, self)
        counters, release = self.evolving.step(state.counters, state.data, query, rng)
        return state if counters is state.counters else FixedState(self, counters, state.data), release
