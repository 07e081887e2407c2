"""What the registry says of a mechanism: how it is made with random small settings, what it promises, and how it is called.

Generators of tests read it (`tests/privacy`): they try settings, data and calls that nobody has written down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evolvingdp.core.seeds import stream

NOISE, REPORTS, FINITE = "noise is added to sums", "reports of randomizers", "finitely many outputs"


@dataclass(frozen=True)
class Trial:
    """A mechanism with settings and data: `run(data, rng)` is all that everybody sees, and any two of `data` are neighbours.

    All of it together is (`epsilon`, `delta`)-private. `large`: neighbours that differ by the same as the first two of
    `data`, beside numbers that are large.
    """

    settings: Any  # as they are printed where it fails
    run: Callable[[Any, Any], Any]
    data: tuple[Any, ...]
    epsilon: float
    delta: float = 0.0
    large: tuple[Any, ...] = ()


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


@dataclass(frozen=True)
class Case:
    """Settings, what they promise, and how many steps are tried."""

    made: Any
    epsilon: float
    delta: float
    steps: int


@dataclass(frozen=True)
class Walk:
    """A mechanism that goes step by step, and what everybody may hold: from this come its trials, its door, the step that is
    one too many, and the steps that are tried with settings of others.

    `data(made, rng, steps)` is what neighbours hold, each (steps, ...), of which a step takes a row.
    """

    make: Callable[[np.random.Generator], Any]  # a `Case`; or settings that state their horizon and epsilon
    start: Callable[[Any, Any, Any], Any]  # settings, generator, the first row
    step: Callable[[Any, Any, Any, Any], Any]  # settings, state, what everybody holds, generator -> state and release
    data: Callable[[Any, np.random.Generator, int], Any]
    before: int = 0  # steps before that of the door, the same each time

    def case(self, rng: np.random.Generator) -> Case:
        made: Any = settled(lambda: self.make(rng))
        return made if isinstance(made, Case) else Case(made, float(made.epsilon), 0.0, 2 * made.horizon)

    def trial(self, rng: np.random.Generator) -> Trial:
        """Until a step is refused."""
        case = self.case(rng)
        pair = tuple(np.asarray(one) for one in self.data(case.made, rng, case.steps))

        def run(held: Any, noise: Any) -> Any:
            state = self.start(case.made, noise, held[0])
            return until_refused(lambda state, row: self.step(case.made, state, row, noise), state, held)

        return Trial((case.made, *(one.tolist() for one in pair)), run, pair, case.epsilon, case.delta)

    def doors(self, rng: np.random.Generator) -> list[Door]:
        case = self.case(rng)
        while case.steps < 4 * self.before:
            case = self.case(rng)

        def later(noise: Any, held: Any) -> Any:
            first = self.data(case.made, stream(0, "held"), 1)[0][0]
            state = self._gone(case.made, first, [first] * self.before, stream(0, "door"))
            return self.step(case.made, state, held, noise)

        return [Door("step", later, lambda drawn: {"held": np.asarray(self.data(case.made, drawn, 1)[0][0])})]

    def _gone(self, made: Any, first: Any, rows: Any, rng: Any) -> Any:
        """The state after these rows."""
        state = self.start(made, rng, first)
        for row in rows:
            state, _ = self.step(made, state, row, rng)
        return state

    def beyond(self, made: Any, rows: Any, rng: Any) -> list[Callable[[], Any]]:
        """The last of these rows, which is not paid for."""
        state = self._gone(made, rows[0], rows[:-1], rng)
        return [lambda: self.step(made, state, rows[-1], rng)]

    def more(self, rng: Any) -> Any:
        """A step after the horizon."""
        made = self.case(stream(0, "more")).made
        return self.beyond(made, self.data(made, stream(0, "held"), made.horizon + 1)[0], rng)

    @property
    def steps(self) -> Steps:
        """Users who change in every step; a state counts them, and has the settings that say what users hold."""

        def row(made: Any, number: int) -> Any:
            return self.data(made, stream(0, "held"), number + 1)[0][number]

        def start(made: Any, rng: Any) -> Any:
            return 0, made, self.start(made, rng, row(made, 0))

        def step(made: Any, counted: Any, rng: Any) -> Any:
            number, own, state = counted
            state, release = self.step(made, state, row(own, number), rng)
            return (number + 1, own, state), release

        return Steps(lambda rng: self.case(rng).made, start, step)


def public(made: Any) -> np.random.Generator:
    """Public randomness, the same in every step and world, and another for other settings."""
    return stream(0, "public", repr(made))


def until_refused(step: Any, state: Any, inputs: Any, most: int | None = None) -> list[Any]:
    """What is told of the first inputs, at most `most`; where a step is refused, it is told that it was."""
    told: list[Any] = []
    for held in inputs[:most]:
        try:
            state, release = step(state, held)
        except ValueError:
            told.append("refused")
            break
        told.append(release)
    return told


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
