"""Refusals are outputs: nothing is refused after a private draw, and whether it is says nothing of others' data."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from generators import MECHANISMS, REFUSALS, SEED, TIMES, Watched

from evolvingdp.audit.empirical.auditor import audit
from evolvingdp.audit.registry import listing
from evolvingdp.core.seeds import stream

WORLDS = 6  # others' data, and noise, of each bad entry
BAD = (-1, 2, 2**62, 0.5, -0.5, 1.5, np.nan, np.inf)
TAKEN = {  # where one of these means something, beside 2
    -1: ("binary release", "binary step", "above_threshold step", "stable_monitor step"),
    2**62: ("olh report", "freq_oracle collect", "rappor collect", "once step", "reserve step"),
    **dict.fromkeys((0.5, -0.5, 1.5), ("above_threshold step",)),
}
LINE = r"[a-z_]+ must [^\n]+ got [^\n]+"
NUMBER = r"(?<![\w.])-?(?:nan|inf|\d[\d.]*(?:e[+-]?\d+)?)"
DOORS = [(name, number) for name, one in MECHANISMS.items() for number in range(len(one.doors(stream(SEED, "doors", name))))]


def spoiled(array: Any) -> Iterator[tuple[Any, tuple[int, ...], Any]]:
    """How one entry, or one user's row, is spoiled: what it becomes, whose it is, and a function that does it to an array.

    Also rows that add up to what they did, with an entry below 0, or beyond 2^64.
    """
    places = list(np.ndindex(np.shape(array)))
    for place in places[:: max(1, len(places) // 8)]:
        for bad in BAD:
            yield bad, place[:1], lambda given, place=place, bad=bad: _put(given, place, bad)
    if np.ndim(array) == 2:
        rest = [0] * array.shape[1]
        for row, total in enumerate(array.sum(axis=1).tolist()):
            for bad in (0, 1, 7, [total + 1, -1, *rest], [2**63 - 1, 2**63 - 1, total + 2, *rest]):
                held = bad if isinstance(bad, int) else bad[: len(rest)]
                yield f"a row of {held}", (row,), lambda given, row=row, held=held: _put(given, (row,), held)


def _put(array: Any, place: tuple[int, ...], bad: Any) -> Any:
    kind, held = np.asarray(array).dtype, np.asarray(bad)
    whole = kind.kind in "iu" and held.dtype.kind == "i"
    whole = whole and np.iinfo(kind).min <= held.min() and held.max() <= np.iinfo(kind).max
    spoiled = np.array(array, dtype=kind if whole or kind.kind == "f" else float)
    spoiled[place] = bad
    return spoiled


def met(call: Any, arrays: dict[str, Any], noise: np.random.Generator) -> tuple[str, int, str]:
    """What leaves the call, how many private draws came before it, and what is told."""
    watched = Watched(noise)
    try:
        call(watched, **{name: array.item() if np.ndim(array) == 0 else array for name, array in arrays.items()})
    except REFUSALS as refused:
        return type(refused).__name__, watched.drawn, str(refused)
    except Exception as failed:
        return f"{type(failed).__name__}, which is no refusal", watched.drawn, str(failed)
    return "", 0, ""


@pytest.mark.parametrize(("name", "number"), DOORS)
def test_whether_a_bad_entry_is_refused_depends_on_nothing_else_and_costs_no_draw(name, number):
    door = MECHANISMS[name].doors(stream(SEED, "doors", name))[number]
    worlds = [door.draw(stream(SEED, "world", name, number, world)) for world in range(WORLDS * TIMES)]
    for arrays in worlds:
        assert met(door.call, arrays, stream(SEED, "noise"))[0] == ""
    for which in worlds[0].keys() - set(door.public):
        for what, row, spoil in spoiled(worlds[0][which]):
            seen = set()
            for world, arrays in enumerate(worlds):
                held = np.array(arrays[which])
                if held.ndim > 1:
                    held[row] = worlds[0][which][row]  # the user's own data are no others'
                refused, drawn, _ = met(door.call, arrays | {which: spoil(held)}, stream(SEED, "noise", world))
                assert not (refused and drawn), (
                    f"{refused} after {drawn} draws: {name} {door.name}, {which}: {what} at {row}"
                )
                assert "no refusal" not in refused, f"{refused}: {name} {door.name}, {which}: {what} at {row}"
                seen.add(refused)
            assert len(seen) == 1, f"what is refused depends on others: {seen}; {name} {door.name}, {which}: {what} at {row}"


@pytest.mark.parametrize(("name", "number"), DOORS)
def test_what_is_refused_is_named_with_its_value_and_place_in_one_line_that_is_true_of_the_edge(name, number):
    door = MECHANISMS[name].doors(stream(SEED, "doors", name))[number]
    arrays = door.draw(stream(SEED, "world", name, number))
    for which, array in arrays.items():

        def asked(other, which=which):
            return met(door.call, arrays | {which: other}, stream(SEED, "noise"))

        for what, place, spoil in spoiled(array):
            refused, _, told = asked(spoil(array))
            where = f"{name} {door.name}, {which}: {what} at {place}: {told or 'taken'}"
            row = isinstance(what, str) and ("," not in what or name == "rappor")  # to whom all keys are words
            in_range = row or what == 2
            assert refused or in_range or f"{name} {door.name}" in TAKEN.get(what, ()), where
            if not refused:
                continue
            assert re.fullmatch(LINE, told), where
            if refused == "TypeError":
                continue
            if place and (name, which) not in (("binary", "elements"), ("days", "days")):  # sums and days are of all
                assert re.search(r"(?:position|user) (\d+)", told)[1] == str(place[0]), where
            numbers = [float(one) for one in re.findall(NUMBER, told.split(" got ")[1])]
            assert in_range or isinstance(what, str) or np.isclose(numbers, what, rtol=1e-4, equal_nan=True).any(), where
            if edge := re.search(r"lie in \[\S+, (\d+)\)|below n_users = (\d+)", told):
                least = int(edge[1] or edge[2])
                assert asked(_put(array, place, least))[2].split(" got ")[0] == told.split(" got ")[0], where
                assert edge[0] not in asked(_put(array, place, least - 1))[2], where


@pytest.mark.parametrize(("name", "number"), DOORS)
def test_a_dimension_more_or_fewer_or_another_length_or_no_numbers_are_refused_before_any_draw(name, number):
    door = MECHANISMS[name].doors(stream(SEED, "doors", name))[number]
    arrays = door.draw(stream(SEED, "world", name, number))
    for which, array in arrays.items():
        deeper = (
            [] if which in door.deep else [array[None], array[..., None], np.stack([array] * 3), np.stack([array] * 3, -1)]
        )
        others = []
        if which not in door.loose and np.ndim(array):
            others = [array[0], array[:1], array[:-1], np.concatenate([array, array])]
        others = [other for other in [*deeper, *others] if np.shape(other) != np.shape(array)]
        others += [array.astype(str), array + 1j, *(np.full(array.shape, each, dtype=object) for each in (None, 10**400))]
        for other in others:
            refused, drawn, told = met(door.call, arrays | {which: other}, stream(SEED, "noise"))
            assert refused in ("TypeError", "ValueError"), f"{name} {door.name} takes {which} of {other.shape}: {refused}"
            assert re.fullmatch(LINE, told), f"{name} {door.name} refuses {which} of {other.shape} without a reason: {told}"
            assert not drawn, f"{name} {door.name} refuses {which} of shape {other.shape} after {drawn} draws"


def test_what_is_no_generator_is_refused_by_all_that_take_one_with_what_would_work():
    """Whatever else they are given; and a generator is none of what they refuse."""
    wrong = (None, 7, np.random.RandomState(0), np.random, np.random.default_rng, np.random.Generator, np.zeros((40, 4)))
    for name, function in {**listing.drawing(), "audit": audit}.items():
        taken = {one: str(about.annotation) for one, about in inspect.signature(function).parameters.items()}
        generators = [one for one, kind in taken.items() if "Generator" in kind]
        for which in generators * (name != "evolvingdp.core.noise.Noise.draw"):  # of which the laws have their own
            for given in wrong:
                others = {one: stream(0, "rng") if one in generators else None for one in taken}
                told = f"{which} must be a numpy.random.Generator, e.g. numpy.random.default_rng(), got "
                with pytest.raises(TypeError, match=f"^{re.escape(told)}[^\n]+$"):
                    function(**others | {which: given})
                with pytest.raises(TypeError, match=f"^{re.escape(told)}[^\n]+$"):
                    function(*list((others | {which: given}).values())[: list(taken).index(which) + 1])
