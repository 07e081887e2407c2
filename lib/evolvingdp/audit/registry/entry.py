"""What the registry says of a mechanism: how it is made with random small settings, what it promises, and how it is called.

Generators of tests read it (`tests/privacy`): they try settings, data and calls that nobody has written down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

NOISE, REPORTS, FINITE = "noise is added to sums", "reports of randomizers", "finitely many outputs"


@dataclass(frozen=True)
class Trial:
    """A mechanism with settings and data: `run(data, rng)` is all that everybody sees, and any two of `data` are neighbours.

    All of it together is (`epsilon`, `delta`)-private. `large`: neighbours that differ by the same as the first two of
    `data`, beside numbers that are large. `moves`: of the noise, by generator and place, that hide the second of `data`;
    where nothing is said they are solved for, which takes as many releases whatever the noise is.
    """

    settings: Any  # as they are printed where it fails
    run: Callable[[Any, Any], Any]
    data: tuple[Any, ...]
    epsilon: float
    delta: float = 0.0
    large: tuple[Any, ...] = ()
    moves: Mapping[tuple[tuple[int, ...], int], float] = field(default_factory=dict)


@dataclass(frozen=True)
class Door:
    """A function as it is called: `call(rng, **arrays)` with arrays that `draw` has drawn; `public` ones are no user's data.

    `loose`: arrays of which another length, or one dimension fewer, means something; the reason is said where it is listed.
    """

    name: str
    call: Callable[..., Any]
    draw: Callable[[np.random.Generator], dict[str, Any]]
    public: tuple[str, ...] = ()
    loose: Mapping[str, str] = field(default_factory=dict)
    deep: Mapping[str, str] = field(default_factory=dict)  # arrays of which one dimension more means something


@dataclass(frozen=True)
class Steps:
    """A mechanism that goes step by step: `start(settings, rng)` is a state, `step(settings, state, rng)` one more step."""

    make: Callable[[np.random.Generator], Any]  # settings
    start: Callable[[Any, Any], Any]
    step: Callable[[Any, Any, Any], Any]  # returns the state, and what is released
    paid: Callable[[Any], int]  # how many steps the settings pay for, where each of them counts


@dataclass(frozen=True)
class Mechanism:
    """One mechanism. `covers`: what it is about, and what of it takes a generator.

    `made_by`: its settings' classes and their factories. Each integer argument of these is `counted`, by calls that ask for
    one more than is paid for, or `public`: declared to be no number that the price counts, and why.
    """

    id: str
    chapter: str
    covers: tuple[Any, ...]
    unit: str
    neighbours: str
    how: str
    trial: Callable[[np.random.Generator], Trial]
    doors: Callable[[np.random.Generator], list[Door]] = lambda rng: []
    made_by: tuple[Any, ...] = ()
    counted: Mapping[str, Callable[[Any], Callable[[], Any]]] = field(default_factory=dict)  # prepared by a first call
    public: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[Steps, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)  # settings that change no draw and no end, and why
    cost: int = 4  # how many times as long as a protocol of reports a setting takes: so many times fewer are tried


class Known(np.random.Generator):
    """Public randomness of which every hash function is that of `seed`."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.PCG64(0))
        self.seed = seed

    def integers(self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False) -> Any:
        return np.full(size, self.seed, dtype=dtype)


def at_the_edge(rng: np.random.Generator, most: float) -> float:
    """An epsilon of a report; every third time one at which a double hardly holds the rarer answers."""
    return float(rng.uniform(0.7 * most, most) if rng.random() < 0.3 else np.exp(rng.uniform(-3.0, 2.2)))


def settled(make: Callable[[], Any], tries: int = 200) -> Any:
    """What `make` makes of the first settings that are not refused."""
    for _ in range(tries):
        try:
            return make()
        except ValueError:
            continue
    raise LookupError(f"{make} must accept one of {tries} settings that it draws")
