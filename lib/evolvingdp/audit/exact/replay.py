"""Record and replay: what a mechanism draws, and what it would have had to draw for the same release of a neighbour.

A mechanism runs on a `Recorder` instead of a generator, which notes law, scale and place of each draw. It runs again on a
neighbour's data with the outputs frozen: reports of randomizers are those of the first run, and noise that is added to sums
is moved so that all that is released is the same. What was drawn must then be the same in number, order and law, so that
nothing but the noise depends on the data; and the exact loss of all draws together is the sum of |move| / scale for Laplace
noise, of (move / deviation)^2 for normal noise, and the randomizers' own losses for reports. Nothing is sampled: the moves
are solved for.

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
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from evolvingdp.audit.exact.laws import composed_epsilon, gaussian_epsilon, smallest_epsilon
from evolvingdp.continual_mean import private_median
from evolvingdp.core import accounting, noise
from evolvingdp.core.noise import DiscreteGaussian, DiscreteLaplace
from evolvingdp.core.olh import OLH
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.reports import Subset

Array = NDArray[np.float64]
LAPLACE, NORMAL, CONCENTRATED = "laplace", "normal", "discrete normal"
_BLOCK = 4  # draws that a tape takes at first: with the library's thousand, all those that nobody uses would be moved, too
_FAR = 2.0**30


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
    """What is shared by a recorder and the generators that it has spawned."""

    draws: list[Draw] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)  # draws that are not added to anything, with what was asked for
    reports: list[tuple[str, Any, Any]] = field(default_factory=list)  # randomizer, its input, its output
    randomizers: list[tuple[str, float | None]] = field(default_factory=list)  # of each report, with its epsilon
    frozen: list[tuple[str, Any, Any]] | None = None  # those of the recorded run
    moved: dict[tuple[tuple[int, ...], int], float] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)  # of the frozen reports

    @property
    def asked(self) -> list[Any]:
        """All that has to be the same in a replay."""
        return [[(one.generator, one.place, one.law, one.scale) for one in self.draws], self.others, self.randomizers]


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


def _flipped(randomizer: SignFlip, one: Any, other: Any) -> float:
    return float(np.count_nonzero(np.not_equal(one[0], other[0]))) * math.log(randomizer.keep / randomizer.flip)


def _shares(randomizer: SignFlip, one: Any, other: Any) -> float:
    chances = [[randomizer.report_one(np.asarray(share)), randomizer.report_one(1 - np.asarray(share))]
               for (share, *_) in (one, other)]  # fmt: skip
    return float(np.abs(np.log(chances[0]) - np.log(chances[1])).max(axis=0).sum())


def _hashed(randomizer: OLH, one: Any, other: Any) -> float:
    own, others = randomizer.keep, randomizer.probabilities(0)[1]
    return float(np.count_nonzero(np.not_equal(one[0], other[0]))) * math.log(own / others)


def _sets(randomizer: Subset, one: Any, other: Any) -> float:
    held, k, w = np.count_nonzero(np.not_equal(one[0], other[0])), randomizer.n_values, randomizer.size
    return float(held) * math.log(randomizer.own / randomizer.lie * (k - w) / w)


def _median(_: Any, one: Any, other: Any) -> float:
    laws = [np.log(private_median.probabilities(*given[:3])) for given in (one, other)]
    return float(np.abs(laws[0] - laws[1]).max())


RANDOMIZERS: list[tuple[Any, str, Callable[[Any, Any, Any], float]]] = [
    (SignFlip, "randomize", _flipped),
    (SignFlip, "draw_reports", _shares),
    (OLH, "report", _hashed),
    (Subset, "report", _sets),
    (private_median, "draw", _median),
]  # what a report is made by, and the largest log likelihood ratio of two inputs of it


@contextmanager
def instrumented() -> Iterator[None]:
    """Randomizers and discrete noise tell a `Recorder` what they do; other generators find them as they are."""
    kept: list[tuple[Any, str, Any]] = [(noise, "_SHORTEST", noise._SHORTEST)]
    noise._SHORTEST = _BLOCK
    for owner, name, loss in RANDOMIZERS:
        kept.append((owner, name, vars(owner)[name]))
        setattr(owner, name, _reporting(owner, name, vars(owner)[name], loss))
    for law, kind in ((DiscreteLaplace, LAPLACE), (DiscreteGaussian, CONCENTRATED)):
        kept.append((law, "draw", law.draw))
        setattr(law, "draw", _discrete(law.draw, kind))  # noqa: B010 (mypy allows no assignment)
    try:
        yield
    finally:
        for owner, name, value in reversed(kept):
            setattr(owner, name, value)


def _reporting(owner: Any, name: str, made: Any, loss: Callable[[Any, Any, Any], float]) -> Any:
    def report(*args: Any) -> Any:
        recorders = [arg for arg in args if isinstance(arg, Recorder)]
        if not recorders:
            return made(*args)
        tape, real = recorders[-1].tape, [arg.rng if isinstance(arg, Recorder) else arg for arg in args]
        randomizer, given = (args[0], args[1:]) if isinstance(owner, type) else (None, args)
        told, key = made(*real), f"{owner.__name__}.{name}"
        if tape.frozen is not None:
            if len(tape.reports) >= len(tape.frozen) or (recorded := tape.frozen[len(tape.reports)])[0] != key:
                raise ChangedError(f"{key} must be asked as often as in the recorded run, in the same order")
            if [np.shape(one) for one in recorded[1]] != [np.shape(one) for one in given]:
                raise ChangedError(f"{key} must be asked by as many as in the recorded run")
            tape.losses.append(loss(randomizer, recorded[1], given))
            told = recorded[2]
        tape.reports.append((key, given, told))
        tape.randomizers.append((key, getattr(randomizer, "epsilon", None)))
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

    def plus(self, draw: Draw, units: float) -> Loss:
        """And of a draw that is moved by so many scales."""
        if draw.law == LAPLACE:
            return replace(self, pure=(*self.pure, units))
        name = "mu_squared" if draw.law == NORMAL else "concentrated"
        return replace(self, **{name: getattr(self, name) + units**2})

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


def numbers_of(output: Any) -> tuple[list[Any], list[Any]]:
    """The numbers in an output, and all else that can be seen of it: types, shapes, flags, texts."""
    numbers: list[Any] = []
    rest: list[Any] = []

    def see(value: Any) -> None:
        kind = type(value)
        if kind in (bool, str, np.bool_) or value is None:
            rest.append((kind.__name__, value))
        elif isinstance(value, np.ndarray):
            rest.append((value.dtype.str, value.shape))
            for one in value.ravel().tolist():
                see(one)
        elif isinstance(value, int | float | np.number):
            rest.append(kind.__name__)
            numbers.append(value)
        elif isinstance(value, list | tuple):
            rest.append((kind.__name__, len(value)))
            for one in value:
                see(one)
        elif is_dataclass(value):
            rest.append(kind.__name__)
            for each in fields(value):
                see(getattr(value, each.name))
        else:
            raise TypeError(f"an output must be numbers, flags and texts, got {kind}")

    see(output)
    return numbers, rest


def _apart(one: list[Any], other: list[Any]) -> Array:
    """Exact differences of Python's numbers, integers as integers; nan is nan."""
    return np.array([0.0 if a == b or (a != a and b != b) else float(a - b) for a, b in zip(one, other, strict=True)])


