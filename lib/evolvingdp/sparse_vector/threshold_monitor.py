"""ThresholdMonitor: which queries exceed a threshold, paying per user and not per report.

**Computes** whether the noisy sum of a query over the users reaches `threshold`, for any number of adaptive queries. A yes
counts for the users who contributed to it; whoever has counted `reports` is deleted.

**Guarantee.** (epsilon, `delta(epsilon)`)-differential privacy of **all answers together**, for replacement of one user in
all steps, however many, whatever the adversary chooses and however the other users' data evolve (Definition 4.3). `Laplace`,
`MonitorNoise` and `DiscreteLaplace` are paid for by a user's yeses, and cover another `unit`, too; normal noise by yeses and
queries (`moved`): a user is also deleted at the one of that number in which its value is not 0. `IntegerNoise` and
`GaussianNoise`, by yeses and queries, are for elements in no list (`stable_monitor`).

From 2^53 delta queries on (9e9 at 1e-6) take noise of integers. The state is **secret**, the answers are public. A query's
value for a user must depend on that user's data alone: the caller's promise. Errors are for the curator, not the analyst.

**Source.** Algorithm 5 (`step` is line 3), and Algorithm 3 where the data stay. Deleted is who has c >= k (E-SV-7).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.core.noise import DiscreteLaplace, Gaussian, GaussianNoise, IntegerNoise, Laplace, MonitorNoise
from evolvingdp.core.sampling import others, rare_count
from evolvingdp.sparse_vector.calibration import QUERIES, Calibration, delta_of_noise

Query = Callable[[Any], ArrayLike]  # (n_users,) inputs -> (n_users,) values, each from the input of its user alone


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """Secret, of these `settings`; of each user what it has `counted` in yeses, and its `moves`, the queries it was in."""

    settings: ThresholdMonitorEvolving
    counted: NDArray[np.float64]
    moves: NDArray[np.int64] | None
    active: NDArray[np.bool_]  # not deleted


@checks.plain
@dataclass(frozen=True)
class ThresholdMonitorEvolving:
    """Algorithm 5; `queries`: "binary" takes values in {0, 1}, "interval" in [0, 1]."""

    noise: Laplace | DiscreteLaplace | MonitorNoise | Gaussian | IntegerNoise
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
            checks.integer_at_least(1, moved=self.moved)
        elif self.moved is not None:
            raise ValueError(f"moved must be left out for noise that pays for any number of queries, got {self.moved!r}")
        if isinstance(self.noise, DiscreteLaplace) and self.threshold != int(self.threshold):
            raise ValueError(f"threshold must be a whole number for noise of integers, got {self.threshold!r}")

    @classmethod
    def calibrated(cls, calibration: Calibration, threshold: float) -> ThresholdMonitorEvolving:
        """With the noise of `calibration`, and what it pays for."""
        return cls(calibration.noise, threshold, calibration.reports, calibration.queries, calibration.moved)

    def delta(self, epsilon: float, unit: str = "replacement") -> float:
        """The delta of the guarantee at `epsilon`: an upper bound, computed from the noise and what is counted."""
        return delta_of_noise(self.noise, epsilon, self.reports, self.queries, self.moved, unit)

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
    ) -> tuple[State, bool]:
        """Answer `query`, which maps this step's `data` to a value for each user, from that user's data alone.

        With a count that is public for `past`, a yes says that the sum is by `threshold` above its own past.
        """
        checks.state(state, State, self)
        checks.finite(past=past)
        values = checks.query_values("query", query(data), len(state.active), binary=self.queries == "binary")
        above = bool(np.sum(values * state.active) + self.noise.draw(1, rng)[0] >= self.threshold + past)
        return self._asked(state, values, values if above else None), above

    def step_elements(
        self, state: State, inputs: ArrayLike, n_elements: int, rng: np.random.Generator
    ) -> tuple[State, NDArray[np.bool_]]:
        """A time step of Theorem 4.7: all queries "holds x", x < `n_elements`, of users who hold `inputs` (n_users,).

        Who may hold nothing is asked by `step_held`: an element that stands for nothing is reported, and deletes everybody.
        """
        checks.state(state, State, self)
        checks.integer_at_least(1, n_elements=n_elements)
        held = checks.integer_array("inputs", inputs, below=n_elements, entries=len(state.active))
        weights = np.bincount(held[state.active], minlength=n_elements)
        above: NDArray[np.bool_] = weights + self.noise.draw(n_elements, rng) >= self.threshold
        return self._asked(state, 1, above[held] if above.any() else None), above

    def step_held(self, state: State, inputs: ArrayLike, rng: np.random.Generator) -> tuple[State, NDArray[np.int64]]:
        """A time step of elements in no list: the next state and those reported, increasing, of users who hold `inputs`,
        (n_users,), or -1; the law of a query for each.  Raises ValueError for noise without a limit up to the threshold.
        """
        checks.state(state, State, self)
        if not self.unlisted:
            raise ValueError(f"noise must have a limit up to the threshold for elements in no list, got {self!r}")
        held = checks.integer_array("inputs", inputs, low=-1, below=2**62, entries=len(state.active))
        holds = held >= 0
        ordered = np.sort(held[state.active & holds])
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        weights = np.diff(starts, append=len(ordered))  # of each element's run
        tails = self.noise.sf(self.threshold - np.arange(1, max(2, min(int(self.threshold) // 2, 4096) + 1)))
        light = int(np.searchsorted(tails, 2**20 * tails[0], side="right"))  # up to here reports are rare: drawn by number
        heavy = np.flatnonzero(weights > light)  # for the heaviest of these, and thinned, by what 53 bits still tell
        loud = heavy[weights[heavy] + self.noise.draw(len(heavy), rng) >= self.threshold]
        most = float(tails[light - 1])
        rare = others(heavy, len(starts), rare_count(len(starts) - len(heavy), most, rng), rng)
        rare = rare[rng.random(len(rare)) * most < self.noise.sf(self.threshold - weights[rare])]
        found = np.sort(ordered[starts[np.concatenate([loud, rare])]])
        return self._asked(state, holds, np.isin(held, found) & holds if len(found) else None), found

    def _asked(self, state: State, values: Any, reported: Any) -> State:
        """The state after queries of these `values` (n_users,), of which those `reported` (n_users,) were a yes; secret."""
        if reported is None and state.moves is None:
            return state
        counted = state.counted if reported is None else state.counted + reported
        active, moves = counted < self.reports, None if state.moves is None else state.moves + values
        return State(self, counted, moves, active if moves is None else active & (moves < (self.moved or 0)))
