"""Entries of the ledger for what every paper uses: randomized response and noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from evolvingdp.audit.exact import probes, sensitivity
from evolvingdp.audit.exact.epsilons import gaussian_epsilon
from evolvingdp.audit.exact.laws import worst_loss
from evolvingdp.audit.ledger.entry import EXACT, SENSITIVITY, Entry
from evolvingdp.core.noise import DiscreteLaplace, Gaussian, Laplace
from evolvingdp.core.randomizers import SignFlip

_DELTA = 1e-6
_LESS = "10 % less noise"


def entries() -> Iterator[Entry]:
    def flip(epsilon: float) -> float:
        return worst_loss([SignFlip(epsilon).probabilities(bit) for bit in (-1, 1)])

    yield Entry(
        "sign_flip", "core", "SignFlip (randomized response)", (SignFlip,), "a report", "any two values", EXACT, 1.0,
        lambda: flip(1.0), "10 % too small an epsilon in the noise", lambda: flip(1.1),
    )  # fmt: skip
    yield from _noise()


def _noise() -> Iterator[Entry]:
    def entry(
        id: str, name: str, covers: Any, promised: float, measure: Any, broken: Any, how: str, delta: float = 0
    ) -> Entry:
        mutant = "its scale rounded down" if covers is DiscreteLaplace else _LESS
        return Entry(
            id,
            "core",
            name,
            (covers,),
            "a number",
            "numbers that differ by 1",
            how,
            promised,
            measure,
            mutant,
            broken,
            delta,
        )

    yield entry(
        "laplace", "Laplace noise", Laplace, 0.5, lambda: sensitivity.noise_cost(Laplace(2.0)),
        lambda: sensitivity.noise_cost(Laplace(1.8)), SENSITIVITY,
    )  # fmt: skip
    yield entry(
        "discrete_laplace", "discrete Laplace noise", DiscreteLaplace, 1 / 0.3, lambda: _discrete_loss(DiscreteLaplace(0.3)),
        lambda: _discrete_loss(_RoundedDown(0.3)), EXACT,
    )  # fmt: skip
    promised = gaussian_epsilon(0.25, _DELTA)
    yield entry(
        "gaussian", "Gaussian noise", Gaussian, promised,
        lambda: gaussian_epsilon(sensitivity.noise_cost(Gaussian(2.0)), _DELTA),
        lambda: gaussian_epsilon(sensitivity.noise_cost(Gaussian(1.8)), _DELTA), SENSITIVITY, _DELTA,
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
