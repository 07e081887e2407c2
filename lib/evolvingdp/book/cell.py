r"""A notebook's parameters cell as a model: the only source of names, types, defaults, meanings and ranges.

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
import importlib
import io
import json
import math
import os
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal, Self

import yaml
from pydantic import AfterValidator, Field, create_model, model_validator

from evolvingdp.book.params import Params, distinct, parameter
from evolvingdp.core.checks import ParameterError

PRESETS = "presets.yaml"
_TYPES = {"int": int, "float": float, "str": str, "bool": bool}
_COMMENT = re.compile(
    r"(?P<meaning>.*?)"
    r"(?: \((?P<symbol>\$[^$]*\$(?:, \$[^$]*\$)*)?(?:, )?(?P<unit>[^()$]*)\))?"
    r"(?: in (?P<interval>[\[(][^\])]*[\])]))?"
    r"(?:, one of (?P<choices>[\w, ]+))?"
    r"(?:, (?P<least>\d+) or more)?"
)
_NUMBER = re.compile(r"-?\d+\^-?\d+|[-+]?(?:inf|[\d.]+(?:e[-+]?\d+)?)")


class FromCell(Params):
    """Base of the models that are made from cells; an object of one can be sent to a process without the notebook."""

    notebook: ClassVar[str]
    made_of: ClassVar[tuple[str, str, str]]

    @model_validator(mode="after")
    def _checked(self) -> Self:
        check = _check_of(self.notebook)
        if check is not None:
            self.__dict__.update(check(self) or {})
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.made_of, self.model_dump(mode="json"))


def _restored(made_of: tuple[str, str, str], values: dict[str, Any]) -> FromCell:
    return model(*made_of).model_validate(values)


def folder() -> Path:
    """Where the notebooks are; ImportError in an installed package."""
    import evolvingdp.notebooks

    return Path(evolvingdp.notebooks.__path__[0])


def module_name(notebook: str) -> str:
    return f"evolvingdp.notebooks.{notebook.replace('/', '.')}"


def module_of(notebook: str) -> ModuleType:
    """The module beside `notebook`: imports all that the experiment needs."""
    return importlib.import_module(module_name(notebook))


def beside(notebook: str) -> dict[str, bytes]:
    """What a process without notebooks needs to run `notebook`: all modules and presets, and itself."""
    files = [*folder().glob("*/*.py"), *folder().glob(f"*/{PRESETS}"), folder() / f"{notebook}.ipynb"]
    return {path.relative_to(folder()).as_posix(): path.read_bytes() for path in files}


def install(files: dict[str, bytes], into: Path) -> None:
    """Let this process use what a client has sent, and forget what another one had sent; `into` is called notebooks."""
    for name, content in files.items():
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        (into / name).write_bytes(content)
    os.environ["EVOLVINGDP_NOTEBOOKS"] = str(into)
    for name in [name for name in sys.modules if name.startswith("evolvingdp.notebooks")]:
        del sys.modules[name]


def _check_of(notebook: str) -> Callable[[Params], dict[str, Any] | None] | None:
    """`check` of the module; where it has none, nothing is imported."""
    if module_name(notebook) not in sys.modules:
        path = folder() / f"{notebook}.py"
        if not path.is_file() or not re.search(r"^def check\(", path.read_text(), re.MULTILINE):
            return None
    return getattr(module_of(notebook), "check", None)


def read(notebook: str, path: Path) -> type[FromCell]:
    """The model of the parameters of `notebook`, which stands at `path`; raises ParameterError for a cell that is wrong."""
    presets = path.parent / PRESETS
    return model(notebook, cell_of(path), presets.read_text() if presets.is_file() else "")


def cell_of(path: Path) -> str:
    """The source of the notebook's cell that is tagged `parameters`."""
    try:
        cells = json.loads(path.read_text())["cells"]
    except (ValueError, KeyError) as error:
        raise ParameterError(f"{path.name} is not a notebook: {error!r}") from None
    tagged = ["".join(cell["source"]) for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    if len(tagged) != 1:
        raise ParameterError(f"{path.name} must have one cell that is tagged parameters, got {len(tagged)}")
    return tagged[0]


@lru_cache(maxsize=64)
def model(notebook: str, cell: str, presets: str = "") -> type[FromCell]:
    """The model of the parameters in the source of a `cell`, with the other presets in the text of a presets.yaml."""
    fields = {name: field for name, field in _fields(cell) if name != "seed"}
    made: type[FromCell] = create_model("Params", __base__=FromCell, **fields)  # type: ignore[call-overload]
    made.notebook, made.made_of = notebook, (notebook, cell, presets)
    told = (yaml.safe_load(presets) or {}).get(notebook.split("/")[-1]) or {}
    made.presets = {"paper": {}, **told}
    return made


def _fields(cell: str) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Name, type and pydantic's field of each line."""
    comments: dict[int, str] = {}  # by the line of what they say something about
    about = last = 0
    for token in tokenize.generate_tokens(io.StringIO(cell).readline):
        if token.type == tokenize.COMMENT:
            row, text = token.start[0], token.string.lstrip("# ").rstrip()
            goes_on = about and row == last + 1 and token.line.lstrip().startswith("#")
            about, last = about if goes_on else row, row
            comments[about] = f"{comments[about]} {text}" if goes_on else text
    for line in ast.parse(cell).body:
        if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name) or line.value is None:
            raise ParameterError(f"a line of the parameters cell must be name: type = value, got {ast.unparse(line)!r}")
        name = line.target.id
        try:
            yield name, _field(ast.unparse(line.annotation), ast.literal_eval(line.value), comments[line.end_lineno or 0])
        except (KeyError, ValueError) as error:
            raise ParameterError(f"the parameters cell cannot be read at {name}: {error}") from None


