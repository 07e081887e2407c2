"""Parameters of an experiment: types, ranges and presets, what people type, and errors in one line."""

from __future__ import annotations

import ast
import difflib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from evolvingdp.core.checks import ParameterError


def parameter(default: Any, *, symbol: str, meaning: str, unit: str = "", **bounds: Any) -> Any:
    """A field of `Params` with what the tables and the command line's help print of it."""
    return Field(default, description=meaning, json_schema_extra={"symbol": symbol, "unit": unit}, **bounds)


def distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """`values` of a sweep, each once: a value that stands twice would count its runs twice."""
    if len(set(values)) < len(values):
        raise ValueError(f"must hold each value once, got {_plain(values)}")
    return values


@dataclass(frozen=True)
class Metric:
    """The one of a notebook's `values` that a reader asks for first: a sweep's summary shows it."""

    name: str
    meaning: str
    unit: str = ""
    better: Literal["lower", "higher"] = "lower"


class Params(BaseModel):
    """Base of every notebook's parameters: frozen, no unknown names, no nan, and it understands what people type.

    The defaults are the preset `quick`; `presets` holds what other presets change.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {}}

    @classmethod
    def preset_names(cls) -> list[str]:
        return ["quick", *cls.presets]

    @classmethod
    def check_preset(cls, preset: str) -> None:
        """Raise ParameterError unless there is a preset of this name."""
        if preset not in cls.preset_names():
            raise ParameterError(f"preset must be one of {', '.join(cls.preset_names())}, got {preset!r}")

    @classmethod
    def make(cls, preset: str = "quick", overrides: Mapping[str, Any] | None = None) -> Self:
        """The parameters of `preset` with `overrides` (values may be strings).  Raises ParameterError, one line."""
        cls.check_preset(preset)
        values = {**cls.presets.get(preset, {}), **(overrides or {})}
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ParameterError("; ".join(_lines(cls, error.errors()))) from None

    @classmethod
    def from_namespace(cls, namespace: Mapping[str, Any]) -> Self:
        """The parameters from a notebook's globals(); raises ParameterError for one that its parameters cell lacks, and for
        one that a cell of nothing but values, such as papermill injects, sets beside them."""
        missing = [name for name in cls.model_fields if name not in namespace]
        if missing:
            raise ParameterError(f"the parameters cell must define {', '.join(missing)}")
        given = {name: namespace[name] for cell in namespace.get("In", ()) for name in _set_by(cell) if name in namespace}
        given.pop("seed", None)
        return cls.make(overrides={name: namespace[name] for name in cls.model_fields} | given)

    @classmethod
    def describe(cls) -> list[dict[str, str]]:
        """A row per parameter: name, symbol, type, range, unit, default (preset quick), paper (preset), meaning."""
        return [_describe(cls, name) for name in cls.model_fields]

    @field_validator("*", mode="before")
    @classmethod
    def _typed_by_a_person(cls, value: Any, info: Any) -> Any:
        annotation = cls.model_fields[info.field_name].annotation
        if get_origin(annotation) is tuple:
            (entry, *_) = annotation.__args__  # type: ignore[union-attr]
            kind = getattr(entry, "__origin__", entry)  # of an Annotated type
            if isinstance(value, str):
                value = _listed(kind, value)
            elif not isinstance(value, list | tuple):
                value = [value]
            return tuple(_number(kind, part) for part in value)
        return _number(annotation, value)


def _listed(kind: Any, text: str) -> list[Any]:
    """Values separated by commas, or a list as JSON writes it: the only way to type words that hold commas."""
    if kind is str and text.strip().startswith("["):
        try:
            return list(json.loads(text))
        except ValueError as error:
            hint = f'must be words separated by commas, or a JSON list such as ["a, b", "c"]: {error}'
            raise ValueError(hint) from None
    parts = [part for part in (text if kind is str else text.strip("[]() ")).split(",") if part.strip()]
    if kind is not str and len(parts) == 1 and len(parts[0].replace(";", " ").split()) > 1:
        raise ValueError(f"must be values separated by commas, got {parts[0]!r}")
    return parts


def _set_by(cell: str) -> list[str]:
    """The names that a cell sets which does nothing else than set names to values; of other cells none."""
    try:
        lines = ast.parse(cell).body
    except SyntaxError:  # a magic command
        return []
    targets = [line.target if isinstance(line, ast.AnnAssign) else getattr(line, "targets", [None])[0] for line in lines]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    values = all(_is_literal(line.value) for line in lines if isinstance(line, ast.Assign | ast.AnnAssign))
    return names if len(names) == len(lines) and values else []


def _is_literal(node: ast.expr | None) -> bool:
    try:
        ast.literal_eval(node or "")
    except (ValueError, SyntaxError):
        return False
    return True


def _number(kind: Any, value: Any) -> Any:
    """`value` ready for pydantic: strings stripped, `1e7` and `10_000_000` as integers, a bool never a number."""
    if kind in (int, float) and isinstance(value, bool):
        raise ValueError(f"must be a number, got {value!r}")
    if not isinstance(value, str):
        return value
    text = value.strip()
    if kind is int:
        try:
            number = float(text.replace("_", ""))
        except ValueError:
            return text
        digits = text.lstrip("+-").replace("_", "").isdigit()
        return int(number) if math.isfinite(number) and number.is_integer() and not digits else text
    return text


def _lines(model: type[Params], errors: list[ErrorDetails]) -> list[str]:
    """A line per error; a list is not called too short because one of its entries is wrong."""
    bad_entries = {details["loc"][0] for details in errors if len(details["loc"]) > 1}
    return [_line(model, details) for details in errors if len(details["loc"]) != 1 or details["loc"][0] not in bad_entries]


def _line(model: type[Params], details: ErrorDetails) -> str:
    """One pydantic error in the project's form: name, what it must be, what it got."""
    name = str(details["loc"][0]) if details["loc"] else ""
    kind, context, got = details["type"], details.get("ctx", {}), details["input"]
    if isinstance(got, str) and len(got) > 60:
        got = f"{got[:40]}... ({len(got)} characters)"
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(name, model.model_fields, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(model.model_fields)}"
        return f"unknown parameter {name!r}; {hint}"
    if kind == "value_error":
        message = str(context["error"])
        return f"{name} {message}" if name else message
    relations = {"greater_than": ">", "greater_than_equal": ">=", "less_than": "<", "less_than_equal": "<="}
    if kind in relations:
        bound = next(iter(context.values()))
        if isinstance(got, int) and abs(got) > 10**15:
            got = float(got) if abs(got) < 10**301 else f"{str(got)[:6]}... ({len(str(abs(got)))} digits)"
        return f"{name} must be {relations[kind]} {bound:g}, got {got!r}"
    wanted = {
        "finite_number": "a finite number",
        "int_parsing": "an integer",
        "int_from_float": "an integer",
        "int_type": "an integer",
        "float_parsing": "a number",
        "float_type": "a number",
        "bool_parsing": "true or false",
        "bool_type": "true or false",
    }
    if kind in wanted:
        return f"{name} must be {wanted[kind]}, got {got!r}"
    if kind == "literal_error":
        return f"{name} must be one of {context['expected']}, got {got!r}"
    if kind in ("too_short", "too_long"):
        return f"{name} must have {'at least' if kind == 'too_short' else 'at most'} {_length(context)} values, got {got!r}"
    return f"{name}: {details['msg']}, got {got!r}"


def _length(context: Mapping[str, Any]) -> Any:
    return context.get("min_length", context.get("max_length"))


def _describe(model: type[Params], name: str) -> dict[str, str]:
    info = model.model_fields[name]
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    return {
        "name": name,
        "symbol": str(extra.get("symbol", "")),
        "type": _type_name(info.annotation),
        "range": _range(info),
        "unit": str(extra.get("unit", "")),
        "default": _plain(info.default),
        "paper": _plain(model.presets.get("paper", {}).get(name, info.default)),
        "meaning": info.description or "",
    }


def _type_name(annotation: Any) -> str:
    if get_origin(annotation) is tuple:
        (entry, *_) = annotation.__args__
        return f"list of {getattr(entry, '__origin__', entry).__name__}"
    return "choice" if get_origin(annotation) is Literal else str(annotation.__name__)


def _range(info: Any) -> str:
    if get_origin(info.annotation) is Literal:
        return ", ".join(map(str, info.annotation.__args__))
    relations = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "min_length": "length >="}
    return ", ".join(
        f"{sign} {getattr(mark, key)}" for mark in info.metadata for key, sign in relations.items() if hasattr(mark, key)
    )


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
