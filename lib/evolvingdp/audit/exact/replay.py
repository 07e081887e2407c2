"""Record and replay: what a mechanism draws, and what it would have had to draw for the same release of a neighbour.

A mechanism runs on a `Recorder` instead of a generator, which notes law, scale and place of each draw. It runs again on a
neighbour's data with the outputs frozen: reports of randomizers are those of the first run, and noise that is added to sums
is moved so that all that is released is the same. What was drawn must then be the same in number, order and law, so that
nothing but the noise depends on the data; and the exact loss of all draws together is the sum of |move| / scale for Laplace
noise, of (move / deviation)^2 for normal noise, for reports the log ratios of the laws that their randomizers state (of
hash values: as if they always differed). Nothing is sampled: the moves are solved for.

How a release depends on the noise is found by moving each draw a little. Where more draws than releases are made, the moves
are those of least loss. Adaptive mechanisms are solved release by release: once the earlier ones are the same, later ones
are computed alike. Whoever has seen a release may choose what comes next, so that normal noise which was shown before the
data differ must not be what hides them: given what was shown it has another law. (Of Laplace noise, |move| / scale bounds
the loss whatever was shown.)

**Source.** Cebere, Erb, Desfontaines, Bellet and Fitzsimons (2026), who replay with identical outputs of primitives and
compare their inputs. Here the noise of the generator itself is solved for: a mechanism need not say what it adds noise to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from evolvingdp.audit.exact.draws import numbers_of, replaced
from evolvingdp.audit.exact.laws import composed_epsilon, gaussian_epsilon, smallest_epsilon, worst_loss
from evolvingdp.continual_mean import private_median
from evolvingdp.core import accounting, noise
from evolvingdp.core.noise import DiscreteGaussian, DiscreteLaplace
from evolvingdp.core.olh import OLH
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.reports import Projective, Subset

Array = NDArray[np.float64]
Run = Callable[[Any, Any], Any]
Make = Callable[[], np.random.Generator]
Moves = dict[tuple[tuple[int, ...], int], float]
LAPLACE, NORMAL, CONCENTRATED = "laplace", "normal", "discrete normal"
_BLOCK = 4  # draws that a tape takes at first: with the library's thousand, all those that nobody uses would be moved, too
_FAR = 2.0**16  # of whole numbers, as what is released may be rounded


class ChangedError(AssertionError):
    """A replay draws, or releases, something else than the recorded run."""


@dataclass(frozen=True)
class Draw:
    """One draw of noise that is added to something, by generator and place in it."""

    generator: tuple[int, ...]
    place: int
    law: str
    scale: float
    whole: bool


@dataclass
class Tape:
    """What is shared by a recorder and the generators that it has spawned; and what was released."""

    moved: Moves = field(default_factory=dict)
    frozen: list[tuple[Any, Any, Any]] | None = None  # reports of the recorded run
    draws: list[Draw] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)  # draws that are not added to anything, with what was asked for
    reports: list[tuple[Any, Any, Any]] = field(default_factory=list)  # name and randomizer, its input, its output
    randomizers: list[tuple[str, float | None]] = field(default_factory=list)  # of each report, with its epsilon
    losses: list[float] = field(default_factory=list)  # of the frozen reports
    numbers: list[Any] = field(default_factory=list)
    rest: list[Any] = field(default_factory=list)

    @property
    def asked(self) -> list[Any]:
        """All draws as they have to be in a replay."""
        return [[(one.generator, one.place, one.law, one.scale) for one in self.draws], self.others, self.randomizers]

    def must_be_as(self, other: Tape) -> None:
        if self.rest != other.rest:
            raise ChangedError("flags, types and shapes of a release must not depend on the data")
        if self.asked != other.asked:
            raise ChangedError("draws must be the same in number, order and law")


class Recorder:
    """Stands for a generator: notes each draw, and moves what is added to something."""

    def __init__(self, rng: np.random.Generator, tape: Tape, name: tuple[int, ...] = ()) -> None:
        self.rng, self.tape, self._name, self._next, self._children = rng, tape, name, 0, 0

    def spawn(self, count: int) -> list[Recorder]:
        first, self._children = self._children, self._children + count
        return [Recorder(child, self.tape, (*self._name, first + i)) for i, child in enumerate(self.rng.spawn(count))]

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self.added(LAPLACE, scale, self.rng.laplace(loc, scale, size))

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self.added(NORMAL, scale, self.rng.normal(loc, scale, size))

    def added(self, law: str, scale: Any, drawn: Any, whole: bool = False) -> Any:
        """`drawn`, which is noise of this law, moved."""
        shown = np.array(drawn, dtype=np.int64 if whole else float)
        flat, scales = shown.reshape(-1), np.broadcast_to(np.asarray(scale, dtype=float), shown.shape).reshape(-1)
        for place, one in enumerate(scales.tolist()):
            draw = Draw(self._name, self._next + place, law, one, whole)
            self.tape.draws.append(draw)
            if by := self.tape.moved.get((self._name, draw.place)):
                flat[place] += round(by) if whole else by
        self._next += len(flat)
        return shown if np.ndim(drawn) else shown.item()

    def __getattr__(self, name: str) -> Any:
        """Any other draw: noted with what is asked for, which must not depend on data."""
        method = getattr(self.rng, name)

        def drawn(*args: Any, **kwargs: Any) -> Any:
            self.tape.others.append((self._name, name, *map(_shown, args), *((key, _shown(kwargs[key])) for key in kwargs)))
            return method(*args, **kwargs)

        return drawn


def _shown(value: Any) -> Any:
    return np.asarray(value).tolist() if isinstance(value, np.ndarray) else value


RANDOMIZERS: list[tuple[Any, str]] = [
    (SignFlip, "randomize"),
    (SignFlip, "draw_reports"),
    (OLH, "report"),
    (Subset, "report"),
    (Projective, "report"),
    (private_median, "draw"),
]  # what a report is made by


def _report_loss(name: str, randomizer: Any, one: Any, other: Any) -> float:
    """Of two inputs: by the law that is stated of each report whose input differs, or of a median."""
    if randomizer is private_median:
        laws = [np.log(private_median.probabilities(*given[:3])) for given in (one, other)]
        return float(np.abs(laws[0] - laws[1]).max())
    inputs = zip(np.ravel(one[0]).tolist(), np.ravel(other[0]).tolist(), strict=True)
    pairs: list[tuple[Any, Any]] = [pair for pair in inputs if pair[0] != pair[1]]
    if isinstance(randomizer, OLH):  # of two hash values: where both inputs have the same, less is lost
        pairs = [(0, 1)] * len(pairs)
    law = partial(_yes, randomizer) if name == "draw_reports" else randomizer.probabilities
    return math.fsum(worst_loss(map(law, pair)) for pair in pairs)


def _yes(randomizer: SignFlip, share: float) -> dict[bool, float]:
    yes = min(max(float(randomizer.report_one(share)), 0.0), 1.0)
    return {True: yes, False: min(max(float(randomizer.report_one(1 - share)), 0.0), 1.0)}


@contextmanager
def instrumented() -> Iterator[None]:
    """Randomizers and discrete noise tell a `Recorder` what they do; other generators find them as they are."""
    laws = ((DiscreteLaplace, LAPLACE), (DiscreteGaussian, CONCENTRATED))
    with replaced(
        (noise, "_SHORTEST", _BLOCK),
        *((owner, name, _reporting(owner, name, vars(owner)[name])) for owner, name in RANDOMIZERS),
        *((law, "draw", _discrete(law.draw, kind)) for law, kind in laws),
    ):
        yield


def _reporting(owner: Any, name: str, made: Any) -> Any:
    def report(*args: Any) -> Any:
        recorders = [arg for arg in args if isinstance(arg, Recorder)]
        if not recorders:
            return made(*args)
        tape, real = recorders[-1].tape, [arg.rng if isinstance(arg, Recorder) else arg for arg in args]
        randomizer, given = (args[0], args[1:]) if isinstance(owner, type) else (owner, args)
        told, key = made(*real), (f"{owner.__name__}.{name}", randomizer)
        if tape.frozen is not None:
            if len(tape.reports) >= len(tape.frozen) or (recorded := tape.frozen[len(tape.reports)])[0] != key:
                raise ChangedError(f"{key[0]} must be asked as often as in the recorded run, in the same order")
            if [np.shape(one) for one in recorded[1]] != [np.shape(one) for one in given]:
                raise ChangedError(f"{key[0]} must be asked by as many as in the recorded run")
            tape.losses.append(_report_loss(name, randomizer, recorded[1], given))
            told = recorded[2]
        tape.reports.append((key, given, told))
        tape.randomizers.append((key[0], getattr(randomizer, "epsilon", None)))
        return told

    return report


def _discrete(made: Any, kind: str) -> Any:
    def draw(self: Any, size: int, rng: Any) -> Any:
        if not isinstance(rng, Recorder):
            return made(self, size, rng)
        return rng.added(kind, effective_scale(self), made(self, size, rng.rng), whole=True)

    return draw


def effective_scale(law: DiscreteLaplace | DiscreteGaussian) -> float:
    """As the sampler has it: its parameter, rounded up."""
    if isinstance(law, DiscreteLaplace):
        return 0.5 / math.asinh(math.sqrt(0.5 / law.variance))
    numerator, grid = law._steps
    return numerator / grid


@dataclass(frozen=True)
class Loss:
    """Of all draws together: `pure` of Laplace noise and of reports, by generator; `mu_squared` of normal noise, and
    twice the rho of the discrete kind."""

    pure: tuple[float, ...] = ()
    mu_squared: float = 0.0
    concentrated: float = 0.0

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at `delta`; of a pure loss the smaller one of the sum and of what its pieces compose to.

        Beside normal noise what is pure is added, which bounds both together.
        """
        pure, normal = math.fsum(self.pure), self.mu_squared + self.concentrated
        if normal == 0:
            held = [one for one in self.pure if one > 0]
            composed = composed_epsilon(max(held), len(held), delta) if delta and len(held) > 1 else math.inf
            return min(pure, composed)
        if not delta or not math.isfinite(pure + normal):
            return math.inf
        if self.concentrated == 0:
            return pure + gaussian_epsilon(self.mu_squared, delta)
        return pure + smallest_epsilon(lambda epsilon: accounting.delta_of_concentrated(normal / 2, epsilon) - delta)


