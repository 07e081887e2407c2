"""All methods asked one question, and the same question asked the other way round.

**Computes** for each method its predicted error, or why it does not serve and the nearest setting at which it would. No
formula is here: `local_*`, `curated` and `hot` call those of the papers' packages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from typing import Any

from evolvingdp.core.checks import ParameterError
from evolvingdp.planning.answer import Answer, CannotServeError, Expected, Method, OnTheEdgeError, Prediction, Refusal
from evolvingdp.planning.question import TRUST, Question, in_options
from evolvingdp.planning.reports import UNIT
from evolvingdp.planning.shuffled import mixed

ROOMS = {  # that have methods for a statistic; only these are imported
    "mean": ("local_means", "curated"),
    "counts": ("local_means", "curated"),
    "frequencies": ("local_lists", "curated"),
    "words": ("local_search", "hot"),
    "hot": ("local_lists", "hot"),
}
_COUNTED = {
    "report": "every reading counts",
    "period": "one reading of a user and period counts, at random",
    "user": "one reading of a user counts in each answer, at random",
}
_SEARCHED = ("readings", "users", "epsilon")  # where a setting that works is looked for, in this order
_USELESS = 0.29  # the standard error of a share that is guessed


def plan(question: Question) -> Answer:
    """Predictions, best first, and refusals of all methods for this statistic."""
    predictions, refusals = [], []
    for method in asked(question):
        found = _ask(method, question)
        if isinstance(found, Prediction):
            predictions.append(found)
        else:
            refusals.append(found)
    predictions.sort(key=lambda one: one.rank)
    return Answer(question, predictions, refusals, sentence(question, predictions, refusals))


def asked(question: Question, rough: bool = False) -> list[Method]:
    """All methods for this statistic, whether they serve or not; `rough`: to be asked many times."""
    rooms = [import_module(f"evolvingdp.planning.{room}") for room in ROOMS[question.statistic]]
    methods = [method for room in rooms for method in room.METHODS if question.statistic in method.statistics]
    alone = [method for method in methods if method.trust != "shuffler"]
    return alone + [mixed(method, rough) for method in methods if method.mixed]


def settled(method: Method, question: Question) -> Any:
    """The library's settings; raises CannotServeError with what would work."""
    if TRUST.index(method.trust) > TRUST.index(question.trust):
        raise CannotServeError(_TRUSTED[method.trust], f"--trust {method.trust}")
    if (method.trust, question.trust) == ("shuffler", "curator"):
        raise CannotServeError("reports are mixed for those who trust no curator", "--trust shuffler")
    if question.target not in method.targets:
        raise CannotServeError(
            f"it answers for {' and '.join(_TARGETS[one] for one in method.targets)}", f"--target {method.targets[0]}"
        )
    return method.settle(question)


_TRUSTED = {
    "shuffler": "somebody has to be trusted to mix reports and drop names",
    "curator": "somebody has to be trusted with data before noise is added",
}
_TARGETS = {"period": "single periods", "window": "windows", "cumulative": "all periods so far"}


def expected(method: Method, question: Question, streams: int = 0) -> Expected:
    """The error in shares; `streams`: how many are simulated where there is no formula, 0 for as many as there is time."""
    settings = settled(method, question)
    return method.expect(question, settings, streams) if method.simulated else method.expect(question, settings)


def _ask(method: Method, question: Question) -> Prediction | Refusal:
    try:
        settings = settled(method, question)
        found = method.expect(question, settings)
    except CannotServeError as reason:
        nearest = reason.nearest or _nearest(method, question)
        return Refusal(method.name, str(reason), nearest, isinstance(reason, OnTheEdgeError))
    except ValueError as error:
        return Refusal(method.name, in_options(str(error)), _nearest(method, question))
    size, note = found.standard_error, found.note
    if size is not None and size > _USELESS:
        note = "no better than a guess"
    told = {text: _filled(getattr(method, text), question) for text in ("guarantee", "assumes", "sends", "server", "cannot")}
    return Prediction(
        method=method.name,
        standard_error=None if size is None else size * question.scale,
        within_95=found.within_95 * question.scale,
        found_from=found.found,
        how="exact simulation" if method.simulated else "formula",
        settings=repr(settings),
        command=method.notebook(question),
        note=note,
        **told,
    )


