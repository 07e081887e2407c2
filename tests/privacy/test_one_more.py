"""One more than is paid for is refused before any draw, as is a state of other settings; no setting is without effect."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

import pytest
from generators import MECHANISMS, REFUSALS, SEED, Watched, refusal, settings

from evolvingdp.audit.exact.draws import numbers_of
from evolvingdp.audit.exact.replay import Recorder, Tape, instrumented
from evolvingdp.core.seeds import stream

COUNTED = [(name, field) for name, one in MECHANISMS.items() for field in one.counted]
STEPS = [name for name, one in MECHANISMS.items() if one.steps]
WORDS = re.findall(
    r"\w+",
    "even harmonic single bands whole doubling none given median bootstrap samples precision error drop forced "
    "freeze printed laplace gaussian exponential stable binary interval olh hadamard ",
)


@pytest.mark.parametrize(("name", "field"), COUNTED)
def test_one_more_is_refused_before_any_draw(name, field):
    watched = Watched(stream(SEED, "more", name))
    for number, call in enumerate(MECHANISMS[name].counted[field](watched)):
        before, told = watched.drawn, refusal(call)
        assert told, f"{name} goes on beyond {field}, call {number}"
        assert field in told or "at most" in told, f"{name} does not say what one more than {field} is beyond: {told}"
        assert watched.drawn == before, f"{name} draws noise before it refuses one more than {field}, call {number}"


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_integer_argument_is_counted_or_declared(name):
    mechanism = MECHANISMS[name]
    for maker in mechanism.made_by:
        for argument in inspect.signature(
            inspect.unwrap(maker) if not inspect.isclass(maker) else maker
        ).parameters.values():
            if argument.kind is not argument.VAR_KEYWORD and str(argument.annotation) in ("int", "int | None"):
                assert argument.name in {*mechanism.counted, *mechanism.public}, (
                    f"{name}: {maker.__qualname__}({argument.name})"
                )


def changed(settings: Any) -> Iterator[tuple[str, Any]]:
    """Other settings of the class, each with one field changed, fields of fields, too; those that are refused left out."""
    for each in fields(settings):
        value = getattr(settings, each.name)
        if is_dataclass(value):
            others: list[tuple[str, Any]] = [(f"{each.name}.{name}", other) for name, other in changed(value)]
        elif isinstance(value, bool):
            others = [(each.name, not value)]
        elif isinstance(value, int):
            others = [(each.name, value + more) for more in (1, 2, 7, -1)]
        elif isinstance(value, float):
            others = [(each.name, other) for other in (1.7 * value, value / 1.7, value + 0.25)]
        elif isinstance(value, str):
            others = [(each.name, word) for word in WORDS if word != value]
        else:
            continue
        for path, other in others:
            try:
                made = replace(settings, **{each.name: other})
            except REFUSALS:
                continue
            if made != settings:
                yield path, made


@pytest.mark.parametrize("name", STEPS)
def test_a_state_of_other_settings_is_refused_before_any_draw(name):
    for steps in MECHANISMS[name].steps:
        for number, rng in settings(f"{name} crossed", 4):
            made = steps.make(rng)
            others = [*changed(made), *(("all", other) for other in [steps.make(rng)] if other != made)]
            for path, other in others:
                watched = Watched(stream(SEED, "crossed", name, number))
                state = steps.start(made, watched)
                before = watched.drawn
                told = refusal(partial(steps.step, other, state, watched))
                assert told, f"{name}: a state of {made} goes on with another {path}: {other}"
                assert watched.drawn == before, f"{name} draws noise before it refuses a state with another {path}"


def seen(steps: Any, made: Any) -> Any:
    """All that is asked of the generator, what is released, and how far it goes."""
    tape = Tape()
    told: list[Any] = []
    rng: Any = Recorder(stream(SEED, "effect"), tape)
    with instrumented():
        try:
            state = steps.start(made, rng)
        except REFUSALS:
            return "refused"
        for step in range(14):
            try:
                state, release = steps.step(made, state, rng)
            except REFUSALS:
                told.append(step)
                break
            told.append(repr(numbers_of(release)))
    return tape.asked, told


@pytest.mark.parametrize("name", STEPS)
def test_every_setting_changes_the_draws_or_the_end_or_is_declared(name):
    mechanism = MECHANISMS[name]
    declared = {*mechanism.public, *mechanism.metadata}
    for steps in mechanism.steps:
        silent: dict[str, bool] = {}
        for _, rng in settings(f"{name} effects", 12):
            made = steps.make(rng)
            before = seen(steps, made)
            for path, other in changed(made):
                silent[path] = silent.get(path, True) and seen(steps, other) == before
        unknown = {path for path, none in silent.items() if none and path.split(".")[-1] not in declared}
        assert not unknown, f"{name}: nothing depends on {sorted(unknown)}"
