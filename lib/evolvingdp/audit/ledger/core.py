"""Entries of the ledger for what every paper uses: randomized response and noise, from the samplers that ship."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import norm

from evolvingdp.audit.exact import probes
from evolvingdp.audit.exact.draws import loss_of
from evolvingdp.audit.exact.laws import composed_epsilon, gaussian_epsilon, pair_epsilon, smallest_epsilon
from evolvingdp.audit.exact.sensitivity import noise_cost
from evolvingdp.audit.ledger.entry import COMPOSED, EXACT, SENSITIVITY, Entry
from evolvingdp.core import accounting
from evolvingdp.core.noise import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Noise, Tape
from evolvingdp.core.randomizers import SignFlip

_DELTA = 1e-6
_NUMBER = ("a number", "numbers that differ by 1")


class _Least:
    """A generator whose uniform numbers are the least that there can be."""

    def random(self, shape: Any) -> Any:
        return np.zeros(shape)


def entries() -> Iterator[Entry]:
    def entry(
        id: str, name: str, covers: tuple[Any, ...], how: str, promised: float, measure: Any,
        who: tuple[str, str] = _NUMBER, **more: Any,
    ) -> Entry:  # fmt: skip
        return Entry(
            id,
            "core",
            name,
            covers,
            *who,
            how,
            promised,
            measure,
            **more,
        )

    def flipped(bit: int, rng: Any) -> Any:
        return SignFlip(1.0).randomize(np.array([bit, 1]), rng)

    def shown(share: float, rng: Any) -> Any:
        return SignFlip(1.0).draw_reports(np.array([share, 1.0]), rng)

    def counted(share: float, rng: Any) -> Any:
        return rng.binomial([1, 1], SignFlip(1.0).report_one(np.array([share, 1.0])))

    def rarely(measure: Any) -> float:
        """The loss, if at a large epsilon, too, the least that a uniform number can be makes the rarer report."""
        least: Any = _Least()
        large = SignFlip(40.0)
        flips = np.array_equal(large.randomize(np.array([1, -1]), least), [-1, 1])
        return (
            float(measure())
            if flips and large.draw_reports(np.array([0.0, 1.0]), least).tolist() == [True, False]
            else math.inf
        )

    report = ("a report", "any two values")
    yield entry(
        "sign_flip", "SignFlip (randomized response)", (SignFlip,), EXACT, 1.0, lambda: rarely(lambda: loss_of(flipped, (-1, 1))),
        report,
    )  # fmt: skip
    yield entry(
        "sign_flip_shares", "SignFlip, reports on means", (SignFlip,), EXACT, 1.0,
        lambda: loss_of(shown, (0.0, 0.3, 1.0)),
        report,
    )  # fmt: skip
    yield entry(
        "advanced_composition", "advanced composition of 100 reports", (accounting.advanced,), COMPOSED, 1.0,
        lambda: composed_epsilon(accounting.advanced(1.0, _DELTA, 100), 100, _DELTA),
        ("100 reports", "any two sequences of values"),
        delta=_DELTA,
    )  # fmt: skip
    many = ("40 reports", "any two sequences of values")
    yield entry(
        "optimal_composition", "basic and optimal composition of 40 reports", (accounting.basic, accounting.optimal), COMPOSED,
        1.0, lambda: max(_composed(accounting.optimal(1.0, _DELTA, 40)), 40 * accounting.basic(1.0, 40)),
        many,
        delta=_DELTA,
    )  # fmt: skip
    normal = ("Gaussian noise", "numbers that differ by 1")
    yield entry(
        "gaussian_accounting", "mu of Gaussian noise", (accounting.gaussian_mu,), COMPOSED, 1.0,
        lambda: _normal(accounting.gaussian_mu(1.0, _DELTA)),
        normal, delta=_DELTA,
    )  # fmt: skip
    yield entry(
        "concentrated_accounting", "rho of Gaussian noise", (accounting.concentrated_rho,), COMPOSED, 1.0,
        lambda: _normal(math.sqrt(2 * accounting.concentrated_rho(1.0, _DELTA))),
        normal, delta=_DELTA,
    )  # fmt: skip
    yield entry(
        "laplace", "Laplace noise", (Laplace,), SENSITIVITY, 0.5, lambda: noise_cost(Laplace(2.0)),
    )  # fmt: skip
    yield entry(
        "discrete_laplace", "discrete Laplace noise", (DiscreteLaplace,), EXACT, 1 / 0.3,
        lambda: _discrete_loss(DiscreteLaplace(0.3)),
    )  # fmt: skip
    yield entry(
        "discrete_laplace_wide", "discrete Laplace noise, a scale above 1", (DiscreteLaplace,), EXACT, 1 / 3,
        lambda: _discrete_loss(DiscreteLaplace(3.0)),
    )  # fmt: skip
    yield entry(
        "discrete_laplace_large", "large discrete Laplace noise, times what is promised", (DiscreteLaplace,), EXACT, 1.0,
        _large_scales,
    )  # fmt: skip
    yield entry(
        "discrete_gaussian", "discrete Gaussian noise, times what is promised", (DiscreteGaussian,), EXACT, 1.0,
        _discrete_gaussian,
        delta=_DELTA,
    )  # fmt: skip
    yield entry(
        "gaussian", "Gaussian noise", (Gaussian,), SENSITIVITY, gaussian_epsilon(0.25, _DELTA),
        lambda: gaussian_epsilon(noise_cost(Gaussian(2.0)), _DELTA),
        delta=_DELTA,
    )  # fmt: skip
    for id, noise, promised in (("laplace", Laplace(1.0), 4.0), ("gaussian", Gaussian(1.0), 30.0)):
        yield entry(
            f"tape_{id}", f"draws one by one and in blocks, {id.capitalize()}", (Tape,), EXACT, promised,
            lambda noise=noise: loss_of(lambda moved, rng: _taped(noise, moved, rng), [(0, 0, 0, 0), (1, -1, 1, -1)]),
            ("four numbers", "numbers that differ by 1 each"),
        )  # fmt: skip


def _taped(noise: Noise, moved: tuple[int, ...], rng: Any) -> list[bool]:
    """Whether the first draws and the 1,025th of a tape are above 0, with what they hide."""
    tape = Tape(noise, rng)
    drawn = [tape.next(), tape.take(1)[0], tape.take(1)[0], tape.take(1022)[-1]]
    return [bool(one + by > 0.5) for one, by in zip(drawn, moved, strict=True)]


def _discrete_loss(noise: DiscreteLaplace, largest: int = 2) -> float:
    """The largest log ratio of neighbouring numbers up to `largest`; from there on the law goes on in the same way."""
    law = probes.discrete_law(noise, largest)
    return max(abs(math.log(law[number] / law[number + 1])) for number in range(-largest, largest))


def _large_scales() -> float:
    """The largest log ratio of numbers on a grid of half the scale and around its multiples, up to the largest scale."""
    worst = 0.0
    for scale in (1000.0, 2.0**30 / 3, 2.0**46):
        near = int(scale) // 8
        numbers = [0, *sorted(k * int(scale) // 2 + off for k in range(1, 8) for off in (-near, near))]
        for sign in (1, -1):
            law = probes.masses_of(DiscreteLaplace(scale), [sign * number for number in numbers])
            logs, gaps = -np.diff(np.log(list(law.values()))), np.diff(numbers)
            worst = max(worst, float((np.abs(logs) * scale / gaps).max()))
    return worst


def _composed(one: float, reports: int = 40) -> float:
    """The epsilon of randomized responses, from the laws of all reports together, report by report."""
    law, keep = np.ones(1), 1 / (1 + math.exp(-one))
    for _ in range(reports):
        law = np.convolve(law, [1 - keep, keep])
    return pair_epsilon([law, law[::-1]], _DELTA)


def _normal(mu: float) -> float:
    """The epsilon of Gaussian noise, from the tails of the loss, which is normal."""
    spread = norm(mu * mu / 2, mu)
    return smallest_epsilon(lambda epsilon: spread.sf(epsilon) - np.exp(epsilon + spread.logcdf(-epsilon)) - _DELTA)


def _discrete_gaussian() -> float:
    """The epsilon of numbers that differ by 1, at most, over that of masses exp(-z^2 / 2 s^2), at scales below and above 1;
    of large scales, masses near them."""
    worst = 0.0
    for scale in (0.3, 0.7, 2.5):
        numbers = np.arange(-math.ceil(9 * scale), math.ceil(9 * scale) + 1)
        printed = np.exp(-((numbers / scale) ** 2) / 2)
        drawn = np.array(list(probes.gaussian_law(DiscreteGaussian(scale), numbers.tolist()).values()))
        found, promised = (
            pair_epsilon([np.append(law, 0) / law.sum(), np.append(0, law) / law.sum()], _DELTA) for law in (drawn, printed)
        )
        worst = max(worst, found / promised)
    for scale in (2.0**16, 2.0**25):
        numbers = np.rint(scale * np.array([0, 0.5, -1, 2, -4])).astype(np.int64)
        law = probes.gaussian_law(DiscreteGaussian(scale), numbers.tolist())
        if not np.allclose([law[number] / law[0] for number in law], np.exp(-((numbers / scale) ** 2) / 2)):
            raise AssertionError("a discrete Gaussian draw of a large scale must have its law")
    return worst