def _filled(text: str, question: Question) -> str:
    whole, reports = question.unit == "user", question.reports
    return text.format(
        unit=UNIT[question.unit], epsilon=f"{question.epsilon:g}", delta=f"{question.failure:g}",
        for_ever=reports.told(question.epsilon), mixed_for_ever=reports.told(question.epsilon, question.failure),
        each="a period" if reports.a_period == 1 else f"a reading, {reports.a_period:,} a period",
        own_changes=question.own_changes, taking_part=question.taking_part, events=question.events,
        usual=f"{question.usual:.2g}",
        lot=UNIT["user" if whole else "report"], words="one" if whole else "one a period", counted=_COUNTED[question.unit],
    )  # fmt: skip


def _nearest(method: Method, question: Question) -> str:
    """The smallest value of one option at which the method serves, to two digits, where there is one."""
    for name in _SEARCHED:
        high = float(Question.__dataclass_fields__[name].metadata["high"])
        value = _least(partial(_serves, method, question, name), getattr(question, name), high)
        if value is not None:
            return f"--{name} {value:.12g}"
    return ""


def _serves(method: Method, question: Question, name: str, value: float) -> bool:
    try:
        settled(method, _set(question, name, value))
    except (CannotServeError, ValueError):
        return False
    return True


def _set(question: Question, name: str, value: float) -> Question:
    """`question` with another value of an option, and with what depends on it."""
    if name == "periods":
        periods = round(value)
        return replace(question, periods=periods, window=min(question.window, periods))
    changed: dict[str, Any] = {name: value if name == "epsilon" else round(value)}
    return replace(question, **changed)


def _least(works: Callable[[float], bool], low: float, high: float) -> float | None:
    """The least value from which it works, rounded up to two digits; None where `high` does not."""
    if not works(high):
        return None
    grid = [value for value in _two_digits(low, high) if value >= low]
    first, last = 0, len(grid) - 1
    while first < last:
        middle = (first + last) // 2
        first, last = (first, middle) if works(grid[middle]) else (middle + 1, last)
    return grid[first]


def _two_digits(low: float, high: float) -> Iterator[float]:
    """Numbers of two digits between, and both ends."""
    unit = 1e-5
    yield low
    while unit < high:
        yield from (value for digits in range(10, 100) if low < (value := round(digits * unit, 6)) < high)
        unit *= 10
    yield high


@dataclass(frozen=True)
class Reached:
    """Of one method: the least epsilon and users, and the most periods, with the error that was asked for, or None."""

    method: str
    epsilon: float | None
    users: int | None
    periods: int | None


def reach(question: Question, error: float) -> list[Reached]:
    """What each method needs for a standard error of at most `error`, all else as in `question`; of an alarm `error` is the
    share of the users from which an item is found.

    Each number is within 5 % of the least, or the most, and keeps to `error`. Where a method is on the edge of its range it
    does not reach `error`.
    """
    if not error > 0:
        raise ParameterError(f"error must be > 0, got {error!r}")
    found = []
    for method in asked(question, rough=True):
        excess = cache(partial(_excess, method, question, error))
        least = {name: _reached(partial(_at, excess, question, name), question, name) for name in _INVERTED}
        if any(least.values()):
            users, periods = least["users"], least["periods"]
            whole = None if users is None else _round_up(users), None if periods is None else int(periods)
            found.append(Reached(method.name, least["epsilon"], *whole))
    return sorted(found, key=lambda one: one.epsilon or math.inf)


def _round_up(users: float) -> int:
    """To three digits."""
    unit = 10.0 ** max(0, math.floor(math.log10(users)) - 2)
    return round(math.ceil(users / unit) * unit)


