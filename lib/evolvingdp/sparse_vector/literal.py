"""The baselines line by line, slow: a draw for each element of the domain, weights counted user by user.

The reference that `histograms`, `find_step` and the simulations of `baselines` are tested against.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.histograms import Histogram


def histogram_step(one: Histogram, inputs: Sequence[int], n_elements: int, rng: np.random.Generator) -> list[int]:
    """The elements reported in one step."""
    reported = []
    for element in range(n_elements):
        weight = inputs.count(element)
        if one.stable and weight == 0:
            continue
        noise = rng.normal(0.0, one.scale) if one.normal else rng.laplace(0.0, one.scale)
        if weight + noise >= one.threshold:
            reported.append(element)
    return reported


def find_step(
    search: AboveThreshold, shown: Histogram, stream: Iterable[Sequence[int]], n_elements: int, rng: np.random.Generator
) -> list[list[int] | None]:
    """For each step None where the search says no (or has halted), else the elements that are shown."""
    answers: list[list[int] | None] = []
    left = search.reports
    threshold = search.threshold + rng.laplace(0.0, search.threshold_scale)
    for inputs in stream:
        answers.append(None)
        if left == 0:
            continue
        largest = max(inputs.count(element) for element in range(n_elements))
        if largest + rng.laplace(0.0, search.query_scale) < threshold:
            continue
        left -= 1
        if search.refreshed:
            threshold = search.threshold + rng.laplace(0.0, search.threshold_scale)
        answers[-1] = histogram_step(shown, inputs, n_elements, rng)
    return answers
