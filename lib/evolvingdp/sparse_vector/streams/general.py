"""General streams: any users hold any sets of elements in any step, and may be in many elements over time.

Users who hold the same in every step are of one **type**: they count alike, whatever is answered. A run depends only on
how many users a type has, and on how often the type has counted. `simulate` is exact, at a cost of the entries (type,
element, step) and of the reports, whatever the number of users and |X| are; it pays for the number of types: as many as
users, if no two users hold the same in all steps. `brown_stream` is the Brown corpus as such a stream.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from evolvingdp.core import brown, checks
from evolvingdp.sparse_vector.noise import rare_count
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GeneralStream:
    """`users` (types,): the users of each type; in step s types hold `elements[s]` where `held[s]` (rows, types) is 1."""

    users: Counts
    elements: tuple[Counts, ...]  # increasing; all others are held by nobody
    held: tuple[csr_array, ...]
    n_elements: int  # |X|

    @property
    def n_users(self) -> int:
        return int(self.users.sum())

    @property
    def n_entries(self) -> int:
        """What a simulation looks at: (type, element, step)."""
        return sum(int(now.nnz) for now in self.held)

    @property
    def absent_queries(self) -> int:
        """How often, over all steps, an element is held by nobody."""
        return sum(self.n_elements - len(present) for present in self.elements)

    @cached_property
    def weights(self) -> tuple[Counts, ...]:
        """For each step (rows,): how many users hold each of its `elements`."""
        return tuple(np.asarray(now @ self.users, dtype=np.int64) for now in self.held)

    @cached_property
    def by_type(self) -> tuple[csc_array, ...]:
        """`held`, column by column."""
        return tuple(now.tocsc() for now in self.held)

    def participation(self, weight: float) -> int:
        """k*: in how many elements of at least `weight`, over all steps, a user is at most."""
        total = np.zeros(len(self.users), dtype=np.int64)
        for weights, now in zip(self.weights, self.held, strict=True):
            total += np.asarray((weights >= weight).astype(np.int64) @ now, dtype=np.int64)
        return int(total.max(initial=0))


def simulate(
    monitor: ThresholdMonitorEvolving, stream: GeneralStream, rng: np.random.Generator
) -> tuple[list[NDArray[np.bool_]], int]:
    """Which of `elements` are reported in each step, and how many reports there are of elements that nobody holds.

    The law of asking, in every step, for all of the domain in the order of the elements' numbers.  Raises ValueError for a
    monitor that counts queries, too.
    """
    if monitor.moved is not None:
        raise ValueError(f"moved must be None, as queries are not counted here, got {monitor.moved}")
    counted = np.zeros(len(stream.users), dtype=np.int64)
    found = [answer(monitor, stream, step, counted, rng) for step in range(len(stream.held))]
    return found, rare_count(stream.absent_queries, float(monitor.noise.sf(monitor.threshold)), rng)


def answer(
    monitor: ThresholdMonitorEvolving, stream: GeneralStream, step: int, counted: Counts, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """The answers of one step (rows,), one after the other; `counted` (types,) is changed.

    Sums only fall, so that no other row can be a yes than those that are with the users active at first.
    """
    held, by_type, users = stream.held[step], stream.by_type[step], stream.users
    sums = np.asarray(held @ (users * (counted < monitor.reports)), dtype=np.int64)
    noise = monitor.noise.sample(held.shape[0], rng)
    above = np.zeros(held.shape[0], dtype=bool)
    for row in np.flatnonzero(sums + noise >= monitor.threshold).tolist():
        if sums[row] + noise[row] < monitor.threshold:
            continue
        above[row] = True
        holders = held.indices[held.indptr[row] : held.indptr[row + 1]]
        counted[holders] += 1
        for gone in holders[counted[holders] == monitor.reports].tolist():
            sums[by_type.indices[by_type.indptr[gone] : by_type.indptr[gone + 1]]] -= users[gone]
    return above


@checks.plain
def random_stream(
    n_users: int,
    n_types: int,
    horizon: int,
    n_elements: int,
    rng: np.random.Generator,
    *,
    vocabulary: int = 1000,
    held: int = 2,
    exponent: float = 1.0,
    drift: float = 0.05,
    stay: float = 0.5,
) -> GeneralStream:
    """Types of unequal size hold up to `held` elements of a `vocabulary`, by a popularity that shifts.

    Popularity falls with the rank to the power `exponent` (Zipf); in every step a share `drift` of the elements changes
    ranks, and a type keeps each element with probability `stay`, else draws another. The sizes of types are Zipf as well.
    Raises ValueError for types or elements that do not fit.
    """
    checks.integer_at_least(1, n_users=n_users, n_types=n_types, horizon=horizon, n_elements=n_elements, held=held)
    checks.integer_at_least(1, vocabulary=vocabulary)
    if n_types > n_users:
        raise ValueError(f"n_types must be <= n_users = {n_users}, got {n_types}")
    if vocabulary > n_elements:
        raise ValueError(f"vocabulary must be <= n_elements = {n_elements}, got {vocabulary}")
    if not 0 <= exponent < math.inf:
        raise ValueError(f"exponent must be >= 0 and finite, got {exponent!r}")
    for name, share in {"drift": drift, "stay": stay}.items():
        if not 0 <= share <= 1:
            raise ValueError(f"{name} must lie in [0, 1], got {share!r}")
    checks.fits_in_memory("the stream", 48.0 * horizon * n_types * held, "lower n_types, horizon or held")
    users = 1 + rng.multinomial(n_users - n_types, _zipf(n_types, exponent))
    names = np.sort(rng.choice(n_elements, size=vocabulary, replace=False, shuffle=False)).astype(np.int64)
    ranked, popularity = rng.permutation(vocabulary), np.cumsum(_zipf(vocabulary, exponent))
    mine = np.zeros((n_types, held), dtype=np.int64)
    elements, tables = [], []
    for step in range(horizon):
        moved = np.flatnonzero(rng.random(vocabulary) < drift)
        ranked[moved] = ranked[rng.permutation(moved)]
        drawn = ranked[np.searchsorted(popularity[:-1], rng.random(mine.shape), side="right")]
        mine = np.where((rng.random(mine.shape) < stay) & (step > 0), mine, drawn)
        pairs = np.unique(mine * n_types + np.arange(n_types)[:, None])  # (element, type), each once
        present, rows = np.unique(pairs // n_types, return_inverse=True)
        table = csr_array((np.ones(len(pairs), dtype=np.int64), (rows, pairs % n_types)), shape=(len(present), n_types))
        elements.append(names[present])
        tables.append(table)
    return GeneralStream(users.astype(np.int64), tuple(elements), tuple(tables), n_elements)


@cache
def brown_stream(copies: int) -> GeneralStream:
    """The Brown corpus, a step a category: who has a document holds its words while its category is on.

    Each of 500 documents is a type of `copies` users; the domain are the words of six letters, the most frequent first.
    """
    checks.integer_at_least(1, copies=copies)
    table = brown.documents()["documents"].str.split()
    columns = np.concatenate(table.to_numpy()).astype(np.int64)
    words = np.repeat(np.arange(len(table)), [len(documents) for documents in table])
    sizes = list(brown.CATEGORY_SIZES.values())
    elements, tables = [], []
    for low, high in pairwise(np.cumsum([0, *sizes]).tolist()):
        now = (columns >= low) & (columns < high)
        present, rows = np.unique(words[now], return_inverse=True)
        ones = np.ones(len(rows), dtype=np.int64)
        tables.append(csr_array((ones, (rows, columns[now])), shape=(len(present), sum(sizes))))
        elements.append(present)
    return GeneralStream(np.full(sum(sizes), copies), tuple(elements), tuple(tables), 26**brown.LENGTH)


def _zipf(size: int, exponent: float) -> NDArray[np.float64]:
    shares = np.arange(1, size + 1, dtype=float) ** -exponent
    return np.asarray(shares / shares.sum())
