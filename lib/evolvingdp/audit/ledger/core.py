"""Entries of the ledger for what every paper uses: randomized response and noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from evolvingdp.audit.exact import probes
from evolvingdp.audit.exact.laws import gaussian_epsilon, worst_loss
from evolvingdp.audit.exact.sensitivity import noise_cost
from evolvingdp.audit.ledger.entry import EXACT, SENSITIVITY, Entry
from evolvingdp.core.noise import DiscreteLaplace, Gaussian, Laplace
from evolvingdp.core.randomizers import SignFlip

_DELTA = 1e-6


def entries() -> Iterator[Entry]:
    def flip(epsilon: float) -> float:
        return worst_loss([SignFlip(epsilon).probabilities(bit) for bit in (-1, 1)])

    yield Entry(
        "sign_flip", "core", "SignFlip (randomized response)", (SignFlip,), "a report", "any two values", EXACT, 1.0,
        partial(flip, 1.0), "10 % too small an epsilon in the noise", partial(flip, 1.1),
    )  # fmt: skip
    number = ("a number", "numbers that differ by 1")
    yield Entry(
        "laplace", "core", "Laplace noise", (Laplace,), *number, SENSITIVITY, 0.5, lambda: noise_cost(Laplace(2.0)),
        "10 % less noise", lambda: noise_cost(Laplace(1.8)),
    )  # fmt: skip
    yield Entry(
        "discrete_laplace", "core", "discrete Laplace noise", (DiscreteLaplace,), *number, EXACT, 1 / 0.3,
        lambda: _discrete_loss(DiscreteLaplace(0.3)), "its scale rounded down", lambda: _discrete_loss(_RoundedDown(0.3)),
    )  # fmt: skip
    yield Entry(
        "gaussian", "core", "Gaussian noise", (Gaussian,), *number, SENSITIVITY, gaussian_epsilon(0.25, _DELTA),
        lambda: gaussian_epsilon(noise_cost(Gaussian(2.0)), _DELTA),
        "10 % less noise", lambda: gaussian_epsilon(noise_cost(Gaussian(1.8)), _DELTA), _DELTA,
    )  # fmt: skip


class _RoundedDown(DiscreteLaplace):
    """The mutant: less noise than was asked for."""

    @property
    def _numerator(self) -> int:
        return super()._numerator - 1


def _discrete_loss(noise: DiscreteLaplace, largest: int = 2) -> float:
    """The largest log ratio of neighbouring numbers up to `largest`; from there on the law goes on in the same way."""
    law = probes.discrete_law(noise, largest)
    return max(abs(math.log(law[number] / law[number + 1])) for number in range(-largest, largest))
