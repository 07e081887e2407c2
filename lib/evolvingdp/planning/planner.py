"""All methods asked one question, and the same question asked the other way round.

**Computes** for each method its predicted error, or why it does not serve and the nearest setting at which it would. No
formula is here: `local`, `local_search`, `curated` and `hot` call those of the papers' packages.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from typing import Any

from scipy.optimize import bisect, brentq

from evolvingdp.core.checks import ParameterError
from evolvingdp.planning import texts
from evolvingdp.planning.answer import Answer, CannotServeError, Expected, Method, Prediction, Refusal
from evolvingdp.planning.question import TRUST, Question, in_options
from evolvingdp.planning.shown import number
from evolvingdp.planning.shuffled import mixed, mixed_text

ROOMS = {  # that have methods for a statistic; only these are imported
    "mean": ("local", "curated"),
    "counts": ("local", "curated"),
    "frequencies": ("local", "curated"),
    "words": ("local_search", "hot"),
    "hot": ("local", "hot"),
}
_SEARCHED = ("readings", "users", "epsilon")  # where a setting that works is looked for, in this order
_USELESS = 0.29  # the standard error of a share that is guessed


def plan(question: Question) -> Answer:
    """Predictions, best first, and refusals of all methods for this statistic."""
    found = [_ask(method, question) for method in asked(question)]
    predictions = sorted((one for one in found if isinstance(one, Prediction)), key=lambda one: one.rank)
    refusals = [one for one in found if isinstance(one, Refusal)]
    return Answer(question, predictions, refusals, sentence(question, predictions, refusals))


def asked(question: Question) -> list[Method]:
    """All methods for this statistic, whether they serve or not."""
    rooms = [import_module(f"evolvingdp.planning.{room}") for room in ROOMS[question.statistic]]
    methods = [method for room in rooms for method in room.METHODS if question.statistic in method.statistics]
    alone = [method for method in methods if method.trust != "shuffler"]
    return alone + [mixed(method) for method in methods if method.mixed]


def settled(method: Method, question: Question) -> Any:
    """The library's settings; raises CannotServeError with what would work."""
    _refused(method, question)
    return method.settle(question)


def _refused(method: Method, question: Question) -> None:
    """Raise CannotServeError where no number of the question would help."""
    if TRUST.index(method.trust) > TRUST.index(question.trust):
        raise CannotServeError(_TRUSTED[method.trust], f"--trust {method.trust}")
    if (method.trust, question.trust) == ("shuffler", "curator"):
        raise CannotServeError("reports are mixed for those who trust no curator", "--trust shuffler")
    if question.target not in method.targets:
        raise CannotServeError(
            f"it answers for {' and '.join(_TARGETS[one] for one in method.targets)}", f"--target {method.targets[0]}"
        )


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
        return Refusal(method.name, str(reason), reason.nearest or _nearest(method, question))
    except ValueError as error:
        return Refusal(method.name, in_options(str(error)), _nearest(method, question))
    size, note, told = found.standard_error, found.note, mixed_text(method)
    if size is not None and size > _USELESS:
        note = "no better than a guess"
    words = {name: texts.filled(text, question) for name, text in told._asdict().items() if name != "notebook"}
    return Prediction(
        method=method.name,
        standard_error=None if size is None else size * question.scale,
        within_95=found.within_95 * question.scale,
        found_from=found.found,
        own_error=found.own * (size or 0.0) * question.scale,
        how="exact simulation" if method.simulated else "formula",
        settings=repr(settings),
        command=texts.command(told.notebook, method.asked(question)) if told.notebook in texts.NOTEBOOKS else told.notebook,
        note=note,
        **words,
    )


def _nearest(method: Method, question: Question) -> str:
    """The smallest value of one option at which the method serves, to two digits, where there is one."""

    def refuses(name: str, value: float) -> float:
        try:
            settled(method, _set(question, name, value))
        except (CannotServeError, ValueError):
            return 1.0
        return -1.0

    for name in _SEARCHED:
        about, value = Question.__dataclass_fields__[name].metadata, float(getattr(question, name))
        off = partial(refuses, name)
        if value < about["high"] and off(about["high"]) < 0:
            return f"--{name} {_turn(off, value, about['high'], 0.004, partial(_rounded, digits=2, up=True)):.12g}"
    return ""


def _set(question: Question, name: str, value: float) -> Question:
    """`question` with another value of an option."""
    changed: dict[str, Any] = {name: value if name == "epsilon" else round(value)}
    return replace(question, **changed)


def _rounded(value: float, digits: int, up: bool) -> float:
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    return float(f"{(math.ceil if up else math.floor)(value / unit + (-1e-9 if up else 1e-9)) * unit:.12g}")


