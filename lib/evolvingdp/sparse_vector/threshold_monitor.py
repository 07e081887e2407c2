"""ThresholdMonitor: which queries exceed a threshold, paying per user and not per report.

**Computes** yes or no for each of any number of adaptively chosen counting queries: whether the noisy sum of the query over
the users exceeds `threshold`. A yes counts for the users who contributed to it; whoever has counted `reports` is deleted.

**Guarantee.** That of the noise's price: (epsilon, delta)-differential privacy of **all answers together**, for one user in
all steps, however many there are, whatever the adversary chooses and however the other users' data evolve (Definition 4.3).

| noise | its price, for which unit | counted for a user |
|---|---|---|
| `Laplace`, `MonitorNoise` | `calibration.calibrate`, which states the unit | yeses |
| `DiscreteLaplace`, at a whole threshold | the same, at the scale of `Laplace` | yeses |
| `Gaussian` | `moved_queries.smallest_moved_scale`, replacement | yeses and queries |
| `IntegerNoise`, `GaussianNoise` | `stable.stable_monitor`, replacement | yeses and queries |

Where queries are counted (`moved`), a user is deleted at the one of that number in which its value is not 0, too, whatever
the answers were. `step_held` asks about the elements that somebody holds, of no list; it needs the noise of the last line.

Drawn in floating point, real-valued noise ends: from 2^53 delta queries on (9e9 at 1e-6) take noise of integers. The state
is **secret**, the release is public. A query's value for a user must depend on that user's data alone: that is the caller's
promise, no check can see it. Errors name users and values; they are for the curator, not for the analyst.

**Error.** A query at `threshold` + z or more of users not yet deleted is missed with probability `noise.cdf(-z)`; one that
nobody meets is reported with `noise.sf(threshold)`.

**Source.** Algorithm 5 (`step` is line 3), and Algorithm 3 where the data stay. Deleted is who has c >= k (E-SV-7).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.core.noise import DiscreteLaplace, Gaussian, Laplace
from evolvingdp.core.sampling import others, rare_count
from evolvingdp.sparse_vector.calibration import QUERIES, Calibration
from evolvingdp.sparse_vector.noise import GaussianNoise, IntegerNoise, MonitorNoise

Noise = Laplace | DiscreteLaplace | MonitorNoise | Gaussian | IntegerNoise
Query = Callable[[Any], ArrayLike]  # (n_users,) inputs -> (n_users,) values, each from the input of its user alone


@dataclass(frozen=True)
class Release:
    """What everybody sees of a query."""

    above: bool


ABOVE, BELOW = Release(True), Release(False)


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """Secret, of these `settings`. `counted` (n_users,): what each user has contributed to yes answers; `moves` (n_users,):
    in how many queries it was, where these are counted; `active`: not deleted."""

    settings: ThresholdMonitorEvolving
    counted: NDArray[np.float64]
    moves: NDArray[np.int64] | None
    active: NDArray[np.bool_]


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
        if self.queries != "binary" and not isinstance(self.noise, Laplace | MonitorNoise):
            raise ValueError(f"queries must be binary for {self.noise!r}, got {self.queries!r}")
        if isinstance(self.noise, Gaussian | IntegerNoise):
            if self.moved is None:
                raise ValueError(f"moved must be given for {self.noise!r}, which pays for each query that a user is in")
            checks.integer_at_least(1, moved=self.moved)
        elif self.moved is not None:
            raise ValueError(f"moved must be left out for noise that pays for any number of queries, got {self.moved!r}")
        elif isinstance(self.noise, DiscreteLaplace) and self.threshold != int(self.threshold):
            raise ValueError(f"threshold must be a whole number for noise of integers, got {self.threshold!r}")

    @classmethod
    def calibrated(cls, calibration: Calibration, threshold: float) -> ThresholdMonitorEvolving:
        """With the noise and the reports of `calibration`."""
        return cls(calibration.noise, threshold, calibration.reports, calibration.queries)

    @property
    def unlisted(self) -> bool:
        """Whether it is for `step_held`: what nobody holds is never reported."""
        return isinstance(self.noise, IntegerNoise | GaussianNoise) and self.threshold >= self.noise.limit

    def start(self, n_users: int) -> State:
        """The state before the first query: all counters 0; secret."""
        checks.integer_at_least(1, n_users=n_users)
        moves = None if self.moved is None else np.zeros(n_users, dtype=np.int64)
        return State(self, np.zeros(n_users), moves, np.ones(n_users, dtype=bool))

    def step(
        self, state: State, data: Any, query: Query, rng: np.random.Generator, *, past: float = 0.0
    ) -> tuple[State, Release]:
        """Answer `query`, which maps this step's `data` to a value for each user, from that user's data alone.

        With a count that is public for `past`, a yes says that the sum is by `threshold` above its own past.
        """
        checks.state(state, State, self)
        checks.finite(past=past)
        values = self._checked(state, query(data))
        total = np.count_nonzero(values & state.active) if values.dtype == bool else np.sum(values * state.active)
        above = bool(total + self.noise.draw(1, rng)[0] >= self.threshold + past)
        return self._asked(state, values, values if above else None), ABOVE if above else BELOW

    def step_elements(
        self, state: State, inputs: ArrayLike, n_elements: int, rng: np.random.Generator
    ) -> tuple[State, NDArray[np.bool_]]:
        """A time step of Theorem 4.7: all queries "holds x", x < `n_elements`, of users who hold `inputs` (n_users,).

        The law of a `step` for each element in order: the queries of a step concern different users.
        """
        checks.state(state, State, self)
        held = checked_inputs(inputs, len(state.active), n_elements)
        weights = np.bincount(held[state.active], minlength=n_elements)
        above: NDArray[np.bool_] = weights + self.noise.draw(n_elements, rng) >= self.threshold
        return self._asked(state, 1, above[held] if above.any() else None), above

    def step_held(self, state: State, inputs: ArrayLike, rng: np.random.Generator) -> tuple[State, NDArray[np.int64]]:
        """A time step of elements that are in no list: those reported, increasing, of users who hold `inputs` (n_users,), -1
        for who holds none.

        The law of a query for each element that an active user holds; of those that one user holds the number of reports is
        drawn.  Raises ValueError for noise without a limit up to the threshold.
        """
        checks.state(state, State, self)
        if not self.unlisted:
            raise ValueError(f"noise must have a limit up to the threshold for elements in no list, got {self!r}")
        array = np.asarray(inputs)
        holds = array != -1
        held = checked_inputs(np.where(holds, array, 0), len(state.active), 2**62)
        ordered = np.sort(held[state.active & holds])
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))  # where an element's run begins
        weights = np.diff(starts, append=len(ordered))
        several = np.flatnonzero(weights > 1)
        loud = weights[several] + self.noise.draw(len(several), rng) >= self.threshold
        count = rare_count(len(starts) - len(several), float(self.noise.sf(self.threshold - 1)), rng)
        found = np.sort(ordered[starts[np.concatenate([several[loud], others(several, len(starts), count, rng)])]])
        return self._asked(state, holds, np.isin(held, found) & holds if len(found) else None), found

    def _asked(self, state: State, values: Any, reported: Any) -> State:
        """The state after queries of these `values` (n_users,), of which those `reported` (n_users,) were a yes; secret."""
        counted, moves = state.counted, state.moves
        if moves is not None:
            reported = None if reported is None else reported & state.active
            moves = moves + values
        elif reported is None:
            return state
        return self._after(counted if reported is None else counted + reported, moves)

    def _after(self, counted: NDArray[np.float64], moves: NDArray[np.int64] | None) -> State:
        active = counted < self.reports
        return State(self, counted, moves, active if moves is None else active & (moves < (self.moved or 0)))

    def _checked(self, state: State, values: ArrayLike) -> NDArray[Any]:
        """The values of a query (n_users,): bool for queries in {0, 1}, else float.

        A user's value repeated in another dimension would be summed again, against noise that pays for one.
        """
        array, users = np.asarray(values), len(state.active)
        if array.shape != (users,):
            raise ValueError(f"data must hold {users} users in every step, as at the start, got shape {array.shape}")
        if self.queries == "binary":
            made = array if array.dtype == bool else array == 1
            good, range_ = made | (array == 0), "{0, 1}"
        else:
            made = np.asarray(array, dtype=float)
            good, range_ = (made >= 0) & (made <= 1), "[0, 1]"
        if not good.all():
            place = int(np.argmin(good))
            raise ValueError(f"query must have values in {range_}, got {array[place].item()!r} for user {place}")
        return made


def checked_inputs(inputs: ArrayLike, n_users: int, n_elements: int) -> NDArray[np.int64]:
    """`inputs` (n_users,) of elements below `n_elements`; raises ValueError where the number of users has changed."""
    checks.integer_at_least(1, n_elements=n_elements)
    if np.shape(inputs) != (n_users,):
        raise ValueError(f"inputs must hold {n_users} users in every step, as at the start, got shape {np.shape(inputs)}")
    return checks.integer_array("inputs", inputs, below=n_elements)
