"""A notebook's experiment over a grid of parameters and several seeds: validated first, resumable, on dask.

The points of a grid share their seeds, so they are compared on the same noise, and each is what
`evolvingdp run NOTEBOOK -p ... --seed S` computes.  All randomness comes from named streams, so nothing depends on where or
in which order points run.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_origin

from evolvingdp.experiment import ParameterError, Params
from evolvingdp.publish.running.job import seed_of
from evolvingdp.publish.sources import digest
from evolvingdp.publish.sources.project import Project, params_of
from evolvingdp.publish.sweeping import point

MOST_POINTS = 10_000


@dataclass(frozen=True)
class Point:
    """One run: `key` is a digest of all that decides it."""

    params: Params
    seed: int
    key: str


@dataclass(frozen=True)
class Sweep:
    """Every point of `grid` with every one of `seeds`, seed after seed: the first seed already covers the grid."""

    notebook: str
    grid: dict[str, list[Any]]
    settings: list[Params]
    seeds: range
    command: str

    @property
    def points(self) -> list[Point]:
        sources = point.sources(self.notebook)
        return [
            Point(params, seed, _key(self.notebook, params, seed, sources))
            for seed in self.seeds
            for params in self.settings
        ]

    @property
    def manifest(self) -> dict[str, Any]:
        """What the folder of this sweep says of it."""
        return {
            "notebook": self.notebook,
            "command": self.command,
            "grid": self.grid,
            "seeds": list(self.seeds),
            "settings": [params.model_dump(mode="json") for params in self.settings],
        }


def _key(notebook: str, params: Params, seed: int, sources: dict[str, str]) -> str:
    values = params.model_dump(mode="json")
    parts = {"notebook": notebook, "params": values, "seed": seed, "sources": sources | digest.of_files(values)}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


def make(
    project: Project,
    notebook: str,
    grid: Iterable[str],
    *,
    preset: str = "quick",
    overrides: Iterable[tuple[str, str]] = (),
    seed: Any = 0,
    repeat: int = 1,
) -> Sweep:
    """The sweep of `notebook` over `grid`, texts NAME=VALUE,VALUE,...; validated point by point: ParameterError."""
    notebook = project.notebook(notebook)
    model, fixed, axes = params_of(notebook), _fixed(overrides), _axes(params_of(notebook), grid)
    both = sorted(set(fixed) & set(axes))
    if both:
        raise ParameterError(f"{both[0]} is set by -p and swept by --grid; leave one away")
    first = seed_of(seed)
    count = math.prod(len(values) for values in axes.values()) * repeat
    if count > MOST_POINTS:
        raise ParameterError(f"the sweep has {count} points, at most {MOST_POINTS} may be: take fewer values or repeats")
    settings = _validated(model, preset, fixed, axes)
    words = ["evolvingdp", "sweep", notebook, "--preset", preset]
    words += [word for name, values in axes.items() for word in ("--grid", f"{name}={_separator(model, name).join(values)}")]
    words += [word for pair in fixed.items() for word in ("-p", *pair)] + ["--seed", str(first), "--repeat", str(repeat)]
    dumps = [params.model_dump(mode="json") for params in settings]
    swept = {name: _distinct(dump[name] for dump in dumps) for name in axes}
    return Sweep(notebook, swept, settings, range(first, first + repeat), shlex.join(words))


def _fixed(overrides: Iterable[tuple[str, str]]) -> dict[str, str]:
    fixed: dict[str, str] = {}
    for name, value in overrides:
        if name in fixed:
            raise ParameterError(f"each parameter may be set once, {name} is set twice")
        if name == "seed":
            raise ParameterError("seed is set by --seed, the number of seeds by --repeat")
        fixed[name] = value
    return fixed


def _axes(model: type[Params], grid: Iterable[str]) -> dict[str, list[str]]:
    """The texts of the values per swept parameter."""
    axes: dict[str, list[str]] = {}
    for text in grid:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise ParameterError(f"grid must be NAME=VALUE,VALUE,..., got {text!r}")
        if name == "seed":
            raise ParameterError("seed cannot be in the grid; --seed sets the first seed, --repeat the number of seeds")
        if name in axes:
            raise ParameterError(f"grid names {name} twice; write all its values into one --grid")
        if name not in model.model_fields:
            model.make(overrides={name: values})  # raises, and names the nearest parameter
        separator = _separator(model, name)
        axes[name] = [value.strip() for value in values.split(separator)]
        if not all(axes[name]):
            raise ParameterError(f"grid has an empty value for {name}, got {text!r}")
        if separator == ";" and len(axes[name]) == 1:
            raise ParameterError(
                f"grid over the list {name} needs lists separated by ';', as in {name}={values};{values}, got {text!r}; "
                f"for one list use -p {name} {values}"
            )
    if not axes:
        raise ParameterError("grid must name a parameter and its values, such as --grid epsilon=0.5,1")
    return axes


def _separator(model: type[Params], name: str) -> str:
    """Between the values of a parameter in a grid: a list has commas of its own."""
    return ";" if get_origin(model.model_fields[name].annotation) is tuple else ","


def _validated(model: type[Params], preset: str, fixed: dict[str, str], axes: dict[str, list[str]]) -> list[Params]:
    """The parameters of every combination; a rule may concern several parameters, so each is checked as a whole."""
    model.check_preset(preset)
    settings: dict[str, str] = {}
    made, refused = [], []
    for values in itertools.product(*axes.values()):
        point = dict(zip(axes, values, strict=True))
        name = ", ".join(f"{key}={value}" for key, value in point.items())
        try:
            params = model.make(preset, fixed | point)
        except ParameterError as error:
            refused.append(f"point {name}: {error}")
            continue
        twin = settings.get(params.model_dump_json())
        if twin is not None:
            raise ParameterError(f"the points {twin} and {name} are the same; give each value once")
        settings[params.model_dump_json()] = name
        made.append(params)
    if refused:
        more = f" (and {len(refused) - 1} other points)" if len(refused) > 1 else ""
        raise ParameterError(refused[0] + more)
    return made


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list({json.dumps(value): value for value in values}.values())
