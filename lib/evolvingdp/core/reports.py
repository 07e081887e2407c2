"""One report of one of `n_values` values: what a user sends, what the server adds up, and with what error it is read.

**Computes** estimates of how often each value of a list is held, from one report of each user. A report supports values:
the user's own with probability `own`, each other with probability `other`. That is all that an error depends on, so that all
kinds of reports are chosen between by two numbers:

- `Subset`: a set of `size` values that holds the own value with probability e^epsilon size / (e^epsilon size + k - size),
  and is uniform besides; with size 1, one value, it is generalized randomized response. The server adds up sets.
- `Hashed`: a public random function of each user, and its value of the own value by randomized response (`core.olh`).
- `Projective`: one of the points of a finite geometry that support the own value, or, with probability `lie`, any point
  (`core.geometry`). It has the law of a set among as many values as points, and takes no more bits than a point.
- `Sign`: a public random row of the Hadamard matrix, and its sign of the own value by randomized response: one bit.

**Guarantee.** Pure epsilon-local differential privacy per report, exact; neighbouring inputs are any two values of one user.
What decides is a random double, whose probability is rounded towards privacy (`core.randomizers`).

**Error.** Unbiased. A report adds r (1 - r) / (own - other)^2 to an estimate's variance, r = other + f (own - other), where
a random user holds the value with probability f (`variance`); given how many users hold it, f (1 - f) less, which is V0 + f
V1 with, for subsets of w of k values and e = e^epsilon,

    V0 = (e (w - 1) + k - w) (w e + k - 1 - w) / (w (k - w) (e - 1)^2)
    V1 = ((k - w) (k - 1) - w (e (w - 1) + k - w)) / (w (k - w) (e - 1))

**The best of all** symmetric reports whose probabilities have one of two values, of ratio e^epsilon, is a subset: given its
public randomness such a report is the set of values that it supports, whose size does not depend on the data, so that it is
a mixture of subsets of several sizes, and the best of these sizes has no larger variance (Cauchy and Schwarz). Points and
hashes cost fewer bits: of more than 128 values the best of these and of sets up to 8 has at most 2.4 % more error than the
best set has (measured up to 10^5 values and epsilon 10).

**Source.** Subsets: Ye and Barg (2018); Wang et al. (2016). Hashing, and the rule k < 3 e^epsilon + 2 for one value against
it: Wang et al. (2017). Points: Feldman et al. (2022). The sum over sets of all users is drawn exactly, value by value:
`Subset.draw_sums`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks, hadamard
from evolvingdp.core.geometry import Geometry, spaces
from evolvingdp.core.olh import OLH, LocalHashes
from evolvingdp.core.randomizers import SignFlip, Support, rounded_up
from evolvingdp.core.sampling import blocks, pieces

BITS = 256  # of a report, at most, unless another is chosen
_AT_ONCE = 1 << 20  # entries of users times values
_VALUES, _LARGEST = 128, 8  # up to so many, all sets are looked at; of more, sets up to this size
_SEED = 64  # bits of a hash function
_LEAST, _FLAT = 1e-16, 1e-3  # a probability, and how far D moves with a share
_HASHED = 1.04  # times its variance, 2 % of the error: by so much a hash, about which a server asks for each value, must win
_CHUNK = 1 << 15  # users at a time
_HELD = 1 << 22  # or whose values are written down at a time
_ONE_BY_ONE, _A_POINT = 500, 16  # users whose points cost as much as a multinomial, and as many more for each of its points


@checks.draws
@dataclass(frozen=True)
class Report(Support):
    """What all kinds share. A message is an integer below `messages`, and its bytes are as many as that needs."""

    n_values: int
    epsilon: float  # of one report
    signed: ClassVar[bool] = False  # whether it moves a sum by 1 or -1, and not by 1 only

    def __post_init__(self) -> None:
        checks.integer_at_least(2, n_values=self.n_values)
        checks.positive(epsilon=self.epsilon)
        object.__setattr__(self, "epsilon", float(self.epsilon))

    @property
    @abstractmethod
    def messages(self) -> int:
        """How many a user can send, with what is public of them."""

    @property
    def moved(self) -> tuple[int, int]:
        """How many of the server's sums a report moves, at least and at most."""
        return 1, 1

    @property
    def bits(self) -> int:
        """Of a message."""
        return max(1, (self.messages - 1).bit_length())

    @property
    @abstractmethod
    def name(self) -> str:
        """What a message is."""

    @property
    def message_in_words(self) -> str:
        """The same, and how long it is."""
        return f"{self.name}, {self.bits} bit{'s' * (self.bits > 1)}"

    @property
    def width(self) -> int:
        """How many sums the server keeps."""
        return self.n_values

    def curve(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convex in frequencies, with the second derivative 1 / `variance`: twice what it is above a tangent, times the
        reports, is their deviance from where that touches, -2 ln of a likelihood ratio of binomial supports."""
        supported = np.clip(self.other + shares * self.gain, _LEAST, 1 - _LEAST)
        return np.asarray(supported * np.log(supported) + (1 - supported) * np.log(1 - supported))

    def curve_together(self, shares: NDArray[np.float64], reports: ArrayLike = np.inf) -> NDArray[np.float64]:
        """The same where deviances of many values are added up: of a diagonal D that their covariance does not exceed, so
        that squares over D add up to no more than as many independent ones.

        A report supports two values u and v with probability a + b (f_u + f_v) (`pairs`). With r, other and gain as above
        supports have the covariance D + (a - other^2) 11' + (b - other gain) (f1' + 1f') - gain^2 ff', D = r - a - 2 b f,
        and what is added to D is negative semidefinite: its matrix of two rows is, of sets with the determinant
        (w - 1)(k - w - 1)(k own - w)^2 / ((k - 2)^2 (k - 1)^3), of supports that are independent given the own value with
        -gain^2 as its one entry. For sets of one value D = r: Pearson's, and deviances are those of counts. On average that
        of a count of about 1 is larger than 1, which adds up over values: where so many `reports` come at a time, each count
        is taken for a quarter more.
        """
        slope = self.gain - 2 * (self.pairs[1] - self.pairs[0])
        slope = slope if abs(slope) > _FLAT else _FLAT
        rare = self.other - self.pairs[0] + (slope / self.gain) ** 2 / 4 / np.maximum(reports, 1)
        ratio = np.maximum(shares * slope / rare, _LEAST - 1)
        return np.asarray(rare * (self.gain / slope) ** 2 * ((1 + ratio) * np.log1p(ratio) - ratio))

    def crowded(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """What D is multiplied by, at most, where these frequencies (..., n_values) are held."""
        return np.ones(1)

    @property
    def pairs(self) -> tuple[float, float]:
        """The probability that a report supports both of two values, where its user holds neither, or one of them."""
        return self.other**2, self.own * self.other

    def estimates(self, sums: NDArray[np.integer], n_reports: ArrayLike) -> NDArray[np.float64]:
        """Frequencies (..., n_values) from sums (..., width) of n_reports (...); unbiased, not clipped, nan without
        reports."""
        reports, nothing = np.asarray(n_reports)[..., None], np.full(np.shape(sums), np.nan)
        return self._decoded(np.divide(sums, reports, out=nothing, where=reports > 0))

    def _decoded(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        return (means - self.other) / self.gain

    def collect(
        self, values: NDArray[np.integer], public: np.random.Generator, private: np.random.Generator
    ) -> NDArray[np.int64]:
        """Each of these users, with values (n,) below n_values, reports: the sums, (width,)."""
        held = checks.integer_array("values", values, below=self.n_values)
        sums, step = np.zeros(self.width, dtype=np.int64), max(1, _AT_ONCE // self.n_values)
        for first in range(0, len(held), step):
            sums += self.add_up(self.sent(held[first : first + step], public, private))
        return sums

    @abstractmethod
    def sent(self, values: NDArray[np.int64], public: Any, private: Any) -> NDArray[Any]:
        """The reports of users with these values, a row each, (n, fields)."""

    @abstractmethod
    def add_up(self, sent: NDArray[Any]) -> NDArray[np.int64]:
        """Their sums, (width,)."""

    def message(self, row: NDArray[Any]) -> int:
        """A row of `sent`, below `messages`."""
        return int(row[0])

    def rows(self, messages: list[int]) -> NDArray[Any]:
        """The rows whose messages these are, each below `messages`, (n, fields)."""
        return np.array(messages, dtype=np.int64).reshape(-1, 1)

    @abstractmethod
    def draw_sums(
        self, sizes: NDArray[np.integer], laws: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """The law of `collect` for sizes (..., groups) users whose values have laws (..., groups, n_values): (...,
        width)."""


@checks.draws
class Counted(Report):
    """A report that is a set of values: the server keeps how many support each, which depends on how many hold it."""

    def draw_sums(
        self, sizes: NDArray[np.integer], laws: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        return self._supports(rng.multinomial(sizes, laws).sum(axis=-2), rng)

    @abstractmethod
    def _supports(self, held: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """The sums (..., width) of users of whom held (..., n_values) hold each value."""


@checks.plain
@dataclass(frozen=True)
class Subset(Counted):
    """A set of `size` of the values."""

    size: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer_at_least(1, size=self.size)
        if self.size >= self.n_values:
            raise ValueError(f"size must be below n_values, {self.n_values}, got {self.size}")
        if not self.own > self.other:
            raise ValueError(f"epsilon must be larger, as random doubles report every value alike, got {self.epsilon!r}")

    @cached_property
    def lie(self) -> float:
        """The probability of a set without the own value."""
        others = (self.n_values - self.size) / self.size * math.exp(-self.epsilon)
        return rounded_up(others / (1 + others))

    @cached_property
    def own(self) -> float:
        return 1 - self.lie

    @cached_property
    def other(self) -> float:
        return (self.size - self.own) / (self.n_values - 1)

    @property
    def messages(self) -> int:
        return math.comb(self.n_values, self.size)

    @property
    def name(self) -> str:
        return "one value" if self.size == 1 else f"a set of {self.size} values"

    @property
    def moved(self) -> tuple[int, int]:
        return self.size, self.size

    @property
    def pairs(self) -> tuple[float, float]:
        return _pairs(self.n_values, self.size, self.own)

    def probabilities(self, value: int) -> dict[tuple[int, ...], float]:
        """The law of a report, by set."""
        from itertools import combinations

        with_it, without = math.comb(self.n_values - 1, self.size - 1), math.comb(self.n_values - 1, self.size)
        sets = combinations(range(self.n_values), self.size)
        return {one: self.own / with_it if value in one else self.lie / without for one in sets}

    def report(self, values: NDArray[np.integer], private: np.random.Generator) -> NDArray[np.int64]:
        """One set a user, (n, size), in any order, of values (n,)."""
        own, others = checks.integer_array("values", values, below=self.n_values), self.n_values - 1
        lies = np.asarray(private.random(len(own)) < self.lie, dtype=bool)
        drawn = np.empty((len(own), self.size), dtype=np.int64)
        for place in range(self.size):  # Floyd's: what is there already makes place for the last one that could not be
            last = others - self.size + place
            some = private.integers(0, last + 1, size=len(own))
            drawn[:, place] = np.where((drawn[:, :place] == some[:, None]).any(axis=1), last, some)
        drawn += drawn >= own[:, None]
        at = np.arange(len(own)), private.integers(0, self.size, size=len(own))
        drawn[at] = np.where(lies, drawn[at], own)  # the rest of a set without any one of it is a set, all alike
        return drawn

    def sent(self, values: NDArray[np.int64], public: Any, private: Any) -> NDArray[np.int64]:
        return self.report(values, private)

    def add_up(self, sent: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.bincount(sent.ravel(), minlength=self.n_values)

    def message(self, row: NDArray[np.int64]) -> int:
        """The set's number among those of its size (Lehmer's): sum of C(its place-th smallest value, place)."""
        return sum(math.comb(value, place) for place, value in enumerate(sorted(row.tolist()), 1))

    def rows(self, messages: list[int]) -> NDArray[np.int64]:
        found = [self._row(each) for each in messages] if self.size > 1 else messages
        return np.array(found, dtype=np.int64).reshape(-1, self.size)

    def _row(self, message: int) -> list[int]:
        found, value = list[int](), self.n_values
        for place in range(self.size, 0, -1):
            value = bisect_right(range(value), message, key=lambda each: math.comb(each, place)) - 1
            message -= math.comb(value, place)
            found.append(value)
        return found

    def _supports(self, held: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """A report is a uniform set of all values, or, with probability `own` - `lie` w / (k - w), one that holds the
        own."""
        k, w = self.n_values, self.size
        truthful = rng.binomial(held, self.own - self.lie * w / (k - w))
        blind = held.sum(axis=-1) - truthful.sum(axis=-1)
        if w == 1:
            return np.asarray(truthful + rng.multinomial(blind, np.full(k, 1 / k)))
        return truthful + self._filled(truthful, blind, rng)

    def _filled(self, truthful: NDArray[np.int64], blind: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """How often each value is drawn to fill sets up, (..., k): w - 1 places of those that hold their own, w of others.

        Value by value, for all users who have as many places left: at their own value users draw nothing. Until then they
        are alike, so that those whose own it is are a random part of them.
        """
        k, w = self.n_values, self.size
        places, sums = np.arange(w + 1), np.zeros_like(truthful)
        ahead = np.zeros((*blind.shape, w + 1), dtype=np.int64)  # by places left: whose own value is still to come
        rest = np.zeros_like(ahead)
        ahead[..., w - 1], rest[..., w] = truthful.sum(axis=-1), blind
        for value in range(k):
            now = _part(ahead, truthful[..., value], rng)
            ahead -= now
            left = k - value  # values to choose from, without the own one of those for whom it is ahead
            taken = (
                rng.binomial(ahead, np.minimum(places / max(left - 1, 1), 1)),
                rng.binomial(rest, np.minimum(places / left, 1)),
            )
            for pool, drawn in zip((ahead, rest), taken, strict=True):
                sums[..., value] += drawn.sum(axis=-1)
                pool -= drawn
                pool[..., :-1] += drawn[..., 1:]
            rest += now
        return sums


def _pairs(n_values: int, size: int, own: float) -> tuple[float, float]:
    """Of sets: `Report.pairs`."""
    supporting = own * (size - 1) * (size - 2) + (1 - own) * size * (size - 1)
    return supporting / (n_values - 1) / max(n_values - 2, 1), own * (size - 1) / (n_values - 1)


def _part(pools: NDArray[np.int64], size: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """`size` (...) of the members of pools (..., parts), without putting back: how many of each part."""
    drawn, among, left = np.zeros_like(pools), pools.sum(axis=-1), size.copy()
    for part in np.flatnonzero(pools.any(axis=tuple(range(pools.ndim - 1)))):
        held = pools[..., part]
        drawn[..., part] = taken = rng.hypergeometric(held, among - held, left)
        among, left = among - held, left - taken
    return drawn


@checks.plain
@dataclass(frozen=True)
class Projective(Counted):
    """A point of `space`, whose first points stand for the values; the server counts how often each was sent."""

    name: ClassVar[str] = "a point of a finite geometry"
    space: Geometry

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.space.points < self.n_values:
            raise ValueError(f"space must have n_values = {self.n_values} points or more, got {self.space.points}")
        if not self.lie < 1:
            raise ValueError(f"epsilon must be larger, as random doubles report every value alike, got {self.epsilon!r}")

    @cached_property
    def lie(self) -> float:
        """The probability that a report is a uniform one, whatever the value; else it is uniform of those that support
        it."""
        uniform = math.exp(-self.epsilon)
        return rounded_up(uniform / (uniform - math.expm1(-self.epsilon) * self.space.share))

    @cached_property
    def own(self) -> float:
        return self.space.share + (1 - self.lie) * (1 - self.space.share)

    @cached_property
    def other(self) -> float:
        return (self.space.size - self.own) / (self.space.points - 1)

    @property
    def messages(self) -> int:
        return self.space.points

    width = messages

    @property
    def pairs(self) -> tuple[float, float]:
        return _pairs(self.space.points, self.space.size, self.own)  # on average over places of the user's value

    def crowded(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """More: others on a line through a user's value are supported together, which matters where many hold a few values,
        of which as many as the space has dimensions, less one, may add up. For values that are not placed with the
        geometry in mind the covariance was at most 1.25 times it in all that was enumerated. Values held that fill one
        line, and little else, break it, by up to 11 times: whoever orders the list can place them so."""
        space, heaviest = self.space, np.sort(np.clip(shares, 0, 1), axis=-1)[..., 1 - self.space.dimension :]
        held = (1 - self.lie) * np.minimum(heaviest.sum(axis=-1, keepdims=True), 1)
        apart = (space.common - max(space.common - 1, 0) // space.order) / space.size * (space.order - 1)
        return 1 + np.asarray(held * apart) / (self.other - self.pairs[0])

    def probabilities(self, value: int) -> dict[int, float]:
        """The law of a report, by point."""
        law = np.full(self.space.points, self.lie / self.space.points)
        law[(self.space.block + value) % self.space.points] += (1 - self.lie) / self.space.size
        return dict(enumerate(law.tolist()))

    def estimates(self, sums: NDArray[np.integer], n_reports: ArrayLike) -> NDArray[np.float64]:
        return super().estimates(self.space.supporting(sums)[..., : self.n_values], n_reports)

    def report(self, values: NDArray[np.integer], private: np.random.Generator) -> NDArray[np.int64]:
        """One point a user, (n,), of values (n,): who lies is more than by the formula, where doubles round."""
        values = checks.integer_array("values", values, below=self.n_values)
        lies, any_report = private.random(len(values)) < self.lie, private.integers(0, self.space.points, len(values))
        return np.where(lies, any_report, self._supporting(values, private))

    def _supporting(self, values: NDArray[np.integer], private: np.random.Generator) -> NDArray[np.int64]:
        """A uniform one of the points that support each of `values`."""
        some = self.space.block.take(private.integers(0, self.space.size, len(values)))
        some += values
        return np.asarray(np.where(some >= self.space.points, some - self.space.points, some))

    def sent(self, values: NDArray[np.int64], public: Any, private: Any) -> NDArray[np.int64]:
        return self.report(values, private)[:, None]

    def add_up(self, sent: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.bincount(sent[:, 0], minlength=self.width)

    def _supports(self, held: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        sums = np.empty((*held.shape[:-1], self.width), dtype=np.int64)
        for place in np.ndindex(held.shape[:-1]):
            sums[place] = self.draw_reports(held[place], rng)
        return sums

    def draw_reports(self, held: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.int64]:
        """How often each point is sent, (points,), where held[v] users hold value v.

        Those who lie are one multinomial; of the others, a value with many more users than points that support it is a
        multinomial, the others' points are drawn.
        """
        space, honest = self.space, rng.binomial(held, 1 - self.lie)
        sums = rng.multinomial(held.sum() - honest.sum(), np.full(space.points, 1 / space.points))
        many = honest >= _ONE_BY_ONE + _A_POINT * space.size
        for value in np.flatnonzero(many):
            supporting = (space.block + value) % space.points
            sums[supporting] += rng.multinomial(honest[value], np.full(space.size, 1 / space.size))
        values, around = np.flatnonzero(~many), np.zeros(2 * space.points, dtype=np.int64)  # of points not yet taken modulo
        for part in pieces(honest[values], _HELD):
            few = np.repeat(values[part], honest[values[part]])
            for some in blocks(len(few), _CHUNK):
                drawn = space.block.take(rng.integers(0, space.size, len(some)))
                around += np.bincount(drawn + few[some], minlength=len(around))
        return np.asarray(sums + around[: space.points] + around[space.points :])


@checks.plain
@dataclass(frozen=True)
class Hashed(OLH, Counted):
    """Local hashing of a list, by the law of `core.olh`, which can be asked about any key."""

    name: ClassVar[str] = "a hash function and a hash"

    def __post_init__(self) -> None:
        Counted.__post_init__(self)
        OLH.__post_init__(self)

    @property
    def messages(self) -> int:
        return self.hash_values << _SEED

    @property
    def moved(self) -> tuple[int, int]:
        return 0, self.n_values

    def sent(self, values: NDArray[np.int64], public: Any, private: Any) -> NDArray[np.uint64]:
        reports = self.report(values.astype(np.uint64), public, private)
        return np.column_stack([reports.seeds, reports.values.astype(np.uint64)])

    def add_up(self, sent: NDArray[np.uint64]) -> NDArray[np.int64]:
        reports = LocalHashes(sent[:, 0], sent[:, 1].astype(np.uint16))
        return self.support(reports, np.arange(self.n_values, dtype=np.uint64))

    def message(self, row: NDArray[np.uint64]) -> int:
        return int(row[1]) << _SEED | int(row[0])

    def rows(self, messages: list[int]) -> NDArray[np.uint64]:
        pairs = [(each & (1 << _SEED) - 1, each >> _SEED) for each in messages]
        return np.array(pairs, dtype=np.uint64).reshape(-1, 2)

    def _supports(self, held: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        return self.draw_one(held, held.sum(axis=-1, keepdims=True), rng)  # supports of other values are independent


@checks.plain
@dataclass(frozen=True)
class Sign(Report):
    """One sign of a random row: the sums are those of signs by row."""

    signed: ClassVar[bool] = True
    name: ClassVar[str] = "a row and its sign"
    other: ClassVar[float] = 0.5

    @cached_property
    def randomizer(self) -> SignFlip:
        return SignFlip(self.epsilon)

    @cached_property
    def own(self) -> float:
        return self.randomizer.keep

    @property
    def messages(self) -> int:
        return 2 * self.width

    @property
    def width(self) -> int:
        return 1 << (self.n_values - 1).bit_length()

    def _decoded(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(hadamard.transform(means)[..., : self.n_values] * self.randomizer.debias)

    def sent(self, values: NDArray[np.int64], public: Any, private: Any) -> NDArray[np.int64]:
        rows = public.integers(0, self.width, size=len(values))
        return np.column_stack([rows, self.randomizer.randomize(hadamard.signs(rows, values), private)])

    def add_up(self, sent: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.bincount(sent[:, 0], weights=sent[:, 1], minlength=self.width).astype(np.int64)

    def message(self, row: NDArray[np.int64]) -> int:
        return 2 * int(row[0]) + (int(row[1]) > 0)

    def rows(self, messages: list[int]) -> NDArray[np.int64]:
        return np.array([(each >> 1, 1 if each & 1 else -1) for each in messages], dtype=np.int64).reshape(-1, 2)

    def draw_sums(
        self, sizes: NDArray[np.integer], laws: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        users = rng.multinomial(sizes, np.full(self.width, 1 / self.width))
        padded = np.pad(laws, [(0, 0)] * (np.ndim(laws) - 1) + [(0, self.width - self.n_values)])
        plus = self.randomizer.report_one((1 + np.clip(hadamard.transform(padded), -1, 1)) / 2)
        return np.asarray((2 * rng.binomial(users, plus) - users).sum(axis=-2))


def set_sizes(n_values: int) -> range:
    """The sizes of sets that are worth their draws: all up to a half, or, of more than 128 values, up to 8."""
    return range(1, (n_values // 2 if n_values <= _VALUES else _LARGEST) + 1)


@checks.plain
@lru_cache(maxsize=1024, typed=True)
def best_report(n_values: int, epsilon: float, bits: int | None = None, frequency: float | None = None) -> Report:
    """The report of at most `bits` with the least variance for a value of this `frequency`, 1 / n_values unless given; but a
    hash only where its error is 2 % less than that of all others.

    Tried are `set_sizes`, and points up to `geometry.MOST_POINTS`. Raises ValueError that names the least number of bits.
    """
    checks.integer_at_least(2, n_values=n_values)
    checks.positive(epsilon=epsilon)
    if bits is not None:
        checks.integer_at_least(1, bits=bits)
    share = 1 / n_values if frequency is None else frequency
    checks.finite(frequency=share)
    checks.shares(frequency=share)
    kinds: list[Any] = [lambda size=size: Subset(n_values, epsilon, size) for size in set_sizes(n_values)]
    kinds += [lambda: Hashed(n_values, epsilon), lambda: Sign(n_values, epsilon)]
    kinds += [lambda at=space: Projective(n_values, epsilon, at) for space in spaces() if space.points >= n_values]
    found, refused = list[Report](), ValueError()
    for make in kinds:
        try:
            found.append(make())
        except ValueError as error:  # no difference, or no infinity, that random doubles can tell
            refused = error
    if not found:
        raise refused
    short = [one for one in found if bits is None or one.bits <= bits]
    if not short:
        raise ValueError(f"bits must be at least {min(one.bits for one in found)} for {n_values} values, got {bits}")
    return min(short, key=lambda one: float(one.variance(share)) * (_HASHED if isinstance(one, Hashed) else 1))
