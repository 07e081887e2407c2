"""All methods asked one question, and the same question asked the other way round."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import scipy

from evolvingdp.core.checks import ParameterError
from evolvingdp.planning import curated, hot, local, local_search, texts
from evolvingdp.planning.answer import Answer, CannotServeError, Expected, Method, Prediction, Refusal, remark, rounded
from evolvingdp.planning.question import TRUST, Question
from evolvingdp.planning.shown import number, within
from evolvingdp.planning.shuffled import mixed

_ALONE = (*local.METHODS, *local_search.METHODS, *curated.METHODS, *hot.METHODS)
METHODS = (*_ALONE, *(mixed(method, method.mixed) for method in _ALONE if method.mixed))
_SEARCHED = ("readings", "users", "epsilon")  # where a setting that works is looked for, in this order
_TRUSTED = {
    "shuffler": "somebody has to be trusted to mix reports and drop names",
    "curator": "somebody has to be trusted with data before noise is added",
}
_TARGETS = {"period": "single periods", "window": "windows", "cumulative": "all periods so far"}


def plan(question: Question) -> Answer:
    """Predictions, best first, and refusals of all methods for this statistic."""
    found = [_ask(method, question) for method in asked(question)]
    predictions = sorted((one for one in found if isinstance(one, Prediction)), key=lambda one: one.rank)
    refusals = [one for one in found if isinstance(one, Refusal)]
    return Answer(question, predictions, refusals, sentence(question, predictions, refusals))


def asked(question: Question) -> list[Method]:
    """All methods for this statistic, whether they serve or not."""
    return [method for method in METHODS if question.statistic in method.statistics]


def settled(method: Method, question: Question) -> Any:
    """The library's settings; raises CannotServeError with what would work."""
    _refused(method, question)
    return method.settle(method.less(question))


def _refused(method: Method, question: Question) -> None:
    """Raise CannotServeError where no number of the question would help."""
    if TRUST.index(method.trust) > TRUST.index(question.trust):
        raise CannotServeError(_TRUSTED[method.trust], f"--trust {method.trust}")
    if (method.trust, question.trust) == ("shuffler", "curator"):
        raise CannotServeError("reports are mixed for those who trust no curator", "--trust shuffler")
    if method.simulated and question.periods < 2:
        raise CannotServeError("there is one period, and nothing to follow", "--periods 2")
    if question.target not in method.targets:
        raise CannotServeError(
            f"it answers for {' and '.join(_TARGETS[one] for one in method.targets)}", f"--target {method.targets[0]}"
        )
    if method.of_a_user and question.unit != "user":
        raise CannotServeError("it protects all that a user ever holds, which is more than is asked for", "--unit user")


def expected(method: Method, question: Question, streams: int = 0) -> Expected:
    """The error in shares; `streams`: how many are simulated where there is no formula, 0 for as many as there is time."""
    settings, less = settled(method, question), method.less(question)
    return method.expect(less, settings, streams) if method.simulated else method.expect(less, settings)


def _ask(method: Method, question: Question) -> Prediction | Refusal:
    try:
        settings = settled(method, question)
        found = method.expect(method.less(question), settings)
    except CannotServeError as reason:
        return Refusal(method.name, str(reason), reason.nearest or _nearest(method, question))
    except ValueError as error:
        return Refusal(method.name, _in_options(str(error)), _nearest(method, question))
    found = replace(found, note=remark(found.standard_error) or found.note)
    once = method.mixed.once if method.mixed else None
    said = texts.of(method.name, question, method.trust == "shuffler", once, settings)
    return Prediction(method=method.name, settings=repr(settings), **vars(found), **said)


def _in_options(message: str) -> str:
    """A mechanism's reason in the words of the question."""
    names = {"epoch_length": "readings", "horizon": "periods", "n_users": "users", "n_words": "items"}
    for name, option in names.items():
        message = message.replace(name, option)
    return message.removesuffix("; vote_cap=0, nobody voting, would work")


def _nearest(method: Method, question: Question) -> str:
    """The smallest value of one option at which the method serves, to two digits, where there is one."""

    def refused(question: Question) -> float:
        try:
            (settled if method.simulated else expected)(method, question)
        except (CannotServeError, ValueError):
            return math.inf
        return -math.inf

    for name in _SEARCHED:
        about = Question.__dataclass_fields__[name].metadata
        if question.statistic in about["of"] and refused(_set(question, name, about["high"])) < 0:
            return f"--{name} {_reached(refused, question, name, math.inf, 2):.12g}"
    return ""


def _set(question: Question, name: str, value: float) -> Question:
    """`question` with another value of an option."""
    changed: dict[str, Any] = {name: value if name == "epsilon" else round(value)}
    return replace(question, **changed)


