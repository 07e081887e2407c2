r"""Parameters of an experiment: a cell of its notebook is the only source of names, types, defaults, meanings and ranges.

Each line is one parameter, and its comment, which may go on in lines below, says what `evolvingdp params` prints and what is
refused:

    epsilon: float = 1.0  # privacy loss of a user ($\epsilon$) in (0, 20]
    horizons: list[int] = [16, 64]  # horizons compared ($T$, epochs) in [8, 2^16], 2 or more
    sent: str = "bit"  # what a user sends, one of bit, signs

After the meaning may follow, in this order: symbol and unit in brackets, the range as an interval (`inf` where there is no
end; of a list for each entry), the choices, and how many values a list has at least.  A list holds each value once.  The
other presets of a paper stand in presets.yaml beside its notebooks, by notebook: `thresh: {paper: {repetitions: 40}}`.
What no line can say, a function `check(params)` of the notebook's module refuses with a ValueError, and returns what it
replaces, if anything: {"data": "the full name of a file"}.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import io
import json
import math
import re
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Self

import yaml

from evolvingdp.book import cell
from evolvingdp.book.files import notebooks_folder
from evolvingdp.core.checks import ParameterError

_KINDS = {"int": "an integer", "float": "a number", "str": "a text"}
_LINE = re.compile(
    r"(?P<meaning>.*?)"
    r"(?: \((?P<symbol>\$[^$]*\$(?:, \$[^$]*\$)*)?(?:, )?(?P<unit>[^()$]*)\))?"
    r"(?: in (?P<range>[\[(][^\])]*[\])]))?"
    r"(?:, one of (?P<choices>[\w, ]+))?"
    r"(?:, (?P<least>\d+) or more)?"
)
_NUMBER = re.compile(r"-?\d+\^-?\d+|[-+]?(?:inf|[\d.]+(?:e[-+]?\d+)?)")
_DIGITS = 60  # of a value, in what is said of it


@dataclass(frozen=True)
class Metric:
    """The one of a notebook's `values` that a reader asks for first: a sweep's summary shows it."""

    name: str
    meaning: str
    unit: str = ""


@dataclass(frozen=True)
class Parameter:
    """A line of the cell.  `bounds` are relations to numbers, of the value or of each entry of a list."""

    name: str
    kind: str
    listed: bool
    default: Any
    meaning: str
    symbol: str
    unit: str
    range: str
    bounds: tuple[tuple[str, float], ...]
    choices: tuple[str, ...]
    least: int

    @classmethod
    def of(cls, name: str, kind: str, default: Any, comment: str) -> Self:
        """Raises ValueError for a line that says too little, KeyError for an unknown type."""
        entry, said = kind.removeprefix("list[").removesuffix("]"), _LINE.fullmatch(comment)
        _KINDS[entry]
        if said is None or not said["meaning"]:
            raise ValueError(f"its comment must say what it means, got {comment!r}")
        symbol, unit, least, choices = (said[part] or "" for part in ("symbol", "unit", "least", "choices"))
        bounds, chosen = _bounds(said["range"] or ""), tuple(filter(None, choices.split(", ")))
        told = choices or (said["range"] or "") + (f", {least} or more" if least else "")
        return cls(name, entry, kind != entry, default, said["meaning"], symbol, unit, told, bounds, chosen, int(least or 0))

    def read(self, given: Any) -> Any:
        """The value that somebody typed or set; raises ValueError, a line."""
        if not self.listed:
            return self._one(given)
        parts = self._split(given) if isinstance(given, str) else given if isinstance(given, list | tuple) else [given]
        values = tuple(map(self._one, parts))
        if len(values) < self.least:
            raise ValueError(f"{self.name} must have at least {self.least} values, got {parts!r}")
        if len(set(values)) < len(values):  # a value that stands twice would count its runs twice
            raise ValueError(f"{self.name} must hold each value once, got {', '.join(map(str, values))}")
        return values

    def _split(self, text: str) -> list[Any]:
        """Values separated by commas, or a list as JSON writes it: the only way to type words that hold commas."""
        if self.kind == "str" and text.strip().startswith("["):
            try:
                return list(json.loads(text))
            except (ValueError, RecursionError) as error:
                hint = f'must be words separated by commas, or a JSON list such as ["a, b", "c"]: {error}'
                raise ValueError(f"{self.name} {hint}") from None
        parts = (text if self.kind == "str" else text.strip("[]() ")).split(",") if text.strip("[]() ") else []
        if not all(part.strip() for part in parts):
            raise ValueError(f"{self.name} must have a value between any two commas and none at its ends, got {text!r}")
        if self.kind != "str" and len(parts) == 1 and len(parts[0].replace(";", " ").split()) > 1:
            raise ValueError(f"{self.name} must be values separated by commas, got {parts[0]!r}")
        return parts

    def _one(self, given: Any) -> Any:
        value = given.strip() if isinstance(given, str) else given
        told = repr(value) if len(str(value)) <= _DIGITS else f"{str(value)[:40]}... ({len(str(value))} characters)"
        try:
            value = _converted(self.kind, value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{self.name} must be {_KINDS[self.kind]}, got {told}") from None
        if self.kind == "float" and not math.isfinite(value):
            raise ValueError(f"{self.name} must be a finite number, got {told}")
        if self.choices and value not in self.choices:
            *others, last = map(repr, self.choices)
            raise ValueError(f"{self.name} must be one of {', '.join(others)} or {last}, got {told}")
        for sign, bound in self.bounds:
            if not {">": value > bound, ">=": value >= bound, "<": value < bound, "<=": value <= bound}[sign]:
                raise ValueError(f"{self.name} must be {sign} {bound:g}, got {told}")
        return value


def _converted(kind: str, value: Any) -> Any:
    """`value` as one of `kind`: `1e7` and `10_000_000` are integers, a bool is no number."""
    if kind == "str" or isinstance(value, bool):
        if kind == "str" and isinstance(value, str):
            return value
        raise TypeError
    if isinstance(value, str) and not value.isascii():  # Python reads digits of every script
        raise ValueError
    if kind == "float":
        return float(value)
    if isinstance(value, str):
        value = int(value) if value.lstrip("+-").replace("_", "").isdigit() else float(value.replace("_", ""))
    if value != int(value):
        raise ValueError
    return int(value)


def _bounds(interval: str) -> tuple[tuple[str, float], ...]:
    """Of "(0, 10^4]": (">", 0), ("<=", 10_000)."""
    ends = [end.strip() for end in interval[1:-1].split(",")]
    if not interval:
        return ()
    if len(ends) != 2 or not all(map(_NUMBER.fullmatch, ends)):
        raise ValueError(f"its range must be two numbers, got {interval!r}")
    signs = {"[": ">=", "(": ">", "]": "<=", ")": "<"}
    both = ((signs[mark], _number(end)) for mark, end in zip((interval[0], interval[-1]), ends, strict=True))
    return tuple((sign, end) for sign, end in both if not math.isinf(end))


def _number(text: str) -> float:
    base, power, raised = text.partition("^")
    return int(base) ** int(raised) if power else float(text)


class Params:
    """Base of the frozen dataclasses that `model` makes: all values are checked, and understood as people type them.

    The defaults are the preset `quick`; `presets` holds what other presets change.  An object can be sent to a process
    without the notebook.
    """

    notebook: ClassVar[str]
    made_of: ClassVar[tuple[str, str, str]]
    lines: ClassVar[dict[str, Parameter]]
    presets: ClassVar[dict[str, dict[str, Any]]]

    def __post_init__(self) -> None:
        self.__dict__.update(self._read(self.__dict__))
        if cell.has_check(self.notebook):
            try:
                self.__dict__.update(cell.module_of(self.notebook).check(self) or {})
            except ValueError as error:
                raise ParameterError(str(error)) from None

    @classmethod
    def _read(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """The values that are `given`, checked one by one; raises ParameterError, all that is wrong in one line."""
        read, refused = dict[str, Any](), []
        for name, value in given.items():
            if name not in cls.lines:
                near = difflib.get_close_matches(name, cls.lines, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(cls.lines)}"
                refused.append(f"unknown parameter {name!r}; {hint}")
                continue
            try:
                read[name] = cls.lines[name].read(value)
            except ValueError as error:
                refused.append(str(error))
        if refused:
            raise ParameterError("; ".join(refused))
        return read

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.made_of, self.as_json())

    def as_json(self) -> dict[str, Any]:
        """All values as JSON has them."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in self.__dict__.items()}

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
        return cls(**cls._read({**cls.presets.get(preset, {}), **(overrides or {})}))

    @classmethod
    def from_namespace(cls, namespace: Mapping[str, Any]) -> Self:
        """The parameters from a notebook's globals(); raises ParameterError for one that its parameters cell lacks, and for
        one that a cell of nothing but values, such as papermill injects, sets beside them."""
        missing = [name for name in cls.lines if name not in namespace]
        if missing:
            raise ParameterError(f"the parameters cell must define {', '.join(missing)}")
        given = {name for source in namespace.get("In", ()) for name in _set_by(source) if name in namespace} - {"seed"}
        return cls.make(overrides={name: namespace[name] for name in [*cls.lines, *sorted(given - {*cls.lines})]})

    @classmethod
    def describe(cls) -> list[dict[str, str]]:
        """A row per parameter: name, symbol, type, range, unit, default (preset quick), paper (preset), meaning."""
        paper = cls.presets.get("paper", {})
        return [
            {
                "name": name,
                "symbol": line.symbol,
                "type": f"list of {line.kind}" if line.listed else "choice" if line.choices else line.kind,
                "range": line.range,
                "unit": line.unit,
                "default": _plain(line.default),
                "paper": _plain(paper.get(name, line.default)),
                "meaning": line.meaning,
            }
            for name, line in cls.lines.items()
        ]


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _set_by(source: str) -> list[str]:
    """The names that a cell sets which does nothing else than set names to values; of other cells none."""
    try:
        lines: list[Any] = ast.parse(source).body
        for line in lines:
            ast.literal_eval(line.value)
        return [ast.unparse(line.target if isinstance(line, ast.AnnAssign) else line.targets[0]) for line in lines]
    except (SyntaxError, ValueError, AttributeError):  # a magic command, a computation, no assignment
        return []


