"""Dyadic trees: each user reports, on one level of a tree over the epochs, by how much its bit moved over each node.

**Computes** an estimate of the mean bit in every epoch, for users whose bit changes at most `changes` times (a first 1 is a
change: bits start from 0). After so many changes a client reports as if its bit stayed. Its lot names a level h; after
each 2^h epochs it reports a sign, of which `signs` decides the law: of +-1 when its bit has changed over these epochs,
a fair coin when it has not. The mean of epoch t is the sum of the nodes that t's binary digits name.

**Guarantee.** Pure epsilon-local differential privacy of **everything that one user ever sends**; neighbouring inputs are
any two sequences of bits of that user, with any number of changes: clients truncate. Levels, and when something is sent, do
not depend on data. The loss is exactly `privacy_loss` with at least as many nodes as changes on a level: epsilon, or what a
published randomizer leaves of it (half for "erlingsson").

**Error.** A node of level h has variance 1 / (n share_h gain_h^2) or less, and t adds up as many nodes as it has ones in
binary: `standard_errors`. With uniform shares about (1 + log2 T) / gain * sqrt(1 / 2n). Users with more changes bias it, by
`ThresholdStream.truncation_bias`; the protocol cannot see this.

`tuned` leaves the guarantee as it is and lowers the error: a level with fewer nodes than changes plans for as many
changes as it has nodes; level h is named in proportion to sqrt(epochs that use it) / gain_h instead of uniformly; and a
node is averaged with the sum of its two halves, by variance (Honaker 2015). Nothing waits for later epochs.

**Source.** Erlingsson, Feldman, Mironov, Raghunathan, Talwar and Thakurta (2019), Section 4; Ohrimenko, Wirth and Wu (2022),
whose randomizer is "future_rand"; "best", the default, has the largest gain of all. "erlingsson" is as published, with
epsilon/2; "erlingsson_exact" has all of epsilon. `simulate` is exact: users with the same bits are counted by how many
of their signs have been flipped so far, fair coins by node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.evolving.rivals import signs
from evolvingdp.evolving.rivals.threshold_stream import ThresholdStream, check_bits, same_sizes, truncate

RANDOMIZERS = ("best", "erlingsson", "erlingsson_exact", "future_rand")


@dataclass(frozen=True, eq=False)
class NodeTally:
    """What the server holds, by level: `users` (levels,), and of each level's nodes the sums of signs. Public; adds up."""

    users: NDArray[np.int64]
    sums: tuple[NDArray[np.int64], ...]

    def __add__(self, other: NodeTally) -> NodeTally:
        return NodeTally(self.users + other.users, tuple(a + b for a, b in zip(self.sums, other.sums, strict=True)))


