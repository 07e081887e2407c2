"""The Brown corpus as a shifting dictionary: in step c the documents of category c show their words.

A user is a document (or one of `copies` users who hold what the document holds) and is asked about every word of the
domain, in order, while its category is on: a query in {0, 1} for each. A user may hold many elements of a step, so queries
of one step share users; everything else is as in `shifting`. The simulation is exact: copies of a document count alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from evolvingdp.core import brown, checks
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.general_streams import answer
from evolvingdp.sparse_vector.shifting_simulation import rare_count
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

N_ELEMENTS = 26**6  # words of six letters


@dataclass(frozen=True, eq=False)
class DocumentStream:
    """`held` (words, documents) of 0 and 1; the documents of step c are `first[c]` to `first[c + 1]`."""

    held: csr_array
    first: NDArray[np.int64]
    words: list[str]
    steps: list[str]
    copies: int

    @property
    def n_users(self) -> int:
        return int(self.held.shape[1]) * self.copies

    def weights(self, step: int) -> NDArray[np.int64]:
        """(words,): how many users hold each word in `step`."""
        return self.copies * np.asarray(self._now(step).sum(axis=1), dtype=np.int64)

    def participation(self, weight: float) -> int:
        """In how many elements of at least `weight` a user is, at most (k*)."""
        return max(int(self._now(step)[self.weights(step) >= weight].sum(axis=0).max()) for step in range(len(self.steps)))

    def _now(self, step: int) -> csr_array:
        return self._parts[step]

    @cached_property
    def _parts(self) -> list[csr_array]:
        ends = self.first.tolist()
        return [csr_array(self.held[:, low:high]) for low, high in pairwise(ends)]


@cache
def brown_stream(copies: int) -> DocumentStream:
    """Fifteen categories, 500 documents; each document stands for `copies` users."""
    checks.integer_at_least(1, copies=copies)
    table = brown.documents()["documents"].str.split()
    columns = np.concatenate(table.to_numpy()).astype(np.int64)
    pointers = np.concatenate([[0], np.cumsum([len(numbers) for numbers in table])])
    sizes = list(brown.CATEGORY_SIZES.values())
    held = csr_array((np.ones(len(columns), dtype=np.int64), columns, pointers), shape=(len(table), sum(sizes)))
    return DocumentStream(
        held, np.concatenate([[0], np.cumsum(sizes)]), table.index.tolist(), list(brown.CATEGORY_SIZES), copies
    )


def monitor_documents(
    monitor: ThresholdMonitorEvolving, stream: DocumentStream, rng: np.random.Generator
) -> tuple[list[NDArray[np.bool_]], int]:
    """The words found in each step, and how many reports were of words that nobody holds."""
    found, absent = [], 0
    for step in range(len(stream.steps)):
        now = stream._now(step)
        users = np.full(now.shape[1], stream.copies)  # a document is in one category: nobody has counted before
        above = answer(monitor, now, users, np.zeros(now.shape[1], dtype=np.int64), rng)
        held = stream.weights(step) > 0
        found.append(above & held)
        spare = N_ELEMENTS - now.shape[0]
        absent += int((above & ~held).sum()) + rare_count(spare, float(monitor.noise.sf(monitor.threshold)), rng)
    return found, absent


def threshold_documents(method: AboveThreshold, stream: DocumentStream, rng: np.random.Generator) -> list[NDArray[np.bool_]]:
    """The words found by repeated AboveThreshold; words that nobody holds are asked last in a step and left out here."""
    found, left = [], method.reports
    shift = rng.laplace(0.0, method.threshold_scale)
    for step in range(len(stream.steps)):
        weights, start = stream.weights(step), 0
        noisy = weights + rng.laplace(0.0, method.query_scale, size=len(weights))
        above = np.zeros(len(weights), dtype=bool)
        while left:
            hits = noisy[start:] >= method.threshold + shift
            if not hits.any():
                break
            start += int(hits.argmax())
            above[start] = True
            left, start = left - 1, start + 1
            if method.refreshed:
                shift = rng.laplace(0.0, method.threshold_scale)
        found.append(above & (weights > 0))
    return found
