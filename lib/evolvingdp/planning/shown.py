"""An answer as text, for a terminal and for the book."""

from __future__ import annotations

import math
import textwrap

from evolvingdp.planning.answer import Answer, Prediction
from evolvingdp.planning.question import Question
from evolvingdp.planning.texts import UNIT

_WIDTH = 92  # of the book's column, too
_TRUST = {"--trust shuffler": "With a trusted shuffler", "--trust curator": "With a trusted curator"}


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
        if refused.nearest not in _TRUST:
            nearest = f" Try {refused.nearest}." if refused.nearest else ""
            told.setdefault(f"{refused.reason}.{nearest}", []).append(refused.method)
    if told:
        lines += ["", "Cannot serve:", *(f"- {'; '.join(methods)}: {reason}" for reason, methods in told.items())]
    for option, said in _TRUST.items():
        others = "; ".join(one.method for one in answer.refusals if one.nearest == option)
        lines += ["", f"{said} ({option}): {others}."] if others else []
    if error is not None:
        lines += ["", *_reached(answer, error)]
    if question.statistic != "hot":
        population = f"Where they stand for a population, add up to {number(question.sampling)}, in squares, for sampling."
        lines += ["", f"Errors are about these users; one with its own, +-, is simulated. {population}"]
    return "\n".join(_wrapped(line) for line in lines)


def _wrapped(line: str) -> str:
    """Sentences within the width; tables, and what is to be copied, as they are."""
    if line.startswith((" ", "1", "2", "3", "4", "5", "6", "7", "8", "9")):
        return line
    return textwrap.fill(line, _WIDTH, subsequent_indent="  " if line.startswith("- ") else "") if line else ""


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
    found = any(one.found_from is not None for one in predictions)
    alarm = all(one.standard_error is None for one in predictions)
    rows = [["", "method (share of the users)", *([] if alarm else ["std. error", "95 %"])]]
    rows[0] += ["found from, share", "users"] if found else []
    for place, one in enumerate(predictions, start=1):
        row = [f"{place}.", one.method, *([] if alarm else [number(one.standard_error, one.own_error), within(one)])]
        if found:
            row += [number(one.found_from), "" if one.found_from is None else f"{one.found_from * question.users:,.0f}"]
        rows.append(row)
    first, *others = _columns(rows)
    notes = (textwrap.fill(one.note, _WIDTH, initial_indent="\n    ", subsequent_indent="    ") for one in predictions)
    return [first, *map("".join, zip(others, notes, strict=True))]


def _columns(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def within(one: Prediction, digits: int = 2) -> str:
    """With as many digits as its standard error."""
    own = one.own_error * one.within_95 / one.standard_error if one.standard_error else 0.0
    return number(one.within_95, own, digits).partition(" ")[0]


def _details(best: Prediction) -> list[str]:
    told = {name: getattr(best, name) for name in ("guarantee", "assumes", "sends", "cannot", "settings")}
    lines = [best.method]
    for name, value in told.items():
        parts = textwrap.wrap(value, _WIDTH - 13)
        lines += [f"  {name:<11}{parts[0]}", *(" " * 13 + part for part in parts[1:])]
    return [*lines, f"  try it     {best.command}"]


def _reached(answer: Answer, error: float) -> list[str]:
    late = "; ".join(one.method for one in answer.reached if one.late)
    found = [one for one in answer.reached if one.epsilon or one.users or one.periods]
    told = ["", f"Not searched to the end, for want of time: {late}."] if late else []
    if not found:
        return [f"No method reaches an error of {error:g} by epsilon, users or periods alone.", *told]
    rows = [[f"for an error of {error:g}", "epsilon from", "users from", "periods up to"]]
    for one in found:
        missing = "not searched" if one.late else "none"
        numbers = [
            f"{one.epsilon:.3g}" if one.epsilon else missing,
            *(f"{n:,}" if n else missing for n in (one.users, one.periods)),
        ]
        rows.append([one.method, *numbers])
    return _columns(rows) + told