def _size(numbers: list[Any]) -> float:
    return max((abs(float(one)) for one in numbers if math.isfinite(one)), default=0.0)


Run = Callable[[Any, Any], Any]
Make = Callable[[], np.random.Generator]
Moves = dict[tuple[tuple[int, ...], int], float]


def replayed(run: Run, data: Any, neighbour: Any, make: Make) -> tuple[Loss, Moves]:
    """The exact loss of what `run(data, rng)` draws, against `neighbour`, and the moves of the noise that hide it; `make()`
    is the same generator each time.

    Raises `ChangedError` where anything but the noise depends on the data.
    """
    with instrumented():
        return _replayed(run, data, neighbour, make)


def check_hidden(run: Run, data: Any, neighbour: Any, make: Make, moves: Moves) -> None:
    """Raise `ChangedError` unless `moves` make the release of the neighbour the same, to a millionth of the noise.

    Of sums in which the same numbers move these must be the same moves, however large the others are: released is then a
    function of exact sums with noise, and no rounding tells what is summed.
    """
    with instrumented():
        (first, seen, record), (second, also, tape) = _told(run, data, make, {}), _told(run, neighbour, make, moves)
    least = min((draw.scale for draw in record.draws if draw.scale > 0), default=0.0)
    if len(first) != len(second) or np.abs(_apart(first, second)).max(initial=0.0) > 1e-6 * least or seen != also:
        raise ChangedError(f"the moves that hide small numbers must hide large ones, got {first} and {second}")
    if record.asked != tape.asked:
        raise ChangedError("draws must be the same in number, order and law")


