"""All methods asked one question, and the same question asked the other way round."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import scipy

from evolvingdp.core.checks import ParameterError
from evolvingdp.planning import answer, curated, hot, local, local_search, texts
from evolvingdp.planning.answer import Answer, CannotServeError, Expected, Method, Prediction, Refusal, rounded
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
    return Answer(question, predictions, refusals, sentence(question, predictions, refusals), [])


def asked(question: Question) -> list[Method]:
    """All methods for this statistic, whether they serve or not."""
    return [method for method in METHODS if question.statistic in method.statistics]


def settled(method: Method, question: Question) -> Any:
    """The library's settings; raises CannotServeError with what would work."""
    _refused(method, question)
    return method.settle(method.asked(question))


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
    settings, own = settled(method, question), method.asked(question)
    return method.expect(own, settings, streams) if method.simulated else method.expect(own, settings)


def _ask(method: Method, question: Question) -> Prediction | Refusal:
    try:
        settings, own = settled(method, question), method.asked(question)
        found = method.expect(own, settings)
    except (CannotServeError, ValueError) as reason:
        return Refusal(method.name, _in_options(str(reason)), getattr(reason, "nearest", "") or _nearest(method, question))
    alone = f"a report alone has epsilon {own.epsilon:.3g}" if method.trust == "shuffler" else ""
    guess = answer.GUESS if (found.standard_error or 0.0) > answer.USELESS else ""
    found = replace(found, note=guess or "; ".join(filter(None, (alone, found.note))))
    return Prediction(method=method.name, settings=repr(settings), **vars(found), **texts.of(method, question, settings))


def _in_options(message: str) -> str:
    """A mechanism's reason in the words of the question."""
    names = {"epoch_length": "readings", "horizon": "periods", "n_users": "users", "n_words": "items"}
    for name, option in names.items():
        message = message.replace(name, option)
    return message.removesuffix("; vote_cap=0, nobody voting, would work")


def _nearest(method: Method, question: Question) -> str:
    """The smallest value of one option at which the method serves, to two digits, where there is one."""

    @cache
    def refused(question: Question) -> float:
        try:
            (settled if method.simulated else expected)(method, question)
        except (CannotServeError, ValueError):
            return math.inf
        return -math.inf

    for name in _SEARCHED:
        about = Question.__dataclass_fields__[name].metadata
        most: dict[str, Any] = {name: about["high"]}
        if question.statistic in about["of"] and refused(replace(question, **most)) < 0:
            return f"--{name} {_reached(refused, question, name, 2):.12g}"
    return ""


@dataclass(frozen=True)
class Reached:
    """Of one method: the least epsilon and users, and the most periods, with the error that was asked for, or None. `late`:
    some of them were not searched to the end."""

    method: str
    epsilon: float | None
    users: int | None
    periods: int | None
    late: bool = False


def _work(method: Method, question: Question) -> float:
    """Milliseconds of a processor that a prediction takes, about, and on any machine the same."""
    search = 12 * max(1, question.length - 3)  # the more letters, the more trees
    words = {"words": search, "hot": 70 if method.trust == "curator" else 10}.get(question.statistic, 1)
    return words + 200 * (method.trust == "shuffler") + method.simulated * 15 * math.log(question.periods)


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
        late = False
        try:
            _refused(method, question)
            off = cache(partial(_excess, method, error, left))
            if off(question) <= 0:  # then its own numbers are enough, though none of them need be the least
                least = {name: getattr(question, name) for name in least}
            for name in least:
                least[name] = _reached(off, question, name, 3)
        except CannotServeError:
            continue
        except TimeoutError:
            late = True
        if late or any(least.values()):
            found.append(Reached(method.name, **least, late=late))
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


def _reached(excess: Callable[[Question], float], question: Question, name: str, digits: int) -> Any:
    """The value of `name`, of so many digits, at which an `excess` becomes 0 or less: steps along its logarithm until it is
    on both sides, then the place between; the value holds, and one that does not is within some steps of .005."""
    about, up = Question.__dataclass_fields__[name].metadata, -1 if name == "periods" else 1
    low = question.window if name == "periods" and question.target == "window" else about["low"]
    worst, best = sorted((up * math.log(low), up * math.log(about["high"])))  # places are logarithms: the larger are better

    def at(place: float) -> Question:
        there = min(max(rounded(math.exp(up * place), digits, up > 0), low), about["high"])
        value: dict[str, Any] = {name: there if name == "epsilon" else (math.ceil if up > 0 else math.floor)(there)}
        return replace(question, **value)

    def off(place: float) -> float:
        return max(-9.0, min(9.0, excess(at(place))))

    place, step = up * math.log(getattr(question, name)), 1.4
    holds = off(place) <= 0
    while place != (worst if holds else best):
        last, place, step = place, max(place - step, worst) if holds else min(place + step, best), 2 * step
        if (off(place) <= 0) != holds:
            good = max(last, place)
            root = scipy.optimize.brentq(off, min(last, place), good, xtol=0.005)
            steps = (min(root + 0.005 * more, good) for more in (0.5, 1.5, 3.5, 7.5, 15.5, 31.5))
            place, holds = next((one for one in steps if off(one) <= 0), good), True
            break
    return getattr(at(place), name) if holds else None


def sentence(question: Question, predictions: list[Prediction], refusals: list[Refusal]) -> str:
    """The answer in words."""
    if not predictions:
        first = next((one for one in refusals if one.nearest), None)
        return "No method serves." + (f" Nearest: {first.method}, with {first.nearest}." if first else "")
    best, *others = predictions
    if best.found_from is None:
        error = number(best.standard_error, best.own_error, 3)
        told = f"has a standard error of {error}; 95 % of its errors are within {within(best, 3)}"
    elif best.standard_error is None:
        told = f"finds what {best.found_from * question.users:,.0f} users hold ({best.found_from:.2%} of them)"
    else:
        told = f"finds words of {best.found_from:.2%} of the users, with a standard error of {best.standard_error:.2g}"
    beside = f" Next: {others[0].method}, {others[0].rank / best.rank:.2g} times that." if others else ""
    return f"Best: {best.method}. It {told}.{beside}"