def _apart(one: list[Any], other: list[Any]) -> Array:
    """Exact differences of Python's numbers, integers as integers; nan is nan."""
    return np.array([0.0 if a == b or (a != a and b != b) else float(a - b) for a, b in zip(one, other, strict=True)])


def _told(run: Run, held: Any, make: Make, moved: Moves, frozen: Any = None) -> Tape:
    tape = Tape(moved, frozen)
    tape.numbers, tape.rest = numbers_of(run(held, Recorder(make(), tape)))
    return tape


def check_hidden(run: Run, data: Any, neighbour: Any, make: Make, moves: Moves) -> Tape:
    """The recorded run; raises `ChangedError` unless `moves` make the neighbour's release the same, to a millionth of noise.

    Of sums in which the same numbers move these must be the same moves, however large the others are: released is then a
    function of exact sums with noise, and no rounding tells what is summed.
    """
    with instrumented():
        first, second = _told(run, data, make, {}), _told(run, neighbour, make, moves)
    least = min((draw.scale for draw in first.draws if draw.scale > 0), default=0.0)
    first.must_be_as(second)
    if np.abs(_apart(first.numbers, second.numbers)).max(initial=0.0) > 1e-6 * least:
        raise ChangedError(
            f"the moves that hide small numbers must hide large ones, got {first.numbers} and {second.numbers}"
        )
    return first