def _field(kind: str, default: Any, comment: str) -> tuple[Any, Any]:
    listed = re.fullmatch(r"list\[(\w+)\]", kind)
    entry: Any = _TYPES[listed[1] if listed else kind]
    said = _COMMENT.fullmatch(comment)
    if said is None or not said["meaning"]:
        raise ValueError(f"its comment must say what it means, got {comment!r}")
    words: dict[str, Any] = {"symbol": said["symbol"] or "", "unit": said["unit"] or "", "meaning": said["meaning"]}
    bounds = _bounds(said["interval"], entry) if said["interval"] else {}
    if said["choices"]:
        entry = Literal[tuple(said["choices"].split(", "))]
    if not listed:
        return entry, parameter(default, **words, **bounds)
    least: dict[str, Any] = {"min_length": int(said["least"])} if said["least"] else {}
    entries: Any = tuple[Annotated[entry, Field(**bounds)], ...] if bounds else tuple[entry, ...]
    return Annotated[entries, AfterValidator(distinct)], parameter(tuple(default), **words, **least)


def _bounds(interval: str, kind: type) -> dict[str, Any]:
    """Of "(0, 10^4]": {"gt": 0, "le": 10_000}."""
    ends = [end.strip() for end in interval[1:-1].split(",")]
    if len(ends) != 2 or not all(map(_NUMBER.fullmatch, ends)):
        raise ValueError(f"its range must be two numbers, got {interval!r}")
    names = {"[": "ge", "(": "gt", "]": "le", ")": "lt"}
    low, high = ((names[mark], _number(end)) for mark, end in zip((interval[0], interval[-1]), ends, strict=True))
    return {name: int(end) if float(end).is_integer() else end for name, end in (low, high) if not math.isinf(end)}


def _number(text: str) -> float:
    power = re.fullmatch(r"(-?\d+)\^(-?\d+)", text)
    return int(power[1]) ** int(power[2]) if power else float(text) if re.search(r"[.e]|inf", text) else int(text)


def parameters(module: ModuleType, namespace: dict[str, Any]) -> FromCell:
    """The checked parameters of the notebook beside which `module` stands, from its `globals()`; raises ParameterError."""
    notebook = module.__name__.removeprefix("evolvingdp.notebooks.").replace(".", "/")
    return read(notebook, folder() / f"{notebook}.ipynb").from_namespace(namespace)
