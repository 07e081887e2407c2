"""The mean of all samples so far, for any users: one stream of running sums, whose elements are batches of samples.

**Computes** at every step an estimate of the mean of all samples so far.  The samples of `batch` consecutive steps, whoever
sends them, are one element of a stream of prefix sums.  Samples that are not in the sum, as they were dropped or their batch
is not full, count as the middle of the range.

**Guarantee.** User-level epsilon-DP for the whole sequence; with `delta` (epsilon, delta)-DP, Gaussian noise.  Neighbours
differ in the values of all samples of one user; who arrives when is the same in both, and public (E-CM-4).  Arrivals decide
what is dropped, and how many samples are in a release; values decide nothing.

- delta = 0: a user's m samples move the batches by m in l1, however many share one, and so all sums over blocks by m times
  their height: Laplace noise of scale samples_per_user * l1 / epsilon.
- delta > 0: a user with m_t samples in batch t moves C x by sum of v_t C_t, |v_t| <= m_t, C_t the t-th column.  C is >= 0
  entry by entry, so <C_s, C_t> >= 0, and |sum v_t C_t|^2 = sum of v_s v_t <C_s, C_t> is at most the same with m_t: changes
  of one sign are the worst.  That norm depends on the user's own arrivals alone; a sample that would bring it above `reach`
  is dropped.  So C x moves by `reach` in l2, and noise of deviation reach / mu makes the whole sequence mu-Gaussian-DP, also
  if values are chosen by earlier releases (Denisov et al. 2022).  Columns end at the last row, as C does.

**Error.** The noise's standard deviation is exact.  With U of t samples in the sum the mean is off by at most half the range
times (t - U) / t, which some users attain; had the others the mean of these U, it could be twice as much.

**State** is secret and belongs to the settings that started it, others refuse it; one that is copied and goes on twice
repeats its noise: go on with one copy.  A step that raises leaves it as it was.

**Source.** `batch` 1 and `branching` 2: Algorithm 2 of George et al. (2022).  To stop who would move the output too far is
individual accounting, with Gaussian noise that of Koskela, Tobaben and Honkela (2023).  The rest is ours; filters as in
`prefix_sums`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.continual_mean.binary_mechanism import best_tree, finite_scale
from evolvingdp.continual_mean.prefix_sums import Ahead, Buffered, PrefixSums, Tree
from evolvingdp.continual_mean.settings import Arranged, Array, Integers, Release, Releases, Settings, arrange, lasting
from evolvingdp.core import accounting, checks
from evolvingdp.core.noise import DiscreteLaplace, Gaussian, Laplace, Tape

_SLACK = 1 + 1e-9  # of squared norms: more than they are rounded by


@dataclass(repr=False, slots=True)
class State:
    """Secret.  `step` changes it in place and returns it."""

    settings: UserMean
    advance: Ahead  # noise of the next prefix
    counts: list[int]  # samples kept of each user
    norms: Norms | None
    step: int = 0
    kept: int = 0
    used: int = 0  # in the estimate
    total: int = 0
    elements: int = 0
    variances: list[float] = field(default_factory=list)  # of the prefix sums to come, the next one last
    mean: float = 0.0  # of these, noisy, from the middle of the range
    error: float = 0.0  # variance of the noise in their sum


@checks.plain
@dataclass(frozen=True)
class UserMean(Settings):
    """Every sample weighs the same, and nothing is projected.  `choosing.recommended` chooses batch, cap or reach, and
    decay."""

    batch: int = 1  # steps whose samples are one element
    branching: int = 0  # of a plain tree; 0: the best tree for its capacity
    decay: float = 1.0  # of the filter; with delta
    reach: float | None = None  # norm of what a user's samples move, at most; default: that of samples_per_user at worst
    dimensions: int = 1  # coordinates that share (epsilon, delta)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer_at_least(1, batch=self.batch, dimensions=self.dimensions)
        checks.integer_at_least(0, branching=self.branching)
        checks.plain_integers(self, "batch", "branching", "dimensions")
        checks.number(decay=self.decay)
        if not self.delta and (self.decay != 1 or self.reach is not None or self.dimensions != 1):
            raise ValueError("decay, reach and dimensions must go with delta > 0: a tree has none, and a cap in its place")
        if self.delta and self.branching:
            raise ValueError(f"branching must be 0 with delta > 0: filters are better than trees, got {self.branching}")
        if self.reach is not None:
            checks.positive(reach=self.reach)
        _ = self.noise

    @cached_property
    def sums(self) -> PrefixSums:
        """Of the batches."""
        capacity = max(1, self.max_steps // self.batch)
        if self.delta:
            return Buffered(capacity, self.decay)
        return Tree(capacity, self.branching) if self.branching else best_tree(capacity)

    @property
    def budget(self) -> float:
        """Epsilon, or with delta the mu of one coordinate: squares of mu add up."""
        return accounting.gaussian_mu(self.epsilon, self.delta) / math.sqrt(self.dimensions) if self.delta else self.epsilon

    @cached_property
    def norm(self) -> float:
        """`reach`, or what it is by default: no sample within `samples_per_user` is dropped for it."""
        return self.reach or math.sqrt(_SLACK) * self.sums.l2(self.samples_per_user, self.batch)

    @cached_property
    def noise(self) -> Laplace | DiscreteLaplace | Gaussian:
        """Of a draw, in grid steps."""
        if self.delta:
            return Gaussian(finite_scale(self.resolution * self.norm * math.sqrt(_SLACK), self.budget))
        scale = finite_scale(float(self.resolution * self.samples_per_user) * self.sums.l1, self.budget)
        return self.laplace(scale, self.sums.capacity)

    @cached_property
    def products(self) -> Array:
        """(capacity + 1, buffers): what <C_s, C_t> is made of, for a sample in batch t: sum over i of p_i^(t - s)
        products[t, i]."""
        weights, poles, *_ = self.sums.sums  # type: ignore[attr-defined]
        both = np.log(np.multiply.outer(poles, poles))
        rows = np.maximum(self.sums.capacity - np.arange(self.sums.capacity + 1) + 1, 0)[:, None]
        found = np.zeros((len(rows), len(weights)))
        for weight, log in zip(weights.tolist(), both, strict=True):
            found += weight * np.expm1(rows * log) / np.expm1(log)
        found[0] = 0.0
        return np.asarray(found * weights)

    def keeps(self, arranged: Arranged) -> NDArray[np.bool_]:
        """(T,) bool: which samples of a stream are not dropped; public."""
        kept = arranged.kept(self)
        if self.reach is None:
            return kept
        user, step, _ = arranged.by_user
        mine = kept[step - 1]
        user, step = user[mine], step[mine]
        starts, held = groups(self, user, step)
        allowed, _ = allowed_of(self, user[starts], (step[starts] - 1) // self.batch + 1, held, self.norm)
        over = np.arange(len(user)) - np.repeat(starts, held) >= np.repeat(allowed, held)
        if self.excess == "error" and over.any():
            raise ValueError(
                f"users must not reach further than {self.norm:.6g}, user {user[over][0]} does at position "
                f'{step[over][0] - 1}; excess="drop" leaves such samples out'
            )
        kept[step[over] - 1] = False
        return kept

    def release(self, users: ArrayLike, samples: ArrayLike, rng: np.random.Generator) -> Releases:
        """All releases for the stream `users` (T,) in [0, n_users) and `samples` (T,) in [low, high]."""
        return self.release_of(arrange(self, users, samples), rng)

    def release_of(self, arranged: Arranged, rng: np.random.Generator) -> Releases:
        """All releases for a stream that is arranged."""
        elements, used, kept = self.elements(arranged)
        count, unit, n_steps = len(elements), self.unit, arranged.n_steps
        noisy = np.cumsum(elements) + self.sums.all(count, Tape(self.noise, rng))
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(used > 0, self.low + unit * (noisy / used), self.first_estimate)
        if self.clip:
            np.clip(means, self.low, self.high, out=means)
        index = lasting(np.arange(1, count + 1) * self.batch, n_steps)
        error = np.append(0.0, self.sums.variances(count) * self.noise.variance * unit**2 * (used > 0))[index]
        samples, steps, scale = np.append(0, used)[index], np.arange(1, n_steps + 1), self.high - self.low
        out = steps - samples
        return Releases(
            self.first_estimate + samples / steps * np.append(0.0, means - self.first_estimate)[index],
            np.sqrt(error + 0.25 * scale**2 * out) / steps,
            0.5 * scale * out / steps,
            samples,
            n_steps - kept,
        )

    def elements(self, arranged: Arranged) -> tuple[Integers, Integers, int]:
        """Sums of the full batches, secret; how many samples are in these so far, and are kept of all, public."""
        kept = self.keeps(arranged)
        full = min(arranged.n_steps // self.batch, self.sums.capacity)
        shape, end = (full, self.batch), full * self.batch
        values = np.where(kept[:end], arranged.values[:end], 0).reshape(shape).sum(axis=1)
        return values, np.cumsum(kept[:end].reshape(shape).sum(axis=1)), int(kept.sum())

    def start(self, rng: np.random.Generator) -> State:
        """No sample yet; secret."""
        norms = None if self.reach is None else Norms(self)
        advance = self.sums.online(Tape(self.noise, rng))
        return State(self, advance, [0] * self.n_users, norms)

    def step(self, state: State, user: int, sample: float) -> tuple[State, Release]:
        """User `user` in [0, n_users) contributes `sample`; Release is the estimate after it."""
        if type(state) is not State or state.settings is not self:
            checks.state(state, State, self)
            state.settings = self  # equal, as after pickling: the next step sees that at once
        value = self.valid(user, sample)
        reason = self._refused(state, user)
        if reason and self.excess == "error":
            raise ValueError(f'{reason}; excess="drop" leaves such samples out')
        state.step += 1
        if not reason:
            state.counts[user] += 1
            state.kept += 1
            state.total += value
            if state.norms:
                state.norms.add(user)
        if state.step % self.batch == 0 and state.elements < self.sums.capacity:
            self._close(state)
        scale, step, used = self.high - self.low, state.step, state.used
        out = step - used
        estimate, error = self.first_estimate + used / step * state.mean, math.sqrt(state.error + 0.25 * scale**2 * out)
        told = (estimate, error / step, 0.5 * scale * out / step, used, step - state.kept)
        return state, tuple.__new__(Release, told)  # half the time of its constructor

    def _refused(self, state: State, user: int) -> str:
        """Why a sample is beyond a cap; nothing where it is not."""
        if state.step >= self.max_steps:
            return f"horizon is {self.max_steps}: there is no room for another sample"
        if user >= self.n_users:
            return f"user must be below n_users = {self.n_users}, got {user!r}"
        if state.counts[user] >= self.samples_per_user:
            return f"user {user} has contributed samples_per_user = {self.samples_per_user} samples already"
        if state.norms and state.norms.after(user, state.step // self.batch + 1) > self.norm**2 * _SLACK:
            return f"user {user} reaches as far as reach = {self.norm:.6g} allows already"
        return ""

    def _close(self, state: State) -> None:
        """The end of a batch."""
        noise = state.advance()
        state.elements += 1
        if not state.variances:
            ahead = np.arange(state.elements, min(state.elements + min(state.elements + 16, 1024), self.sums.capacity + 1))
            state.variances = (self.sums.relative_variance(ahead) * self.noise.variance)[::-1].tolist()
        variance = state.variances.pop()
        state.used = state.kept
        if state.used:
            mean = self.low + self.unit * ((state.total + noise) / state.used)
            mean = min(max(mean, self.low), self.high) if self.clip else mean
            state.mean, state.error = mean - self.first_estimate, variance * self.unit**2


class Norms:
    """Public: of each user the squared norm of what its samples move, and a decaying sum a buffer of its samples."""

    def __init__(self, settings: UserMean) -> None:
        _, poles, *_ = settings.sums.sums  # type: ignore[attr-defined]
        self._products, self._logs = settings.products, np.log(poles)
        self._held = np.zeros((settings.n_users, len(poles)))
        self._squares, self._last = [0.0] * settings.n_users, [0] * settings.n_users
        self._next: tuple[Any, float, int] = (None, 0.0, 0)

    def after(self, user: int, batch: int) -> float:
        """The squared norm if the user's next sample were kept, in this batch."""
        self._next = None, 0.0, 0
        if batch >= len(self._products):
            return 0.0  # never released
        held = self._held[user] * np.exp(self._logs * (batch - self._last[user]))
        row = self._products[batch]
        square = self._squares[user] + float(row @ (2 * held + 1))
        self._next = held + 1, square, batch
        return square

    def add(self, user: int) -> None:
        """The sample that `after` has been asked about."""
        held, square, batch = self._next
        if held is not None:
            self._held[user], self._squares[user], self._last[user] = held, square, batch
        self._next = (None, 0.0, 0)


