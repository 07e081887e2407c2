"""What one knows before anything is collected: the question that the planner answers.

Imports no numpy, so that the command line's help, which shows these fields, comes at once.
"""

from __future__ import annotations

import inspect
import math
import numbers
from dataclasses import dataclass, field
from typing import Any

STATISTICS = ("mean", "frequencies", "words", "hot")
SHARES = STATISTICS[:2]
TRUST = ("nobody", "shuffler", "curator")
UNITS = ("report", "period", "user")
TARGETS = ("period", "window", "cumulative")
PERIOD, SO_FAR = TARGETS[:1], TARGETS[2:]


def _ask(
    default: Any, help: str, low: float = 0, high: float = math.inf, choices: tuple[str, ...] = (), of: Any = STATISTICS
) -> Any:
    return field(default=default, metadata={"help": help, "low": low, "high": high, "choices": choices, "of": of})


@dataclass(frozen=True)
class Question:
    """What one knows, a field each, with a default. Raises ParameterError with a message of one line.

    Users hold `readings` values in each period, each drawn afresh; all of them are there in every period. The share that is
    asked for moves `changes` times by `change`, for all users together, at random places.
    """

    statistic: str = _ask(
        "mean",
        "mean (of numbers in [0, 1], or a share); frequencies (of a list of words); words (without a list); hot (which "
        "items many hold now)",
        choices=STATISTICS,
    )
    trust: str = _ask(
        "nobody",
        "who is trusted: nobody; a shuffler, to mix reports that carry noise; or a curator, who sees the data",
        choices=TRUST,
    )
    unit: str = _ask(
        "user",
        "what epsilon protects: one report, all that a user sends in a period, or everything that a user ever sends",
        choices=UNITS,
    )
    users: int = _ask(100_000, "users, all there in every period", 1, 10**9)
    periods: int = _ask(365, "periods (days, months) with an answer each", 1, 10_000)
    readings: int = _ask(1, "values of one user in a period", 1, 10**8, of=STATISTICS[:3])
    changes: int = _ask(3, "how often the answer jumps, in all periods together", 0, 10_000, of=SHARES)
    change: float | None = _ask(
        None, "by how much it jumps  [default: .1 for a mean; for a word its level]", 0, 1, of=SHARES
    )
    target: str = _ask("period", "one answer a period, for the last `window` periods, or for all so far", choices=TARGETS)
    window: int = _ask(7, "periods of a window", 1, 10_000)
    epsilon: float = _ask(1.0, "privacy loss of a unit", 1e-4, 20)
    delta: float | None = _ask(
        None, "its failure probability; 0 for a pure guarantee  [default: 0 if nobody is trusted, else 1e-9]", 0, 0.01
    )
    share: float | None = _ask(
        None, "the answer to expect  [default: .5, the worst, for a mean; .01 for a word]", 0, 1, of=STATISTICS[:3]
    )
    items: int = _ask(1000, "words of the list, or items that can be hot", 2, 2**40, of=("frequencies", "hot"))
    length: int = _ask(6, "letters of a word without a list", 2, 12, of=("words",))
    events: int = _ask(10, "hot items in all periods together", 1, 10**6, of=("hot",))
    taking_part: int = _ask(3, "hot items that one user holds at most", 1, 1000, of=("hot",))
    ordinary: float | None = _ask(
        None, "share of the users who hold an item that is not hot, at most  [default: 1 / items]", 0, 1, of=("hot",)
    )

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            object.__setattr__(self, name, _checked(name, getattr(self, name)))
        if self.target == "window" and self.window > self.periods:
            _refuse(f"window must be at most the periods, {self.periods}, got {self.window}")

    @property
    def failure(self) -> float:
        """delta; by default 0 if nobody is trusted, else 1e-9."""
        return (0.0 if self.trust == "nobody" else 1e-9) if self.delta is None else self.delta

    @property
    def level(self) -> float:
        """The answer to expect; by default .5 for a mean and .01 for a word or an item."""
        return (0.5 if self.statistic == "mean" else 0.01) if self.share is None else self.share

    @property
    def usual(self) -> float:
        """The share of the users who hold an item that is not hot; by default as if all items were alike."""
        return 1 / self.items if self.ordinary is None else self.ordinary

    @property
    def jump(self) -> float:
        """The size of a change; by default .1 for a mean, and for a word its level."""
        return (0.1 if self.statistic == "mean" else self.level) if self.change is None else self.change

    @property
    def moves(self) -> int:
        """How many changes there can be: at most one between two periods, and none if their size is 0."""
        return min(self.changes, self.periods - 1) if self.jump else 0

    @property
    def pooled(self) -> int:
        """Periods that one answer is about."""
        return {"period": 1, "window": self.window, "cumulative": self.periods}[self.target]

    @property
    def a_period(self) -> int:
        """Reports of a user in a period: of each of its readings, if a report is what epsilon is for, else of their mean."""
        return self.readings if self.unit == "report" else 1

    @property
    def of_a_unit(self) -> int:
        """Reports of a user whose losses together are epsilon, where each user reports in every period."""
        return self.periods if self.unit == "user" else 1

    @property
    def sampling(self) -> float:
        """Standard error of the users' own share as an estimate of a larger population's, at most: all readings of a user
        may be the same."""
        return math.sqrt(self.level * (1 - self.level) / self.users)


def check_used(question: Question, given: set[str]) -> None:
    """Raise ParameterError for what somebody has given, by name, and `question` does not use."""
    for name in (name for name in Question.__dataclass_fields__ if name in given):
        value, of = getattr(question, name), Question.__dataclass_fields__[name].metadata["of"]
        if question.statistic not in of:
            _refuse(f"{name} is for {' and '.join(of)}; leave it away for {question.statistic}, got {value}")
        if name == "window" and question.target != "window":
            _refuse(f"window is for the target window; add --target window, or leave it away, got {value}")
        if name == "changes" and value >= question.periods:
            _refuse(f"changes must be fewer than the periods, at most {question.periods - 1}, got {value}")


def _described(name: str) -> str:
    about = Question.__dataclass_fields__[name].metadata
    allowed = ", ".join(about["choices"]) or f"from {about['low']:,} to {about['high']:,}"
    return f"| `{name}` | {' '.join(about['help'].split())} | {allowed} |"


Question.__doc__ = inspect.cleandoc(Question.__doc__ or "") + "\n\n| field | what it is | allowed |\n|---|---|---|\n"
Question.__doc__ += "\n".join(map(_described, Question.__dataclass_fields__))


def _checked(name: str, value: Any) -> Any:
    """`value`, as a plain number: 1e6 and numpy's integers are whole numbers, too."""
    what = Question.__dataclass_fields__[name]
    low, high, choices = (what.metadata[one] for one in ("low", "high", "choices"))
    whole = "int" in str(what.type)
    if value in choices or value is what.default is None:
        return value
    if choices:
        _refuse(f"{name} must be one of {', '.join(choices)}, got {value!r}")
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        _refuse(f"{name} must be a number, got {value!r}")
    if not low <= value <= high:
        _refuse(f"{name} must lie in [{low:g}, {high:g}], got {value!r}")
    if whole and value != int(value):
        _refuse(f"{name} must be a whole number, got {value!r}")
    return int(value) if whole else float(value)


def _refuse(message: str) -> None:
    from evolvingdp.core.checks import ParameterError  # with numpy, which help does not wait for

    raise ParameterError(message)
