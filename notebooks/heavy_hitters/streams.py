"""The data sets of Section 4: how many users hold each item."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import brown, checks, words


def power_law_counts(
    n_users: int, rng: np.random.Generator, *, n_items: int = 100, power: float = 15.0
) -> NDArray[np.int64]:
    """ "Power law distribution with power of 15": (n_items,) counts, most frequent first, summing to n_users.

    The reading that gives the paper's Table 2: n draws with density power * x^(power - 1) on [0, 1], counted in `n_items`
    equal bins between the sample's minimum and maximum.  Drawn exactly in O(n_items): the extremes first, the rest by a
    multinomial given the extremes.
    """
    checks.integer_at_least(2, n_users=n_users, n_items=n_items)
    checks.positive(power=power)
    top = rng.random() ** (1 / n_users)  # the maximum of n uniforms
    bottom = top * -np.expm1(np.log(rng.random()) / (n_users - 1))  # the minimum of the others, uniform below it
    edges = np.linspace(bottom ** (1 / power), top ** (1 / power), n_items + 1)
    mass = np.diff(edges**power)
    counts = rng.multinomial(n_users - 2, mass / mass.sum())
    counts[[0, -1]] += 1
    return np.sort(counts)[::-1]


def random_words(n_items: int, rng: np.random.Generator, *, length: int = 6) -> NDArray[np.str_]:
    """`n_items` different strings of `length` letters a-z, uniform among all such lists: the words of the synthetic data."""
    checks.integer_at_least(1, n_items=n_items, length=length)
    if n_items > 26**length // 2:
        raise ValueError(f"n_items must be at most {26**length // 2} for words of {length} letters, got {n_items}")
    chosen: dict[str, None] = {}
    while len(chosen) < n_items:
        chosen["".join(words.LETTERS[letter] for letter in rng.integers(0, 26, size=length))] = None
    return np.array(list(chosen))


def brown_counts(n_users: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """n_users words drawn with replacement from the Brown corpus: counts in the order of `core.brown.words()`."""
    checks.integer_at_least(1, n_users=n_users)
    frequencies = brown.words()["count"].to_numpy()
    return rng.multinomial(n_users, frequencies / frequencies.sum())


@cache
def brown_keys() -> NDArray[np.uint64]:
    """The integer keys of `core.brown.words()`, in its order; not to be written to."""
    keys = words.encode(brown.words()["word"])
    keys.flags.writeable = False
    return keys


def demo_3(n_clients: int, n_reports: int, rng: np.random.Generator, *, n_values: int = 100) -> NDArray[np.uint64]:
    """Google's Demo 3: value v in 1..n_values with probability proportional to exp(-5 v / n_values).

    uint64 (n_clients, n_reports): every report of a client has a fresh value.
    """
    checks.integer_at_least(1, n_clients=n_clients, n_reports=n_reports, n_values=n_values)
    values = np.arange(1, n_values + 1)
    mass = np.exp(-5 * values / n_values)
    return rng.choice(values.astype(np.uint64), size=(n_clients, n_reports), p=mass / mass.sum())


def repeated_values(
    values: NDArray[np.uint64], cohorts: NDArray[np.int64], n_cohorts: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
    """How often clients repeat themselves: different values (d,), pairs (d, n_cohorts, multiplicities), multiplicity.

    pairs[i, c, r] clients of cohort c hold values[i] in exactly multiplicity[r] of their reports: what RAPPOR's exact
    simulation needs, since reports of one value share a permanent response.
    """
    distinct, place = np.unique(values, return_inverse=True)
    client_and_value = np.arange(len(values))[:, None] * len(distinct) + place.reshape(values.shape)
    pair, times = np.unique(client_and_value, return_counts=True)
    cell = (pair % len(distinct)) * n_cohorts + cohorts[pair // len(distinct)]
    most = int(times.max())
    pairs = np.bincount(cell * most + times - 1, minlength=len(distinct) * n_cohorts * most)
    return distinct, pairs.reshape(len(distinct), n_cohorts, most), np.arange(1, most + 1)
