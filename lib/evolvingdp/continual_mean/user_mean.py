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
times (t - U) / t, which some users attain.  `alike`: the mean of these U, which can be off by twice as much; but where
samples are independent with one mean and variances of at most range^2 / 4, whoever sends them and whenever, that of all t
is off from it by range sqrt(1 / U - 1 / t) / 2 on average, and from the law's mean by range / 2 sqrt(U).

**State** is secret and belongs to the settings that started it, others refuse it.  A step changes nothing that it was given;
a state that goes on twice repeats its noise: go on once.

**Source.** With `batch` 1 and `branching` 2 Algorithm 2 of George et al. (2022).  To stop who would move the output too
far is individual accounting, with Gaussian noise that of Koskela, Tobaben and Honkela (2023).  The rest is ours; filters as
in `prefix_sums`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.continual_mean.binary_mechanism import best_tree, noise_for
from evolvingdp.continual_mean.prefix_sums import Buffered, Noises, Tree
from evolvingdp.continual_mean.settings import Array, Integers, Release, Releases, Settings, by_user
from evolvingdp.core import accounting, checks
from evolvingdp.core.noise import DiscreteLaplace, Gaussian, Laplace, Tape

_SLACK = 1 + 1e-9  # of squared norms: more than they are rounded by


class State(NamedTuple):
    """Secret."""

    settings: UserMean
    noises: Noises
    users: list[list[list[Any]]]  # of each, samples sent, with a reach `Moved`; in parts of parts, which states share
    step: int = 0
    kept: int = 0
    used: int = 0  # in the estimate
    total: int = 0
    sum: float = 0.0  # of these, noisy, from the middle of the range
    error: float = 0.0  # variance of the noise in it

    def __repr__(self) -> str:
        return "State"


class Moved(NamedTuple):
    """Public: samples sent by a user within the cap; the squared norm of what those kept move, and a decaying sum of these a
    buffer."""

    sent: int
    square: float
    batch: int  # of the last one
    held: list[float]


