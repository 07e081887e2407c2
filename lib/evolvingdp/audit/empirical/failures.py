"""Minimal models of failures, right and wrong versions side by side: what the checks have to catch.

Two of them are from packages that people install: a "permanent" response that is drawn again at every report, and a client
that never clears a true bit. Each function makes a black box `(input, rng) -> output` for `empirical.audit`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.empirical.auditor import Batch, Mechanism
from evolvingdp.core.noise import Noise
from evolvingdp.heavy_hitters.rappor import Rappor


@dataclass(frozen=True)
class NeverClears(Rappor):
    """The coin of the permanent response can set a bit but not clear it: a true 1 stays."""

    def permanent_one(self, bit: int) -> float:
        return 1.0 if bit else super().permanent_one(bit)


def rappor_client(settings: Rappor, n_reports: int, *, redrawn: bool = False) -> Mechanism:
    """A client with this Bloom filter (an integer), its reports counted: how often each bit was shown as 1.

    `redrawn`: a new "permanent" response for each report. Counts of independent reports are drawn as such.
    """

    def counts(held: int, runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return _shown(settings, np.full(runs, held), n_reports, redrawn, rng)

    return Batch(counts)


def _shown(
    settings: Rappor, held: NDArray[np.int64], n_reports: int, redrawn: bool, rng: np.random.Generator
) -> NDArray[np.int64]:
    """In how many of `n_reports` each client's bits are shown as 1, (clients, bits)."""
    true = held[:, None] >> np.arange(settings.n_bits) & 1
    responses = n_reports if redrawn else 1  # drawn; each stands for as many reports
    ones = rng.binomial(responses, np.where(true, settings.permanent_one(1), settings.permanent_one(0)))
    ones *= n_reports // responses
    return rng.binomial(ones, settings.one_from_one) + rng.binomial(n_reports - ones, settings.one_from_zero)


def recovered(settings: Rappor, n_reports: int, users: int, rng: np.random.Generator, *, redrawn: bool = False) -> int:
    """Of `users` clients with a random bit set each, how many are told by the bit that they show most often."""
    bits = rng.integers(0, settings.n_bits, users)
    return int((_shown(settings, 1 << bits, n_reports, redrawn, rng).argmax(axis=1) == bits).sum())


def noisy_count(noise: Noise) -> Mechanism:
    """A count with noise: `noise` for a sensitivity of 1, or too little of it."""
    return Batch(lambda count, runs, rng: count + noise.draw(runs, rng))


def last_digits(noise: Noise) -> Mechanism:
    """Whether a noisy count in (0, 1) has digits below 2^-53: 1 + noise in floating point never has (Mironov 2012)."""

    def finer(count: int, runs: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        noisy = count + noise.draw(runs, rng)
        return np.asarray((noisy > 0) & (noisy < 1) & (noisy * 2.0**53 % 1 != 0))

    return Batch(finer)


def rappor_laws(settings: Rappor, filters: Iterable[int], n_reports: int) -> Iterator[dict[tuple[int, ...], float]]:
    """Laws of all sequences of reports of one word, for each of its possible Bloom `filters`."""
    for held in filters:
        law = {}
        for sent in itertools.product(range(2**settings.n_bits), repeat=n_reports):
            ones = [sum(report >> bit & 1 for report in sent) for bit in range(settings.n_bits)]
            logs = [settings.log_bit_probability(held >> bit & 1, count, n_reports) for bit, count in enumerate(ones)]
            law[sent] = math.exp(math.fsum(logs))
        yield law