@checks.plain
@dataclass(frozen=True)
class ChangeTree:
    """`horizon` epochs; `epsilon` of all that a user sends; `changes` of a bit that are followed."""

    n_users: int
    horizon: int
    epsilon: float
    changes: int
    randomizer: str = "best"
    tuned: bool = True

    def __post_init__(self) -> None:
        checks.integer_at_least(1, n_users=self.n_users, horizon=self.horizon, changes=self.changes)
        checks.positive(epsilon=self.epsilon)
        checks.one_of(RANDOMIZERS, randomizer=self.randomizer)
        _ = self.signs

    @property
    def nodes(self) -> NDArray[np.int64]:
        """How many of each level, (levels,), end by the horizon: of 1, 2, 4, ... epochs."""
        return self.horizon >> np.arange(self.horizon.bit_length())

    @cached_property
    def signs(self) -> tuple[signs.Signs, ...]:
        """Each level's randomizer."""
        make = signs.erlingsson if self.randomizer.startswith("erlingsson") else getattr(signs, self.randomizer)
        epsilon = self.epsilon / 2 if self.randomizer == "erlingsson" else self.epsilon
        return tuple(make(min(self.changes, int(m)) if self.tuned else self.changes, epsilon) for m in self.nodes)

    @property
    def privacy_loss(self) -> float:
        """The exact loss of all that a user sends: the largest over levels."""
        return max(law.loss for law in self.signs)

    @cached_property
    def gains(self) -> NDArray[np.float64]:
        """Of each level, (levels,): what a report of a change is on average."""
        return np.array([law.gain for law in self.signs])

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """The probability of each level, (levels,)."""
        levels, epochs = np.arange(len(self.nodes)), np.arange(1, self.horizon + 1)
        uses = np.count_nonzero(epochs[:, None] >> levels & 1, axis=0)
        weights = np.sqrt(uses) / self.gains if self.tuned else np.ones(len(levels))
        return np.asarray(weights / weights.sum())

    @property
    def standard_errors(self) -> NDArray[np.float64]:
        """Of every epoch, (horizon,), before any data: a bound, nearly reached where few bits change at a time."""
        _, precisions = self._weights(self.n_users * self.shares)
        return np.sqrt(self._prefixes([np.full(m, 1 / p) for m, p in zip(self.nodes, precisions, strict=True)]))

    def estimates(self, tally: NodeTally) -> NDArray[np.float64]:
        """Of every epoch, (horizon,), not clipped; unbiased but for truncation where every level has been named."""
        weights, _ = self._weights(tally.users)
        pooled: list[NDArray[np.float64]] = []
        for own, users, gain, weight in zip(tally.sums, tally.users, self.gains, weights, strict=True):
            mean = own / (max(int(users), 1) * gain)
            if pooled:
                halves = pooled[-1][: 2 * len(own)].reshape(-1, 2).sum(axis=1)
                mean = weight * mean + (1 - weight) * halves
            pooled.append(mean)
        return self._prefixes(pooled)

    def _weights(self, users: NDArray[np.float64] | NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """By level, (levels,): what a node's own reports weigh against its halves, and its precision, 1 / variance."""
        own: NDArray[np.float64] = users * self.gains**2
        total = own.copy()
        for level in range(1, len(own) if self.tuned else 0):
            total[level] += total[level - 1] / 2
        weights: NDArray[np.float64] = np.divide(own, total, out=np.ones_like(own), where=total > 0)
        return weights, total

    def _prefixes(self, nodes: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """(horizon,): the sums of the nodes that cover epochs 1 to t, from values by level and node."""
        sums = np.zeros(self.horizon + 1)
        for level in range(len(nodes) - 1, -1, -1):
            ends = np.arange(1 << level, self.horizon + 1, 2 << level)
            sums[ends] = sums[ends - (1 << level)] + nodes[level][(ends >> level) - 1]
        return sums[1:]


def partial_sums(bits: NDArray[np.uint8], level: int) -> NDArray[np.int8]:
    """(users, nodes): by how much each bit moves over the nodes of `level`, from (users, epochs)."""
    ends = bits[:, (1 << level) - 1 :: 1 << level].astype(np.int8)
    ends[:, 1:] -= ends[:, :-1].copy()
    return ends


def reports(sums: NDArray[np.int8], flips: NDArray[np.bool_], coins: NDArray[np.int8]) -> NDArray[np.int8]:
    """(users, nodes) of +-1: `coins` for what does not move; what moves, its first with the first of `flips`, and so on."""
    order = np.cumsum(sums != 0, axis=1, dtype=np.int32) - 1
    flipped = np.take_along_axis(flips, np.maximum(order, 0), axis=1)
    return np.where(sums == 0, coins, np.where(flipped, -sums, sums))


def collect(settings: ChangeTree, bits: NDArray[np.uint8], rng: np.random.Generator) -> NodeTally:
    """All that some users, with `bits` (users, horizon), send. Chunks of users add up."""
    check_bits(bits, settings.horizon)
    kept = truncate(bits, settings.changes)
    lots = np.searchsorted(np.cumsum(settings.shares)[:-1], rng.random(len(bits)), side="right")
    totals = []
    for level, law in enumerate(settings.signs):
        sums = partial_sums(kept[lots == level], level)
        coins = 2 * rng.integers(0, 2, size=sums.shape, dtype=np.int8) - 1
        totals.append(reports(sums, law.flips(len(sums), rng), coins).sum(axis=0, dtype=np.int64))
    return NodeTally(np.bincount(lots, minlength=len(totals)), tuple(totals))


def run(
    settings: ChangeTree, stream: ThresholdStream, *, bits: np.random.Generator, private: np.random.Generator
) -> NodeTally:
    """All users of `stream`; `bits` draws their thresholds, `private` their lots and noise."""
    same_sizes(settings, stream)
    chunks = stream.chunks(bits)
    tally = collect(settings, next(chunks), private)
    for chunk in chunks:
        tally = tally + collect(settings, chunk, private)
    return tally


def simulate(settings: ChangeTree, stream: ThresholdStream, rng: np.random.Generator) -> NodeTally:
    """The same law at a cost that does not grow with the number of users."""
    same_sizes(settings, stream)
    chances, bits = stream.kinds()
    users = rng.multinomial(stream.n_users, np.outer(settings.shares, chances).ravel()).reshape(-1, len(chances))
    kept, totals = truncate(bits, settings.changes), []
    for level, (law, held) in enumerate(zip(settings.signs, users, strict=True)):
        sums = partial_sums(kept, level)
        still = held.sum() - held @ (sums != 0)
        total = 2 * rng.binomial(still, 0.5) - still
        kind, node = np.nonzero(sums)
        moves = np.count_nonzero(sums, axis=1)
        first = np.cumsum(moves) - moves
        by_flips = np.zeros((len(held), law.changes + 1), dtype=np.int64)  # users of a kind by flips so far
        by_flips[:, 0] = held
        for seen, chances_of in enumerate(law.flip_chances):
            moving = np.flatnonzero(moves > seen)
            flipped = rng.binomial(by_flips[moving, :-1], chances_of)
            by_flips[moving, :-1] -= flipped
            by_flips[moving, 1:] += flipped
            entry = first[moving] + seen
            signed = sums[kind[entry], node[entry]] * (held[moving] - 2 * flipped.sum(axis=1))
            np.add.at(total, node[entry], signed)
        totals.append(total)
    return NodeTally(users.sum(axis=1), tuple(totals))
