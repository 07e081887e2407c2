"""The registry's entries for what every paper uses: noise, and randomized response."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from evolvingdp.audit.registry.entry import FINITE, NOISE, Door, Known, Mechanism, Trial, at_the_edge, settled
from evolvingdp.core import accounting
from evolvingdp.core.geometry import Geometry
from evolvingdp.core.noise import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Tape
from evolvingdp.core.olh import OLH
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.reports import Hashed, Projective, Report, Sign, Subset
from evolvingdp.core.seeds import stream

Rng = np.random.Generator
_LAWS: dict[str, Any] = {
    "laplace": Laplace,
    "gaussian": Gaussian,
    "discrete_laplace": DiscreteLaplace,
    "discrete_gaussian": DiscreteGaussian,
}


def mechanisms() -> Iterator[Mechanism]:
    for name, law in _LAWS.items():
        covers: tuple[Any, ...] = (law, law.draw, Tape)
        yield Mechanism(name, "core", covers, "numbers", "differ by 1 each", NOISE, partial(_noise_trial, law))

    def entry(
        id: str, covers: tuple[Any, ...], trial: Any, made_by: tuple[Any, ...], doors: Any = (), **public: str
    ) -> Mechanism:
        words = ("a report", "any two values")
        return Mechanism(id, "core", covers, *words, FINITE, trial, lambda rng: list(doors), made_by, public=public)

    covers = (SignFlip, SignFlip.randomize, SignFlip.draw_reports)
    yield entry("sign_flip", covers, _flip_trial, (SignFlip,))  # no doors: what calls it has checked
    values = "public: of the hash function"
    yield entry("olh", (OLH, OLH.report), _hash_trial, (OLH,), [_door("report", OLH(1.0).report)], values=values)
    covers, kinds = (
        (Subset, Subset.report, Hashed, Projective, Projective.report, Sign, Report, Report.collect),
        (Subset(5, 1.0, 2), Hashed(5, 1.0), Projective(5, 1.0, Geometry(2, 3)), Sign(5, 1.0)),
    )
    sizes = {"values": values, "n_values": "public: of the list", "size": "public: of a set", "space": "public: of points"}
    doors = [_door("collect", one.collect) for one in kinds]
    yield entry("report", covers, _report_trial, (Subset, Hashed, Projective, Sign), doors, **sizes)


def _door(name: str, call: Any) -> Door:
    """Of four users' values."""
    return Door(
        name,
        lambda noise, values: call(values, stream(0, "public"), noise),
        lambda drawn: {"values": drawn.integers(0, 5, 4)},
        loose={"values": "any number of users may report"},
    )


def _noise_trial(law: Any, rng: Rng) -> Trial:
    noise, count = law(float(np.exp(rng.uniform(-1.0, 3.0)))), int(rng.integers(1, 6))
    numbers = rng.integers(-9, 9, count)
    if law in (Laplace, DiscreteLaplace):
        epsilon, delta = count / noise.scale, 0.0
    else:
        mu, epsilon = math.sqrt(count) / noise.scale, float(rng.uniform(0.1, 3.0))
        concentrated = law is DiscreteGaussian
        exact = (
            accounting.delta_of_concentrated(mu**2 / 2, epsilon)
            if concentrated
            else accounting.delta_of_gaussian(mu, epsilon)
        )
        delta = max(exact, 1e-300)  # smaller ones are no whole doubles, and have no epsilon
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


def _hash_trial(rng: Rng) -> Trial:
    values = None if rng.random() < 0.5 else int(rng.integers(2, 5))

    def draw() -> OLH:
        return OLH(at_the_edge(rng, 36.0) if values else float(rng.uniform(0.05, 1.5)), values)

    made: OLH = settled(draw)
    known, other = Known(int(rng.integers(0, 2**62))), rng.integers(0, 9, int(rng.integers(0, 2)))
    data = tuple(np.array([key, *other], dtype=np.uint64) for key in range(3))
    return Trial((made, other.tolist()), lambda held, noise: made.report(held, known, noise), data, made.epsilon)


def _report_trial(rng: Rng) -> Trial:
    """Of one user or two, of whom the first holds any value."""
    values = int(rng.integers(2, 5))
    kind = int(rng.integers(4))

    def draw() -> Report:
        if kind == 1:
            return Hashed(values, float(rng.uniform(0.05, 1.5)))
        epsilon = at_the_edge(rng, 36.0)
        if kind == 2:
            return Projective(values, epsilon, Geometry(*((2, 3), (3, 3), (4, 2))[int(rng.integers(3))]))
        return Sign(values, epsilon) if kind else Subset(values, epsilon, int(rng.integers(1, values)))

    made: Report = settled(draw)
    other = rng.integers(0, values, int(rng.integers(0, 2)))
    data = tuple(np.array([value, *other]) for value in range(values))
    public = int(rng.integers(0, 1000))
    return Trial(
        (made, other.tolist()), lambda held, noise: made.collect(held, stream(public, "public"), noise), data, made.epsilon
    )