def allowed_of(settings: UserMean, user: Integers, batch: Integers, held: Integers, reach: float) -> tuple[Integers, Array]:
    """Of groups of a user's samples in a batch, sorted by user: how many are kept, and the user's squared norm with these.

    The r first of a group that adds 2 r a + r^2 g to the square are kept as long as that stays within reach^2.
    """
    _, poles, *_ = settings.sums.sums  # type: ignore[attr-defined]
    first = np.flatnonzero(np.diff(user, prepend=user[:1] - 1))
    counts = np.diff(first, append=len(user))
    order = np.argsort(-counts, kind="stable")  # users with many groups first: the others end earlier
    first, counts = first[order], counts[order]
    decayed, squares, last = np.zeros((len(first), len(poles))), np.zeros(len(first)), np.zeros(len(first), dtype=np.int64)
    allowed, after, most, logs = np.zeros(len(user), dtype=np.int64), np.zeros(len(user)), reach**2 * _SLACK, np.log(poles)
    for rank in range(int(counts.max(initial=0))):
        going = int(np.searchsorted(-counts, -rank, side="left"))
        here = first[:going] + rank
        row = settings.products[np.minimum(batch[here], settings.sums.capacity + 1) % (settings.sums.capacity + 1)]
        mine = decayed[:going]
        mine *= np.exp(logs * (batch[here] - last[:going])[:, None])
        cross, own, room = (row * mine).sum(axis=1), row.sum(axis=1), most - squares[:going]
        with np.errstate(divide="ignore", invalid="ignore"):
            fitting = np.floor((np.sqrt(cross**2 + own * room) - cross) / own)
        kept = np.where(own > 0, np.clip(np.nan_to_num(fitting, posinf=2.0**62), 0, held[here]), held[here])
        mine += kept[:, None]
        squares[:going] += kept * (2 * cross + kept * own)
        last[:going] = batch[here]
        allowed[here], after[here] = kept, squares[:going]
    return allowed, after


def groups(settings: UserMean, user: Integers, step: Integers) -> tuple[Integers, Integers]:
    """Of samples sorted by user, then step: where each user's samples in a batch begin, and how many they are."""
    starts = np.flatnonzero(np.diff(user, prepend=-1) | np.diff((step - 1) // settings.batch, prepend=-1))
    return starts, np.diff(starts, append=len(user))
