"""What an experiment gives back: a table, claims on it, values that prose prints, and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from evolvingdp.experiment.params import Params

if TYPE_CHECKING:  # parameters are checked before anything large is imported
    import pandas as pd
    from matplotlib.figure import Figure as Canvas

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
    """What a claim's value must keep to."""
    if isinstance(bound, Sequence):
        low, high = (f"{end:{form}}" for end in bound)
        return f"{low} to {high}" if low != high else f"{bound[0]:.6g} to {bound[1]:.6g}"
    return f"{'at most' if relation == '<=' else 'at least'} {bound:{form}}"


def at_most(claim: str, value: float, bound: float) -> Claim:
    return Claim(claim, float(value), "<=", float(bound))


def at_least(claim: str, value: float, bound: float) -> Claim:
    return Claim(claim, float(value), ">=", float(bound))


def within(claim: str, value: float, low: float, high: float) -> Claim:
    return Claim(claim, float(value), "within", (float(low), float(high)))


P = TypeVar("P", bound=Params, covariant=True)


@dataclass(frozen=True, eq=False)
class Result(Generic[P]):
    """What `run` returns: a tidy table (a row a measured value), the claims on it, and the numbers that prose prints."""

    notebook: str
    params: P
    seed: int
    table: pd.DataFrame
    claims: list[Claim]
    values: dict[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Figure:
    """A drawing, the tidy data that it shows, and its words.  `id` is stable: papers cite it."""

    id: str
    canvas: Canvas
    data: pd.DataFrame
    caption: str
    alt: str
