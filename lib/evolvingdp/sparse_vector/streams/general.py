"""General streams: any users hold any sets of elements in any step, and may be in many elements over time.

Users who hold the same in every step are of one **type**: they count alike, whatever is answered. A run depends only on
how many users a type has, and on how often the type has counted. `simulate` is exact, at a cost of the entries (type,
element, step) and of the reports, whatever the number of users and |X| are. `brown_stream` is the Brown corpus as such.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from evolvingdp.core import brown, checks
from evolvingdp.core.sampling import rare_count
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
    def weights(self) -> tuple[Counts, ...]:
        """For each step (rows,): how many users hold each of its `elements`."""
        return tuple(np.asarray(now @ self.users, dtype=np.int64) for now in self.held)

    def participation(self, weight: float) -> int:
        """k*: in how many elements of at least `weight`, over all steps, a user is at most."""
        heavy = [(weights >= weight).astype(np.int64) @ now for weights, now in zip(self.weights, self.held, strict=True)]
        return int(np.sum(heavy, axis=0).max(initial=0))


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
    absent = sum(stream.n_elements - len(present) for present in stream.elements)
    return found, rare_count(absent, float(monitor.noise.sf(monitor.threshold)), rng)


def answer(
    monitor: ThresholdMonitorEvolving, stream: GeneralStream, step: int, counted: Counts, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """The answers of one step (rows,), one after the other; `counted` (types,) is changed.

    Sums only fall, so that no other row can be a yes than those that are with the users active at first.
    """
    held, users = stream.held[step], stream.users
    by_type = held.tocsc()
    sums = np.asarray(held @ (users * (counted < monitor.reports)), dtype=np.int64)
    noise = monitor.noise.draw(held.shape[0], rng)
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
