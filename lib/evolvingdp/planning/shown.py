"""An answer as text, for a terminal and for the book."""

from __future__ import annotations

import math
import textwrap

from evolvingdp.planning.answer import Answer, Prediction
from evolvingdp.planning.question import Question
from evolvingdp.planning.texts import UNIT

_WIDTH = 92  # of the book's column, too


def asked(question: Question) -> str:
    """The question in words."""
    what = {
        "mean": f"A mean near {question.level:g}",
        "frequencies": f"The frequencies of {question.items:,} words, one near {question.level:g}",
        "words": f"Words of at most {question.length} letters without a list",
        "hot": f"Which of {question.items:,} items are hot, {question.events:,} in all; ordinary is {question.usual:.2g}",
    }[question.statistic]
    when = {
        "period": f"in each of {question.periods:,} periods",
        "window": f"in the last {question.window:,} of {question.periods:,} periods",
        "cumulative": f"so far, after {question.periods:,} periods",
    }[question.target]
    delta = f", delta = {question.failure:g}" if question.failure else ""
    trusted = question.trust if question.trust == "nobody" else f"a {question.trust}"
    moves = f" {question.moves} changes of {question.jump:g}."
    return (
        f"{what}, {when}: {question.users:,} users, {question.readings:,} a user and period; epsilon = {question.epsilon:g}"
        f"{delta} for {UNIT[question.unit]}; {trusted} is trusted."
        f"{moves if question.statistic in ('mean', 'frequencies') and question.target != 'cumulative' else ''}"
    )


def text(answer: Answer, error: float | None = None) -> str:
    """Best first; what cannot serve, and why; the command of the best."""
    question, lines = answer.question, [asked(answer.question), "", answer.sentence, ""]
    if answer.predictions:
        lines += _table(question, answer.predictions)
    for one in answer.predictions[:1]:
        lines += ["", *_details(one)]
    told: dict[str, list[str]] = {}
    for refused in answer.refusals:
        nearest = f" Try {refused.nearest}." if refused.nearest else ""
        told.setdefault(f"{refused.reason}.{nearest}", []).append(refused.method)
    if told:
        lines += ["", "Cannot serve:", *(f"- {'; '.join(methods)}: {reason}" for reason, methods in told.items())]
    if error is not None:
        lines += ["", *_reached(answer, error)]
    if question.statistic != "hot":
        population = f"Where they stand for a population, add up to {number(question.sampling)}, in squares, for sampling."
        lines += ["", f"Errors are about these users; one with its own, +-, is simulated. {population}"]
    return "\n".join(_wrapped(line) for line in lines)


def _wrapped(line: str) -> str:
    """Sentences within the width; tables, and what is to be copied, as they are."""
    indent = "  " if line.startswith("- ") else ""
    return line if line[:1] in " 123456789" else textwrap.fill(line, _WIDTH, subsequent_indent=indent)


def number(value: float | None, own: float = 0.0, digits: int = 2) -> str:
    """Two digits, or with its `own` standard error no more than hold; nothing for None."""
    if value is None:
        return ""
    if own and value:
        places = max(math.floor(math.log10(own)), math.floor(math.log10(value)) + 1 - digits)
        value, own = round(value, -places), max(round(own, -places), 10.0**places)
        return f"{value:,.{max(0, -places)}f} +- {own:,.{max(0, -places)}f}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.{digits}g}"


def _table(question: Question, predictions: list[Prediction]) -> list[str]:
    rows = [["", "method (share of the users)", "std. error", "95 %", "found from, share", "users"]]
    for place, one in enumerate(predictions, start=1):
        found = "" if one.found_from is None else f"{one.found_from * question.users:,.0f}"
        error = number(one.standard_error, one.own_error)
        rows.append([f"{place}.", one.method, error, within(one), number(one.found_from), found])
    first, *others = _columns(rows)
    notes = (textwrap.fill(one.note, _WIDTH, initial_indent="\n    ", subsequent_indent="    ") for one in predictions)
    return [first, *map("".join, zip(others, notes, strict=True))]


def _columns(rows: list[list[str]]) -> list[str]:
    """All but those that are empty below their heads."""
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    padded = ([cell.ljust(max(map(len, column))) for cell in column] for column in columns)
    return ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]


def within(one: Prediction, digits: int = 2) -> str:
    """With as many digits as its standard error; nothing of an alarm."""
    if not one.standard_error:
        return ""
    return number(one.within_95, one.own_error * one.within_95 / one.standard_error, digits).partition(" ")[0]


def _details(best: Prediction) -> list[str]:
    told = {name: getattr(best, name) for name in ("guarantee", "assumes", "sends", "cannot", "settings")}
    told["try it"] = best.command
    lines = (textwrap.fill(f"  {name:<11}{value}", _WIDTH, subsequent_indent=" " * 13) for name, value in told.items())
    return [best.method, *lines]


def _reached(answer: Answer, error: float) -> list[str]:
    late = "; ".join(one.method for one in answer.reached if one.late)
    told = ["", f"Not searched to the end, for want of time: {late}."] if late else []
    rows = [[f"for an error of {error:g}", "epsilon from", "users from", "periods up to"]]
    for one in (one for one in answer.reached if one.epsilon or one.users or one.periods):
        numbers = ((one.epsilon, ".3g"), (one.users, ","), (one.periods, ","))
        missing = "not searched" if one.late else "none"
        rows.append([one.method, *(f"{value:{digits}}" if value else missing for value, digits in numbers)])
    if len(rows) == 1:
        return [f"No method reaches an error of {error:g} by epsilon, users or periods alone.", *told]
    return _columns(rows) + told
