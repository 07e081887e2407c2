"""What an experiment gives back: a table, claims on it, values that prose prints, and figures."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:  # parameters are checked before anything large is imported
    import pandas as pd
    from matplotlib.figure import Figure as Canvas

MYST = "text/x-myst"  # the type of an output's source for the book
DRAWN_BY = "% the cells that draw it"  # a line of a figure's source that `executed.page` replaces by these
RESULTS = "EVOLVINGDP_RESULTS"  # the environment variable that names the folder of a run's files
Scalar = float | int | str | bool


@dataclass(frozen=True)
class Claim:
    """A sentence that the prose makes about the numbers, with the check that decides it."""

    claim: str
    value: float
    relation: Literal["<=", ">=", "within"]
    bound: float | tuple[float, float]

    @property
    def holds(self) -> bool:
        if isinstance(self.bound, tuple):
            return self.bound[0] <= self.value <= self.bound[1]
        return self.value <= self.bound if self.relation == "<=" else self.value >= self.bound

    @property
    def bound_in_words(self) -> str:
        return in_words(self.relation, self.bound)

    def as_dict(self) -> dict[str, Any]:
        return {
            "claim": self.claim,
            "holds": bool(self.holds),
            "value": float(self.value),
            "relation": self.relation,
            "bound": self.bound,
        }


def in_words(relation: str, bound: float | Sequence[float], form: str = ",.4g") -> str:
    """What a claim's value must keep to, as a reader sees it: "≤ 0.1", "0.9 to 1.1"."""
    if isinstance(bound, Sequence):
        low, high = (written(end, form) for end in bound)
        return f"{low} to {high}" if low != high else f"{bound[0]:.6g} to {bound[1]:.6g}"
    return f"{'≤' if relation == '<=' else '≥'} {written(bound, form)}"


def written(value: float, form: str) -> str:
    """`value` in `form`; a whole number has no decimals: 95 and not 95.0."""
    return f"{value:,.0f}" if form.endswith("f") and float(value).is_integer() else f"{value:{form}}"


def read_claims(text: str, names: Mapping[str, Any]) -> Iterator[Claim]:
    """The claims that `text` makes about `names`: a line each, a relation, two blanks or more, and its sentence.

    A relation is  measured <= bound,  measured >= bound  or  low <= measured <= high,  of arithmetic on names. A line that
    begins with "?" is left out where a name of it is missing or not a number; elsewhere that is an error.
    """
    for line in filter(None, map(str.strip, text.splitlines())):
        relation, *rest = re.split(r" {2,}", line.removeprefix("?").strip(), maxsplit=1)
        if not rest:
            raise ValueError(f"a claim is a relation, two blanks and a sentence, got {line!r}")
        try:
            found = _claim(relation, rest[0], names)
        except NameError as error:
            found = None
            if not line.startswith("?"):
                said = f"needs a value {error.name!r}; mark it with ? if it may be missing"
                raise ValueError(f"claim {relation!r} {said}") from None
        if found is None:
            continue
        if not math.isnan(found.value):
            yield found
        elif not line.startswith("?"):
            raise ValueError(f"claim {relation!r} has no value; mark it with ? if it may be missing")


_FUNCTIONS = {"abs": abs, "min": min, "max": max, "sqrt": math.sqrt, "log": math.log}


def _claim(relation: str, sentence: str, names: Mapping[str, Any]) -> Claim:
    told = ast.parse(relation, mode="eval").body
    if isinstance(told, ast.Compare):
        codes = [compile(ast.Expression(part), relation, "eval") for part in (told.left, *told.comparators)]
        parts = [float(eval(code, {"__builtins__": _FUNCTIONS}, names)) for code in codes]
        match [type(sign) for sign in told.ops]:
            case [ast.LtE]:
                return Claim(sentence, parts[0], "<=", parts[1])
            case [ast.GtE]:
                return Claim(sentence, parts[0], ">=", parts[1])
            case [ast.LtE, ast.LtE]:
                return Claim(sentence, parts[1], "within", (parts[0], parts[2]))
    raise ValueError(f"a claim's relation is a <= b, a >= b or a <= b <= c, got {relation!r}")


@dataclass(frozen=True, eq=False)
class Result:
    """What `run` returns: a tidy table (a row a measured value), the claims on it, and the numbers that prose prints."""

    notebook: str
    params: Any
    seed: int
    table: pd.DataFrame
    claims: list[Claim]
    values: dict[str, Scalar] = field(default_factory=dict)

    @classmethod
    def of(cls, module: ModuleType, params: Any, seed: int, table: pd.DataFrame) -> Result:
        """The result of the notebook beside which `module` stands, from the table that its `run` returned.

        Values are those of the module, where they are numbers, and all parameters that are no lists.
        """
        own = {name: getattr(value, "item", lambda v=value: v)() for name, value in module.values(params, table).items()}
        given = {name: value for name, value in params.as_json().items() if isinstance(value, int | float | str)}
        values = given | {name: value for name, value in own.items() if value == value}  # not nan
        notebook = module.__name__.removeprefix("evolvingdp.notebooks.").replace(".", "/")
        return cls(notebook, params, seed, table, list(read_claims(module.CLAIMS, values)), values)


@dataclass(frozen=True, eq=False)
class Figure:
    """A drawing, the tidy data that it shows, and its words.  `id` is stable: papers cite it."""

    id: str
    canvas: Canvas
    data: pd.DataFrame
    caption: str
    alt: str