def _turn(
    off: Callable[[float], float], bad: float, good: float, precise: float, rounded: Callable[[float], float]
) -> float | None:
    """A value between `bad`, where off > 0, and `good`, where off <= 0, that is not much better than it has to be: where
    the sign turns, to `precise` in logarithms, `rounded`, and then moved towards `good` until it holds."""
    find = bisect if abs(off(good)) == abs(off(bad)) else brentq
    ends = {math.log(bad): bad, math.log(good): good}  # which are known
    turn = find(lambda where: max(-9.0, min(9.0, off(ends.get(where) or math.exp(where)))), *ends, xtol=precise)
    step = math.copysign(precise, good - bad)
    turn += step / 2
    for _ in range(8):
        value = rounded(math.exp(turn))
        if not min(bad, good) <= value <= max(bad, good):
            break
        if off(value) <= 0:
            return value
        turn, step = turn + step, 2 * step
    return good if off(good) <= 0 else None


@dataclass(frozen=True)
class Reached:
    """Of one method: the least epsilon and users, and the most periods, with the error that was asked for, or None. `late`:
    some of them were not found in time."""

    method: str
    epsilon: float | None
    users: int | None
    periods: int | None
    late: bool = False


_INVERTED = {"epsilon": True, "users": True, "periods": False}  # whether more of it helps
_SECONDS = 1.5  # of the processor, for one question
_POWER = {"epsilon": 1.0, "users": 0.5, "periods": 0.5}  # of it that errors grow or fall with, to guess where to look
_STEP, _LEAST, _BEYOND = 4.0, 1.1, 3  # of the search for both sides, and how many go on where a method does not serve


def reach(question: Question, error: float, seconds: float = _SECONDS) -> list[Reached]:
    """What each method needs for a standard error of at most `error`, all else as in `question`; of an alarm `error` is the
    share of the users from which an item is found.

    Each number is near the least, or the most, and keeps to `error`: `plan`, asked with this number, predicts no more. What
    is not found in so many `seconds` of the processor is left out.
    """
    if not error > 0:
        raise ParameterError(f"error must be > 0, got {error!r}")
    found, end = [], time.process_time() + seconds
    for method in sorted(asked(question), key=lambda one: one.simulated):
        try:
            _refused(method, question)
        except CannotServeError:
            continue
        excess = cache(partial(_excess, method, question, error, end))
        least: dict[str, Any] = dict.fromkeys(_INVERTED)
        late = False
        for name in _INVERTED:
            try:
                least[name] = _reached(partial(_at, excess, question, name), question, name)
            except TimeoutError:
                late = True
        if late or any(least.values()):
            whole = {name: int(least[name]) if least[name] else None for name in ("users", "periods")}
            found.append(Reached(method.name, least["epsilon"], **whole, late=late))
    return sorted(found, key=lambda one: one.epsilon or math.inf)


def _excess(method: Method, question: Question, error: float, end: float, name: str = "", value: float = 0.0) -> float:
    """log(its error / `error`) at this value of an option, or as asked; infinite where there is no number."""
    if time.process_time() > end:
        raise TimeoutError
    try:
        changed = _set(question, name, value) if name else question
        reached = expected(method, changed)
    except (CannotServeError, ValueError):
        return math.inf
    size = reached.found if reached.standard_error is None else reached.standard_error * changed.scale
    return math.inf if size is None else math.log(size / error) if size > 0 else -math.inf


def _at(excess: Callable[..., float], question: Question, name: str, value: float) -> float:
    """`excess` at a value of an option; the question's own is asked once for all options."""
    value = value if name == "epsilon" else round(value)
    return excess() if value == getattr(question, name) else excess(name, value)


def _reached(excess: Callable[[float], float], question: Question, name: str) -> float | None:
    """The value of `name` at which the error becomes small enough: steps until it is on both sides, then `_turn`."""
    about, more_helps = Question.__dataclass_fields__[name].metadata, _INVERTED[name]
    low = question.window if name == "periods" and question.target == "window" else about["low"]
    last, missing = float(getattr(question, name)), 0
    off, least = excess(last), _LEAST
    reached = off <= 0
    while True:
        guess = math.exp(min(1.1 * abs(off), 20) / _POWER[name]) if math.isfinite(off) else _STEP
        step = min(max(guess, least), _STEP**4)
        following = min(max(last / step if more_helps == reached else last * step, low), about["high"])
        following = following if name == "epsilon" else float(round(following))
        if following == last:
            return last if reached else None
        now = excess(following)
        missing += now == math.inf
        if reached != (now <= 0):
            break
        if missing > _BEYOND:
            return None
        last, off, least = following, now, least**2
    bad, good = (following, last) if reached else (last, following)

    def rounded(value: float) -> float:
        """To three digits, and users and periods at least to a whole number."""
        three = _rounded(value, 3, more_helps)
        return three if name == "epsilon" else float((math.ceil if more_helps else math.floor)(three))

    return _turn(excess, bad, good, 0.01, rounded)


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
        within = number(best.within_95, best.own_error * best.within_95 / (best.standard_error or 1.0), 3)
        told = (
            f"has a standard error of {number(best.standard_error, best.own_error, 3)}; 95 % of its errors are within "
            f"{within.partition(' ')[0]}"
        )
    second = predictions[1] if len(predictions) > 1 else None
    beside = f" Next: {second.method}, {second.rank / best.rank:.2g} times that." if second else ""
    return f"Best: {best.method}. It {told}.{beside}"