def replayed(run: Run, data: Any, neighbour: Any, make: Make) -> tuple[Loss, Moves]:
    """The exact loss of what `run(data, rng)` draws, against `neighbour`, and the moves of the noise that hide it; `make()`
    is the same generator each time.

    Raises `ChangedError` where anything but the noise depends on the data.
    """
    with instrumented():
        return _replayed(run, data, neighbour, make)


def _replayed(run: Run, data: Any, neighbour: Any, make: Make) -> tuple[Loss, Moves]:
    first = _told(run, data, make, {})
    coarse = max((abs(float(one)) for one in first.numbers if math.isfinite(one)), default=1e-300) * 2.0**-52
    used, effects = _effects(run, data, make, first, coarse)
    strongest = float(np.abs(effects).max(initial=0.0))
    tolerance = 8 * coarse * (1 + len(used)) + 1e-9 * strongest
    wanted, units = np.zeros(len(first.numbers)), np.zeros(len(used))
    for _ in range(len(wanted) + 3):
        moved = {
            (draw.generator, draw.place): unit * draw.scale for draw, unit in zip(used, units.tolist(), strict=True) if unit
        }
        tape = _told(run, neighbour, make, moved, first.reports)
        apart, shared = np.zeros(len(wanted)), min(len(wanted), len(tape.numbers))
        apart[:shared] = _apart(first.numbers[:shared], tape.numbers[:shared])
        if np.abs(apart).max(initial=0.0) <= tolerance:
            break
        wanted = wanted + apart
        free = _not_shown_before(effects, np.abs(wanted) > tolerance, used)
        units = np.zeros(len(used))
        movable = [draw for draw, may in zip(used, free.tolist(), strict=True) if may]
        units[free] = _least(effects[:, free], wanted, movable, tolerance / max(strongest, 1e-300))
        units = np.array([round(u * d.scale) / d.scale if d.whole else u for u, d in zip(units, used, strict=True)])
    else:
        raise ChangedError(f"no noise makes the neighbour's release the same: {first.numbers} and {tape.numbers}")
    tape.must_be_as(first)
    pure: dict[tuple[int, ...], float] = {(): math.fsum(tape.losses)}
    squares = {NORMAL: 0.0, CONCENTRATED: 0.0}
    for unit, draw in zip(units.tolist(), used, strict=True):
        cost = max(0.0, abs(unit) - 4 * coarse / draw.scale)
        if draw.law == LAPLACE:
            pure[draw.generator[:1]] = pure.get(draw.generator[:1], 0.0) + cost
        else:
            squares[draw.law] += cost**2
    return Loss(tuple(pure.values()), squares[NORMAL], squares[CONCENTRATED]), moved


