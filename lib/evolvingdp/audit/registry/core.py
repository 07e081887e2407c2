"""The registry's entries for what every paper uses: noise, and randomized response."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from evolvingdp.audit.registry.entry import FINITE, NOISE, Door, Known, Mechanism, Trial, at_the_edge, settled
from evolvingdp.core import accounting
from evolvingdp.core.noise import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Tape
from evolvingdp.core.olh import OLH
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.reports import Hashed, Report, Sign, Subset
from evolvingdp.core.seeds import stream

Rng = np.random.Generator
_REPORT = ("a report", "any two values")
_LAWS: dict[str, Any] = {
    "laplace": Laplace,
    "gaussian": Gaussian,
    "discrete_laplace": DiscreteLaplace,
    "discrete_gaussian": DiscreteGaussian,
}


def mechanisms() -> Iterator[Mechanism]:
    for name, law in _LAWS.items():
        yield Mechanism(
            name, "core", (law, law.draw, Tape), "numbers", "differ by 1 each", NOISE, partial(_noise_trial, law)
        )
    yield Mechanism(
        "sign_flip",
        "core",
        (SignFlip, SignFlip.randomize, SignFlip.draw_reports),
        *_REPORT,
        FINITE,
        _flip_trial,
        _flip_doors,
        (SignFlip,),
    )
    yield Mechanism(
        "olh",
        "core",
        (OLH, OLH.report),
        *_REPORT,
        FINITE,
        _hash_trial,
        _hash_doors,
        (OLH,),
        {},
        {"values": "public: of the hash function"},
    )
    yield Mechanism(
        "report",
        "core",
        (Subset, Subset.report, Hashed, Sign, Report, Report.collect),
        *_REPORT,
        FINITE,
        _report_trial,
        _report_doors,
        (Subset, Hashed, Sign),
        {},
        {"n_values": "public: of the list", "size": "public: of a set"},
    )


def _noise_trial(law: Any, rng: Rng) -> Trial:
    noise, count = law(float(np.exp(rng.uniform(-1.0, 3.0)))), int(rng.integers(1, 6))
    numbers = rng.integers(-9, 9, count)
    if law in (Laplace, DiscreteLaplace):
        epsilon, delta = count / noise.scale, 0.0
    else:
        mu, epsilon = math.sqrt(count) / noise.scale, float(rng.uniform(0.1, 3.0))
        concentrated = law is DiscreteGaussian
        delta = (
            accounting.delta_of_concentrated(mu**2 / 2, epsilon)
            if concentrated
            else accounting.delta_of_gaussian(mu, epsilon)
        )
    way = rng.choice(["draw", "next", "take"])

    def run(held: Any, drawn: Any) -> Any:
        if way == "draw":
            return held + noise.draw(count, drawn)
        tape = Tape(noise, drawn)
        if way == "next":
            return [number + tape.next() for number in held.tolist()]
        first = count // 2
        return [held[:first] + tape.take(first), held[first:] + tape.take(count - first)]

    signs = rng.choice([-1, 1], count)
    return Trial((noise, str(way), numbers.tolist()), run, (numbers, numbers + signs), epsilon, delta)


def _flip_trial(rng: Rng) -> Trial:
    """Of several users, of whom one has another value: noise that they share would give it away."""
    made, users = SignFlip(at_the_edge(rng, 40.0)), int(rng.integers(1, 5))
    if rng.random() < 0.5:
        bits = rng.choice([-1, 1], users)
        other = bits * np.where(np.arange(users), 1, -1)
        return Trial((made, bits.tolist()), lambda held, noise: made.randomize(held, noise), (bits, other), made.epsilon)
    shares = rng.random(users)
    data = tuple(np.where(np.arange(users), shares, own) for own in (0.0, rng.random(), 1.0))
    return Trial((made, shares.tolist()), lambda held, noise: made.draw_reports(held, noise), data, made.epsilon)


def _flip_doors(rng: Rng) -> list[Door]:
    return []  # inside of the library only: what calls it has been checked


def _hash_trial(rng: Rng) -> Trial:
    values = None if rng.random() < 0.5 else int(rng.integers(2, 5))

    def draw() -> OLH:
        return OLH(at_the_edge(rng, 36.0) if values else float(rng.uniform(0.05, 1.5)), values)

    made: OLH = settled(draw)
    known, other = Known(int(rng.integers(0, 2**62))), rng.integers(0, 9, int(rng.integers(0, 2)))
    data = tuple(np.array([key, *other], dtype=np.uint64) for key in range(3))
    return Trial((made, other.tolist()), lambda held, noise: made.report(held, known, noise), data, made.epsilon)


def _hash_doors(rng: Rng) -> list[Door]:
    made = OLH(1.0)
    return [
        Door(
            "report",
            lambda noise, keys: made.report(keys, stream(0, "public"), noise),
            lambda drawn: {"keys": drawn.integers(0, 9, 4)},
            loose={"keys": "any number of users may report"},
        )
    ]


def _report_trial(rng: Rng) -> Trial:
    """Of one user or two, of whom the first holds any value."""
    values = int(rng.integers(2, 5))
    kind = int(rng.integers(3))

    def draw() -> Report:
        if kind == 1:
            return Hashed(values, float(rng.uniform(0.05, 1.5)))
        epsilon = at_the_edge(rng, 36.0)
        return Sign(values, epsilon) if kind else Subset(values, epsilon, int(rng.integers(1, values)))

    made: Report = settled(draw)
    other = rng.integers(0, values, int(rng.integers(0, 2)))
    data = tuple(np.array([value, *other]) for value in range(values))
    public = int(rng.integers(0, 1000))
    return Trial(
        (made, other.tolist()), lambda held, noise: made.collect(held, stream(public, "public"), noise), data, made.epsilon
    )


def _report_doors(rng: Rng) -> list[Door]:
    made = (Subset(5, 1.0, 2), Hashed(5, 1.0), Sign(5, 1.0))[int(rng.integers(3))]
    return [
        Door(
            "collect",
            lambda noise, values: made.collect(values, stream(0, "public"), noise),
            lambda drawn: {"values": drawn.integers(0, 5, 4)},
            loose={"values": "any number of users may report"},
        )
    ]