@lru_cache(maxsize=64)
def model(notebook: str, source: str, presets: str = "") -> type[Params]:
    """The parameters in the `source` of a cell, with the other presets in the text of a presets.yaml; ParameterError."""
    lines = {line.name: line for line in _lines(source) if line.name != "seed"}
    told = (yaml.safe_load(presets) or {}).get(notebook.split("/")[-1]) or {}
    known = {"notebook": notebook, "made_of": (notebook, source, presets), "lines": lines, "presets": {"paper": {}, **told}}
    fields = [(line.name, Any, dataclasses.field(default=line.default)) for line in lines.values()]
    return dataclasses.make_dataclass("Params", fields, bases=(Params,), frozen=True, namespace=known)


def _restored(made_of: tuple[str, str, str], values: dict[str, Any]) -> Params:
    return model(*made_of)(**values)


def read(notebook: str, path: Path) -> type[Params]:
    """The parameters of `notebook`, which stands at `path`; raises ParameterError for a cell that is wrong."""
    presets = path.parent / cell.PRESETS
    return model(notebook, cell.parameters_of(path), presets.read_text() if presets.is_file() else "")


def parameters(module: ModuleType, namespace: dict[str, Any]) -> Params:
    """The checked parameters of the notebook beside which `module` stands, from its `globals()`; raises ParameterError."""
    notebook = module.__name__.removeprefix("evolvingdp.notebooks.").replace(".", "/")
    return read(notebook, notebooks_folder() / f"{notebook}.ipynb").from_namespace(namespace)


def _lines(source: str) -> Iterator[Parameter]:
    comments: dict[int, str] = {}  # by the line of what they say something about
    about = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, text = token.start[0], token.string.lstrip("# ").rstrip()
            goes_on = about and row == last + 1 and token.line.lstrip().startswith("#")
            about, last = about if goes_on else row, row
            comments[about] = f"{comments[about]} {text}" if goes_on else text
    for line in ast.parse(source).body:
        if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name) or line.value is None:
            raise ParameterError(f"a line of the parameters cell must be name: type = value, got {ast.unparse(line)!r}")
        name, default = line.target.id, None
        try:
            default = ast.literal_eval(line.value)
            default = tuple(default) if isinstance(default, list) else default
            yield Parameter.of(name, ast.unparse(line.annotation), default, comments[line.end_lineno or 0])
        except (KeyError, ValueError) as error:
            raise ParameterError(f"the parameters cell cannot be read at {name}: {error}") from None