def _turn(off: Callable[[float], float], bad: float, good: float, name: str, digits: int) -> float:
    """The value of an option, of so many digits, between `bad`, where off > 0, and `good`, where off <= 0: it holds, and
    one that does not is within some steps of its logarithm."""
    up = good > bad
    step, ends = math.copysign(0.005, good - bad), {math.log(bad): bad, math.log(good): good}

    def value(place: float) -> float:
        there = rounded(math.exp(place), digits, up)
        there = there if name == "epsilon" else (math.ceil if up else math.floor)(there)
        return min(max(there, min(bad, good)), max(bad, good))

    def bounded(place: float) -> float:
        return max(-9.0, min(9.0, off(ends.get(place) or value(place))))

    root = step / 2 + scipy.optimize.brentq(bounded, *ends, xtol=abs(step))
    return next((one for more in (0, 1, 3, 7, 15, 31) if off(one := value(root + more * step)) <= 0), good)


@dataclass(frozen=True)
class Reached:
    """Of one method: the least epsilon and users, and the most periods, with the error that was asked for, or None. `late`:
    some of them were not searched to the end."""

    method: str
    epsilon: float | None
    users: int | None
    periods: int | None
    late: bool = False


# of it that errors fall with, to guess where to look
_POWER = {"epsilon": 1.0, "users": 0.5, "periods": -0.5, "readings": 0.5}


def _work(method: Method, question: Question) -> float:
    """Milliseconds of a processor that a prediction takes, about, and on any machine the same."""
    words = {"words": 10, "hot": 70 if method.trust == "curator" else 10}.get(question.statistic, 1)
    return words + 200 * (method.trust == "shuffler") + method.simulated * (30 + question.periods / 5)


def reach(question: Question, error: float, work: float = 800) -> list[Reached]:
    """A list: what each method needs for a standard error of at most `error`, all else as in `question`; of an alarm `error`
    is the share of the users from which an item is found.

    Each number is near the least, or the most, and keeps to `error`: `plan`, asked with this number, predicts no more. None:
    no allowed value serves or, where `late`, finding one takes more than `work`, milliseconds by counts, not by a clock.
    Answers hold for the question's `changes`, three unless given.
    """
    if not error > 0:
        raise ParameterError(f"error must be > 0, got {error!r}")
    found, left = [], [float(work)]
    for method in sorted(asked(question), key=lambda one: _work(one, question)):
        least: dict[str, Any] = dict.fromkeys(("epsilon", "users", "periods"))
        late, here = False, math.inf
        try:
            _refused(method, question)
            off = partial(_excess, method, error, left)
            here = off(question)
            for name in least:
                least[name] = _reached(off, question, name, here, 3)
        except CannotServeError:
            continue
        except TimeoutError:
            late = True
            if here <= 0:  # then the question's own numbers are enough, though none of them need be the least
                least = {name: value or getattr(question, name) for name, value in least.items()}
        if late or any(least.values()):
            whole = {name: int(least[name]) if least[name] else None for name in ("users", "periods")}
            found.append(Reached(method.name, least["epsilon"], **whole, late=late))
    return sorted(found, key=lambda one: one.epsilon or math.inf)


def _excess(method: Method, error: float, left: list[float], question: Question) -> float:
    """log(its error / `error`); infinite where there is no number. Takes its work from what is `left`."""
    if (work := _work(method, question)) > left[0]:
        raise TimeoutError
    left[0] -= work
    try:
        reached = expected(method, question)
    except (CannotServeError, ValueError):
        return math.inf
    size = reached.found_from if reached.standard_error is None else reached.standard_error
    return math.inf if size is None else math.log(size / error) if size > 0 else -math.inf


def _reached(excess: Callable[[Question], float], question: Question, name: str, here: float, digits: int) -> float | None:
    """The value of `name`, of so many digits, at which an `excess` becomes 0 or less: steps until it is on both sides, then
    `_turn`; `here` is the one at the question's own."""
    about, power = Question.__dataclass_fields__[name].metadata, _POWER[name]
    low = question.window if name == "periods" and question.target == "window" else about["low"]
    value, now, least, reached = float(getattr(question, name)), here, 0.1, here <= 0
    own = value
    off = cache(lambda value: here if value == own else excess(_set(question, name, value)))
    while value != (last := about["high"] if reached == (power < 0) else low):
        step = max(least, min(1.1 * abs(now / power), 5.5)) if math.isfinite(now) else 1.4
        following = value * math.exp(math.copysign(step, last - value))
        following = min(max(following if name == "epsilon" else float(round(following)), low), about["high"])
        now = off(following)
        if reached != (now <= 0):
            bad, good = (following, value) if reached else (value, following)
            return _turn(off, bad, good, name, digits)
        value, least = following, 2 * least
    return value if reached else None


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
        told = f"has a standard error of {number(best.standard_error, best.own_error, 3)}; 95 % of its errors are within "
        told += within(best, 3)
    second = predictions[1] if len(predictions) > 1 else None
    beside = f" Next: {second.method}, {second.rank / best.rank:.2g} times that." if second else ""
    return f"Best: {best.method}. It {told}.{beside}"