@checks.plain
@dataclass(frozen=True)
class UserMean(Settings):
    """Every sample weighs the same, and nothing is projected.  `choosing.recommended` chooses batch, cap or reach, and
    decay.  `resolution`: grid steps from low to high; 1 takes these two values alone, others round any between them.  A
    state may be pickled, and goes on once, with equal settings."""

    batch: int = 1  # steps whose samples are one element
    branching: int = 0  # of a plain tree; 0: the best tree for its capacity
    decay: float = 1.0  # of the filter; with delta
    reach: float | None = None  # norm of what a user's samples move, at most; default: that of samples_per_user at worst
    dimensions: int = 1  # coordinates that share (epsilon, delta)
    alike: bool = False  # samples that are not in the sum count as the mean of those that are

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer_at_least(1, batch=self.batch, dimensions=self.dimensions)
        checks.integer_at_least(0, branching=self.branching)
        checks.plain_integers(self, "batch", "branching", "dimensions")
        checks.finite(decay=self.decay)
        if not self.delta and (self.decay != 1 or self.reach is not None):
            raise ValueError("decay and reach must go with delta > 0: a tree has none, and a cap in its place")
        if self.delta and self.branching:
            raise ValueError(f"branching must be 0 with delta > 0: filters are better than trees, got {self.branching}")
        if self.reach is not None:
            checks.positive(reach=self.reach)
        _ = self.noise, self.sums

    @cached_property
    def capacity(self) -> int:
        """Batches that are released."""
        return max(1, self.max_steps // self.batch)

    @cached_property
    def sums(self) -> Tree | Buffered:
        """Of the batches."""
        return self.filter if self.delta else self._tree

    @cached_property
    def filter(self) -> Buffered:
        """With delta."""
        return Buffered(self.capacity, self.decay)

    @cached_property
    def _tree(self) -> Tree:
        return Tree(self.capacity, self.branching) if self.branching else best_tree(self.capacity)

    @property
    def budget(self) -> float:
        """Of one coordinate: epsilon, or with delta mu, whose squares add up (E-CM-16)."""
        if self.delta:
            return accounting.gaussian_mu(self.epsilon, self.delta) / math.sqrt(self.dimensions)
        return self.epsilon / self.dimensions

    @cached_property
    def norm(self) -> float:
        """`reach`, or what it is by default: no sample within `samples_per_user` is dropped for it."""
        at_once = min(self.batch, self.samples_per_user)  # of a user, in one batch
        return self.reach or math.sqrt(_SLACK) * at_once * self.filter.l2(-(-self.samples_per_user // at_once))

    @cached_property
    def noise(self) -> Laplace | DiscreteLaplace | Gaussian:
        """Of a draw, in grid steps."""
        moved = self.norm * math.sqrt(_SLACK) if self.delta else self.samples_per_user * self._tree.l1
        change = self.resolution * moved
        return noise_for(change, self.budget, delta=self.delta, integer=self.integer, elements=self.capacity)

    def keeps(self, users: Integers) -> NDArray[np.bool_]:
        """(T,) bool: which samples of these users, (T,), are not dropped; public."""
        kept = self.kept(users)
        if self.reach is None:
            return kept
        mine = np.flatnonzero(kept)
        user, step = by_user(users[mine], mine + 1)
        starts, batch, held = groups(self, user, step)
        allowed, _ = allowed_of(self, user[starts], batch, held, self.norm)
        short = np.flatnonzero(allowed < held)
        over = [np.arange(starts[each] + allowed[each], starts[each] + held[each]) for each in short.tolist()]
        dropped = step[np.concatenate([np.zeros(0, dtype=np.int64), *over])] - 1
        if self.excess == "error" and len(dropped):
            raise ValueError(
                f"users must not reach further than {self.norm:.6g}, user {users[dropped[0]]} does at position "
                f'{dropped[0]}; excess="drop" leaves such samples out'
            )
        kept[dropped] = False
        return kept

    def release(self, users: ArrayLike, samples: ArrayLike, rng: np.random.Generator) -> Releases:
        """All releases for the stream `users` (T,) in [0, n_users) and `samples` (T,) in [low, high]."""
        who, values = self.arrange(users, samples)
        kept, n_steps, count = self.keeps(who), len(who), min(len(who) // self.batch, self.capacity)
        shape, end, unit, scale = (count, self.batch), count * self.batch, self.unit, self.high - self.low
        elements = np.einsum("ij,ij->i", values[:end].reshape(shape), kept[:end].reshape(shape), dtype=np.int64)
        used = np.cumsum(np.count_nonzero(kept[:end].reshape(shape), axis=1))
        noisy = np.cumsum(elements) + self.sums.all(count, Tape(self.noise, rng))
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(used > 0, self.low + unit * (noisy / used), self.first_estimate)
        if self.clip:
            np.clip(means, self.low, self.high, out=means)
        lasting = np.diff(np.arange(1, count + 1) * self.batch, prepend=1, append=n_steps + 1)  # steps that each stands for
        steps, samples = np.arange(1.0, n_steps + 1), np.repeat(np.append(0, used), lasting)
        estimate = np.repeat(np.append(0.0, used * (means - self.first_estimate)), lasting)
        error = np.repeat(np.append(0.0, self.sums.variances(count) * self.noise.variance * unit**2 * (used > 0)), lasting)
        out, over = steps - samples, np.maximum(samples, 1) if self.alike else steps
        out /= steps  # in place, as streams are long
        error /= over
        error += 0.25 * scale**2 * out
        error /= over
        np.sqrt(error, out=error)
        error[samples == 0] = math.inf
        estimate /= over
        estimate += self.first_estimate
        out *= scale if self.alike else 0.5 * scale
        return Releases(estimate, error, out, samples, n_steps - int(np.count_nonzero(kept)))

    def release_all(self, users: ArrayLike, samples: ArrayLike, rng: np.random.Generator) -> list[Releases]:
        """Those of each of the coordinates `samples` (T, dimensions), each in [low, high]."""
        values = np.asarray(samples)
        if values.ndim != 2 or values.shape[1] != self.dimensions:
            raise TypeError(f"samples must have shape (steps, {self.dimensions}), got {values.shape}")
        for column in values.T:
            self.keeps(self.arrange(users, column)[0])  # all is checked before the first draw
        return [self.release(users, *each) for each in zip(values.T, rng.spawn(self.dimensions), strict=True)]

    def start(self, rng: np.random.Generator) -> State:
        """No sample yet; secret."""
        none = 0 if self.reach is None else Moved(0, 0.0, 0, [0.0] * len(self.filter.logs))
        size = math.ceil(self.n_users ** (1 / 3)) + 1
        return State(self, self.sums.online(Tape(self.noise, rng)), [[[none] * size] * size] * size)

    def step(self, state: State, user: int, sample: float) -> tuple[State, Release]:
        """The next state, and the `Release` after user `user` in [0, n_users) has sent `sample`."""
        if type(state) is not State or state.settings is not self:
            checks.state(state, State, self)
        value = self.valid(user, sample)
        _, noises, users, step, kept, used, total, moved, error = state
        size, step, refused = len(users), step + 1, ""
        outer, inner = divmod(user, size)
        outer, middle = divmod(outer, size)
        mine = users[outer][middle][inner]
        if step > self.max_steps:
            refused = f"horizon is {self.max_steps}: there is no room for another sample"
        elif (mine if self.reach is None else mine.sent) >= self.samples_per_user:
            refused = f"user {user} has contributed samples_per_user = {self.samples_per_user} samples already"
        else:
            mine, fits = (mine + 1, True) if self.reach is None else self._reached(mine, (step - 1) // self.batch + 1)
            if fits:
                kept += 1
                total += value
            else:
                refused = f"user {user} reaches as far as reach = {self.norm:.6g} allows already"
            users = users.copy()
            part = users[outer] = users[outer].copy()
            part[middle] = part[middle].copy()
            part[middle][inner] = mine
        if refused and self.excess == "error":
            raise ValueError(f'{refused}; excess="drop" leaves such samples out')
        if step % self.batch == 0 and step <= self.capacity * self.batch:
            noise, variance, noises = noises.of(step // self.batch)
            used = kept
            if used:
                mean = self.low + self.unit * ((total + noise) / used)
                moved = used * ((min(max(mean, self.low), self.high) if self.clip else mean) - self.first_estimate)
                error = variance * self.noise.variance * self.unit**2
        scale, out = self.high - self.low, (step - used) / step
        over, bias = (used or 1, scale * out) if self.alike else (step, 0.5 * scale * out)
        deviation = math.sqrt((error / over + 0.25 * scale**2 * out) / over) if used else math.inf
        after = (self, noises, users, step, kept, used, total, moved, error)
        told = (self.first_estimate + moved / over, deviation, bias, used, step - kept)
        return tuple.__new__(State, after), tuple.__new__(Release, told)  # half the time of their constructors

    def _reached(self, mine: Moved, batch: int) -> tuple[Moved, bool]:
        """What is known of a user after another sample in this batch, and whether it is kept: it must not reach too far."""
        sent, square, last, held = mine
        if batch > last:
            held = list(map(mul, held, np.exp((batch - last) * self.filter.logs).tolist()))
        own = _part(self.filter, batch >> 10)[batch & 1023].tolist()
        square += 2 * sum(map(mul, held, own)) + sum(own)
        if square > self.norm**2 * _SLACK:
            return tuple.__new__(Moved, (sent + 1, mine.square, last, mine.held)), False
        return tuple.__new__(Moved, (sent + 1, square, batch, [each + 1.0 for each in held])), True


def products(sums: Buffered, batches: Integers) -> Array:
    """(batches, buffers): what <C_s, C_t> is made of, for a sample in batch t: sum over i of p_i^(t - s) products[t, i];
    zeros for the batch that is never released."""
    weights, found = sums.terms[0], np.empty((len(batches), len(sums.logs)))
    mixed = weights / np.expm1(np.add.outer(sums.logs, sums.logs))
    for first in range(0, len(batches), 1 << 14):  # few at once, as streams are long
        part = slice(first, first + (1 << 14))
        rows = np.clip(sums.capacity + 1 - batches[part], 0, sums.capacity)
        powers = np.expm1(np.multiply.outer(rows, sums.logs))  # (p_i p_j)^rows - 1 is the sum of two and their product
        found[part] = weights * (powers * mixed.sum(axis=1) + (1 + powers) * (powers @ mixed.T))
    return found


@lru_cache(64)
def _part(sums: Buffered, part: int) -> Array:
    """`products` of 1024 batches that follow each other."""
    return products(sums, np.arange(part << 10, (part + 1) << 10))


def allowed_of(settings: UserMean, user: Integers, batch: Integers, held: Integers, reach: float) -> tuple[Integers, Array]:
    """Of groups of a user's samples in a batch, sorted by user: how many are kept, and the user's squared norm with these.

    The r first of a group that adds 2 r a + r^2 g to the square are kept as long as that stays within reach^2.
    """
    sums, most_batches = settings.filter, int(batch.max(initial=0)) + 1
    seldom = len(batch) < most_batches
    table = products(sums, batch if seldom else np.arange(most_batches))
    times = np.arange(256), np.arange((most_batches >> 8) + 1) * 256  # how buffers fade: of two factors, as exp takes longer
    near, far = (np.exp(np.multiply.outer(each, sums.logs)) for each in times)
    own_of = table.sum(axis=1)
    first = np.append(np.zeros(min(len(user), 1), dtype=np.int64), np.flatnonzero(user[1:] != user[:-1]) + 1)
    counts = np.diff(first, append=len(user))
    order = np.argsort(-counts, kind="stable")  # users with many groups first: the others end earlier
    first, counts = first[order], counts[order]
    decayed, squares, last = np.zeros((len(first), near.shape[1])), np.zeros(len(first)), np.zeros_like(first)
    allowed, after, most = np.zeros(len(user), dtype=np.int64), np.zeros(len(user)), reach**2 * _SLACK
    for rank in range(int(counts.max(initial=0))):
        going = int(np.searchsorted(-counts, -rank, side="left"))
        here = first[:going] + rank
        now, kept, mine = batch[here], held[here], decayed[:going]
        gap, which = now - last[:going], here if seldom else now
        mine *= near.take(gap & 255, axis=0)  # several times as fast as brackets
        mine *= far.take(gap >> 8, axis=0)
        cross, own = np.einsum("ij,ij->i", table.take(which, axis=0), mine), own_of[which]
        over = (squares[:going] + (2 * cross + kept * own) * kept > most) & (own > 0)
        if over.any():
            by, size, room = cross[over], own[over], np.maximum(most - squares[:going][over], 0)
            kept[over] = np.clip((np.sqrt(by**2 + size * room) - by) / size, 0, kept[over])  # whole, rounded down
        mine += kept[:, None]
        squares[:going] += kept * (2 * cross + kept * own)
        last[:going] = now
        allowed[here], after[here] = kept, squares[:going]
    return allowed, after


def groups(settings: UserMean, user: Integers, step: Integers) -> tuple[Integers, Integers, Integers]:
    """Of samples sorted by user, then step: where each user's samples in a batch begin, which it is, how many they are."""
    place = (step - 1) // settings.batch + 1
    starts = np.flatnonzero((user[1:] != user[:-1]) | (place[1:] != place[:-1])) + 1
    starts = np.append(np.zeros(min(len(user), 1), dtype=np.int64), starts)
    return starts, place[starts], np.diff(starts, append=len(user))