_INVERTED = {"epsilon": 1, "users": 1, "periods": -1}  # what helps: more of it, or less
_STREAMS = 6  # at most, of a simulation that is one of many
_POWER = {"epsilon": 1.0, "users": 0.5, "periods": 0.5}  # of it that errors grow or fall with, to guess where to look
_STEP, _FINE, _BEYOND = 4.0, 1.05, 3  # of the search, its end, and how many steps it goes on where a method does not serve


def _excess(method: Method, question: Question, error: float, name: str = "", value: float = 0.0) -> float:
    """log(its error / `error`) at this value of an option, or as asked; infinite where there is no number."""
    try:
        changed = _set(question, name, value) if name else question
        reached = expected(method, changed, streams=max(2, min(_STREAMS, 3000 // changed.periods)))
    except (CannotServeError, ValueError):
        return math.inf
    size = reached.found if reached.standard_error is None else reached.standard_error * changed.scale
    return math.inf if size is None else math.log(size / error) if size > 0 else -math.inf


def _at(excess: Callable[..., float], question: Question, name: str, value: float) -> float:
    """`excess` at a value of an option; the question's own is asked once for all options."""
    return excess() if value == getattr(question, name) else excess(name, value)


def _reached(excess: Callable[[float], float], question: Question, name: str) -> float | None:
    """The value of `name` at which the error becomes small enough, to 5 %: steps from the question's own, which errors that
    are powers would take at once, then interpolation of the logarithms."""
    about, helps = Question.__dataclass_fields__[name].metadata, _INVERTED[name]
    last, missing, least = float(getattr(question, name)), 0, _FINE
    off = excess(last)
    reached = off <= 0
    towards = -helps if reached else helps  # to worse values while it is reached, else to better ones
    while True:
        step = min(max(math.exp(min(1.1 * abs(off), 20) / _POWER[name]), least), _STEP**4) if math.isfinite(off) else _STEP
        following: float = min(max(last * step**towards, about["low"]), about["high"])
        following = following if name == "epsilon" else (math.ceil if towards > 0 else math.floor)(following)
        if following == last:
            return last if reached else None
        now = excess(following)
        missing += now == math.inf
        if reached != (now <= 0):
            break
        if missing > _BEYOND:
            return None
        last, off, least = following, now, least**2
    ends = [(last, off), (following, now)]
    (good, above), (bad, below) = ends if reached else ends[::-1]
    turns = 0
    while max(good, bad) > _FINE * min(good, bad) and (name == "epsilon" or abs(good - bad) > 1):
        turns += 1
        part = below / (below - above) if math.isfinite(below - above) and turns % 3 else 0.5  # from the bad end
        span = math.log(good / bad)
        part += math.copysign(0.4 * math.log(_FINE) / abs(span), 0.5 - part) if part != 0.5 else 0.0
        middle = bad * math.exp(min(max(part, 0.05), 0.95) * span)
        middle = middle if name == "epsilon" else float(round(middle))
        if middle in (good, bad):
            break
        now = excess(middle)
        if now <= 0:
            good, above = middle, now
        else:
            bad, below = middle, now
    return good


def sentence(question: Question, predictions: list[Prediction], refusals: list[Refusal]) -> str:
    """The answer in words."""
    if not predictions:
        first = next((one for one in refusals if one.nearest), None)
        return "No method serves." + (f" Nearest: {first.method}, with {first.nearest}." if first else "")
    best = predictions[0]
    if best.found_from is not None and best.standard_error is None:
        told = f"finds what {best.found_from * question.users:,.0f} users hold ({best.found_from:.2%} of them)"
    elif best.found_from is not None:
        told = f"finds words of {best.found_from:.2%} of the users, with a standard error of {best.standard_error:.2g}"
    else:
        told = f"has a standard error of {best.standard_error:,.3g}; 95 % of its errors are within {best.within_95:,.3g}"
    second = predictions[1] if len(predictions) > 1 else None
    beside = f" Next: {second.method}, {second.rank / best.rank:.2g} times that." if second else ""
    return f"Best: {best.method}. It {told}.{beside}"