def _effects(run: Run, data: Any, make: Make, first: Tape, coarse: float) -> tuple[list[Draw], Array]:
    """The draws that change what is released, and by how much a move by its scale does, a column each."""
    columns: list[Array] = []
    used: list[Draw] = []
    draws = [draw for draw in first.draws if draw.scale > 0]
    waiting = [draws] if draws else []
    while waiting:  # groups of draws of which none does anything are left out: noise is often drawn ahead
        group = waiting.pop()
        steps = {}
        for place, draw in enumerate(group):
            by = _FAR if draw.whole else max(draw.scale / 1024, 2.0**26 * coarse)
            steps[draw.generator, draw.place] = by * (1 + place * 0.6180339887 % 1)  # one must not undo another
        numbers = _told(run, data, make, steps, first.reports).numbers
        if len(numbers) != len(first.numbers):
            raise ChangedError("how much is released must not depend on the noise of sums")
        effect = _apart(numbers, first.numbers)
        effect[np.abs(effect) <= 1e-10 * max(steps.values())] = 0.0  # rounding, of Fourier transforms
        if effect.any() and len(group) > 1:
            waiting += [group[len(group) // 2 :], group[: len(group) // 2]]
        elif effect.any():
            used.append(group[0])
            columns.append(effect / next(iter(steps.values())) * group[0].scale)
    return used, np.array(columns).T if columns else np.zeros((len(first.numbers), 0))


def _not_shown_before(effects: Array, differs: NDArray[np.bool_], draws: list[Draw]) -> NDArray[np.bool_]:
    """Which draws may hide what `differs`: all but normal ones that an earlier release shows."""
    earlier = effects[: int(np.argmax(differs))] != 0.0
    normal = np.array([draw.law != LAPLACE for draw in draws], dtype=bool)
    return np.asarray(~(normal & earlier.any(axis=0)), dtype=bool)


def _least(effects: Array, wanted: Array, draws: list[Draw], tolerance: float) -> Array:
    """The moves, in scales, of least loss that add `wanted` to the releases."""
    if not len(draws):
        raise ChangedError("what is released must have noise where data differ")
    size_of = max(float(np.abs(effects).max()), 1e-300)
    effects, wanted = effects / size_of, wanted / size_of
    found, rank = _in_order(effects, wanted, tolerance)
    if rank == len(draws) or not any(draw.law == LAPLACE or draw.whole for draw in draws):
        return np.asarray(found)
    size, whole, target = len(draws), any(draw.whole for draw in draws), effects @ found
    scales, slack = np.array([draw.scale if draw.whole else 1.0 for draw in draws]), 1e-6 if whole else 1e-12
    solved = milp(  # of moves up and down, in draws that are whole numbers
        np.tile(1 / scales, 2),
        constraints=LinearConstraint(np.hstack([effects / scales, -effects / scales]), target - slack, target + slack),
        integrality=np.full(2 * size, int(whole)),
        bounds=Bounds(0, np.inf),
        options={"time_limit": 1.0},
    )
    moves = found if solved.x is None else (solved.x[:size] - solved.x[size:]) / scales
    rounded = np.rint(found * scales) / scales  # of squares the least, if it hides as much
    if any(draw.law != LAPLACE for draw in draws) and np.abs(effects @ rounded - target).max() <= slack:
        moves = min(moves, rounded, key=lambda one: float((one**2).sum()))
    return np.asarray(moves)


def _in_order(effects: Array, wanted: Array, tolerance: float) -> tuple[Array, int]:
    """Moves for the longest beginning of the releases for which there are any, and of what rank the effects are: later
    releases are solved when earlier ones are the same."""
    full = None
    for last in range(len(wanted), 0, -1):
        found, _, rank, _ = np.linalg.lstsq(effects[:last], wanted[:last], rcond=1e-11)
        full = int(rank) if full is None else full
        if np.abs(effects[:last] @ found - wanted[:last]).max() <= max(tolerance, 1e-6 * np.abs(wanted[:last]).max()):
            return np.asarray(found), full
    raise ChangedError("what is released must have noise of its own where data differ")
