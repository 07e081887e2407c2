"""`evolvingdp plan`: the planner on the command line, its options from the fields of a `Question`."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from evolvingdp.book.files import Command, one_line
from evolvingdp.planning.question import STATISTICS, Question, check_used


def _number(whole: bool) -> Callable[[str], float]:
    """Reads what people type: 500_000, 500,000, 1e6; and not 1,2, which is 1.2 to some."""

    def number(given: str | float) -> float:  # also the default
        value = str(given)
        try:
            read = float(value.replace(",", "") if re.fullmatch(r"[1-9]\d{0,2}(,\d{3})+", value) else value)
            return int(read) if whole and read == int(read) else read
        except (ValueError, OverflowError):
            raise click.BadParameter(f"{value!r} is no number") from None

    return number


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for field in reversed(dataclasses.fields(Question)):
        if field.name == "statistic":
            continue
        choices = field.metadata["choices"]
        kind: Any = click.Choice(choices) if choices else _number("int" in str(field.type))
        shown = field.default is not None
        option = click.option(
            f"--{field.name.replace('_', '-')}", field.name, type=kind, default=field.default, show_default=shown,
            help=field.metadata["help"],
        )  # fmt: skip
        command = option(command)
    return command


@click.command(cls=Command)
@click.argument("statistic", type=click.Choice(STATISTICS))
@_options
@click.option("--error", type=_number(False), help="The other way round: what reaches this standard error.")
@click.option("--json", "machine", is_flag=True, help="For machines.")
@one_line()
def plan(machine: bool, error: float | None, **what: Any) -> None:
    """Which method for my problem: the methods that can serve, with the error to expect.

    STATISTIC: mean (of numbers in [0, 1], or a share), frequencies (of a list of words), words (without a list), hot (which
    items many hold now).

    Example: evolvingdp plan mean --users 500_000 --periods 365 --epsilon 1 --trust nobody
    """
    question, source = Question(**what), click.get_current_context().get_parameter_source
    check_used(question, {name for name in what if source(name) is not ParameterSource.DEFAULT})
    click.echo(answered(question, error, machine))


def answered(question: Question, error: float | None = None, machine: bool = False) -> str:
    """What the command prints."""
    from evolvingdp.planning import planner
    from evolvingdp.planning.shown import text

    answer = planner.plan(question)
    if error is not None:
        answer = dataclasses.replace(answer, reached=planner.reach(question, error))
    return json.dumps(answer.as_json(), indent=1) if machine else text(answer, error)