def moved_loss(run: Run, data: Any, neighbour: Any, make: Make, moves: Moves) -> Loss:
    """The loss where the noise is moved by these `moves`, which must hide the neighbour."""
    check_hidden(run, data, neighbour, make, moves)
    with instrumented():
        draws = {(draw.generator, draw.place): draw for draw in _told(run, data, make, {})[2].draws}
    found = Loss()
    for place, by in moves.items():
        found = found.plus(draws[place], abs(by) / draws[place].scale)
    return found


def _told(run: Run, held: Any, make: Make, moved: Moves, frozen: Any = None) -> tuple[list[Any], list[Any], Tape]:
    tape = Tape(frozen=frozen, moved=moved)
    numbers, rest = numbers_of(run(held, Recorder(make(), tape)))
    return numbers, rest, tape


def _replayed(run: Run, data: Any, neighbour: Any, make: Make) -> tuple[Loss, Moves]:
    def told(held: Any, moved: Moves, frozen: Any = None) -> tuple[list[Any], list[Any], Tape]:
        return _told(run, held, make, moved, frozen)

    first, seen, record = told(data, {})
    draws = [draw for draw in record.draws if draw.scale > 0]
    if not math.isfinite(_size(first)):
        raise ChangedError("a release must be finite")
    coarse = max(_size(first), 1e-300) * 2.0**-52
    columns, used = [], []
    waiting = [draws] if draws else []
    while waiting:  # groups of draws of which none does anything are left out: noise is often drawn ahead
        group = waiting.pop()
        steps = {}
        for draw in group:
            by = max(draw.scale / 1024, 2.0**26 * coarse)
            steps[draw.generator, draw.place] = _FAR if draw.whole else by  # far: what is released may be rounded
        numbers, _, _ = told(data, steps, record.reports)
        if len(numbers) != len(first):
            raise ChangedError("how much is released must not depend on the noise of sums")
        effect = _apart(numbers, first)
        effect[np.abs(effect) <= 1e-10 * max(steps.values())] = 0.0  # rounding, of Fourier transforms
        if not effect.any():
            continue
        if len(group) > 1:
            middle = len(group) // 2
            waiting += [group[middle:], group[:middle]]
        else:
            used.append(group[0])
            columns.append(effect / next(iter(steps.values())) * group[0].scale)
    effects = np.array(columns).T if columns else np.zeros((len(first), 0))

    wanted, units = np.zeros(len(first)), np.zeros(len(used))
    for _ in range(len(first) + 3):
        moved = {
            (draw.generator, draw.place): unit * draw.scale for draw, unit in zip(used, units.tolist(), strict=True) if unit
        }
        numbers, rest, tape = told(neighbour, moved, record.reports)
        if len(numbers) != len(first):
            wanted_more = np.zeros(len(first))
            shared = min(len(first), len(numbers))
            wanted_more[:shared] = _apart(first[:shared], numbers[:shared])
        else:
            wanted_more = _apart(first, numbers)
        tolerance = 8 * coarse * (1 + len(used)) + 1e-9 * float(np.abs(effects).max(initial=0.0))
        if np.abs(wanted_more).max(initial=0.0) <= tolerance:
            break
        wanted = wanted + wanted_more
        free = _not_shown_before(effects, np.abs(wanted) > tolerance, used)
        units = np.zeros(len(used))
        movable = [draw for draw, may in zip(used, free.tolist(), strict=True) if may]
        units[free] = _least(
            effects[:, free], wanted, movable, tolerance / max(float(np.abs(effects).max(initial=0.0)), 1e-300)
        )
        units = np.array([round(u * d.scale) / d.scale if d.whole else u for u, d in zip(units, used, strict=True)])
    else:
        raise ChangedError(f"no noise makes the neighbour's release the same: {first} and {numbers}")
    if rest != seen:
        raise ChangedError("flags, types and shapes of a release must not depend on the data")
    if tape.asked != record.asked:
        raise ChangedError("draws must be the same in number, order and law")
    pure: dict[tuple[int, ...], float] = {(): math.fsum(tape.losses)}
    squares = {NORMAL: 0.0, CONCENTRATED: 0.0}
    spare = 4 * coarse
    for unit, draw in zip(units.tolist(), used, strict=True):
        cost = max(0.0, abs(unit) - spare / draw.scale)
        if draw.law == LAPLACE:
            pure[draw.generator[:1]] = pure.get(draw.generator[:1], 0.0) + cost
        else:
            squares[draw.law] += cost**2
    return Loss(tuple(pure.values()), squares[NORMAL], squares[CONCENTRATED]), moved


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
    found, _, rank, _ = np.linalg.lstsq(effects, wanted, rcond=1e-11)
    if np.abs(effects @ found - wanted).max() > max(tolerance, 1e-6 * np.abs(wanted).max()):
        # some release moves that no noise can hide yet: later ones are solved when earlier ones are the same
        found = _in_order(effects, wanted, tolerance)
    if rank == len(draws) or not any(draw.law == LAPLACE or draw.whole for draw in draws):
        return np.asarray(found)
    size, whole, target = len(draws), any(draw.whole for draw in draws), effects @ found
    scales, slack = np.array([draw.scale if draw.whole else 1.0 for draw in draws]), 1e-6 if whole else 1e-12
    parts = np.hstack([effects / scales, -effects / scales])
    squares, best, worth = any(draw.law != LAPLACE for draw in draws), found, math.inf
    rounded = np.rint(found * scales) / scales if whole else found
    if squares and np.abs(effects @ rounded - target).max() <= slack:
        best, worth = rounded, float((rounded**2).sum())
    weights = np.ones(size)
    for _ in range(6 if squares else 1):  # where squares count, those of the last moves weigh what they would add
        solved = milp(  # of moves up and down, in draws that are whole numbers
            np.tile(weights / scales, 2),
            constraints=LinearConstraint(parts, target - slack, target + slack),
            integrality=np.full(2 * size, int(whole)),
            bounds=Bounds(0, np.inf),
            options={"time_limit": 1.0},
        )
        if solved.x is None:
            break
        moves = (solved.x[:size] - solved.x[size:]) / scales
        cost = float((moves**2).sum()) if squares else 0.0
        if cost < worth:
            best, worth = moves, cost
        weights = np.abs(moves) + 0.1 * np.abs(moves).max()
    return np.asarray(best)


def _in_order(effects: Array, wanted: Array, tolerance: float) -> Array:
    """For the longest beginning of the releases for which there are moves."""
    for last in range(len(wanted), 0, -1):
        found, *_ = np.linalg.lstsq(effects[:last], wanted[:last], rcond=1e-11)
        if np.abs(effects[:last] @ found - wanted[:last]).max() <= max(tolerance, 1e-6 * np.abs(wanted[:last]).max()):
            return np.asarray(found)
    raise ChangedError("what is released must have noise of its own where data differ")
