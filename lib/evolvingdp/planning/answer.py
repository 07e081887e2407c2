"""What the planner answers with: a prediction of a method's error, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from evolvingdp.planning.question import Question

if TYPE_CHECKING:
    from evolvingdp.planning.shuffled import Mixed

USELESS, GUESS = 0.29, "no better than a guess"  # the standard error of a share that is guessed, and what is said of it
BETA = 0.05  # of what is missed, or listed and held by nobody
RUNGS = (10, 11, 12, 14, 16, 18, 20, 22, 25, 28, 30, 35, 40, 45, 50, 55, 60, 70, 80, 90)
_LAPLACE_95 = math.log(20) / math.sqrt(2)  # standard deviations that 95 % of a Laplace law lie within


def rounded(value: float, digits: int = 2, up: bool = True) -> float:
    """To so many digits, upwards or downwards."""
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    return float(f"{(math.ceil if up else math.floor)(value / unit + (-1e-9 if up else 1e-9)) * unit:.12g}")


def rung(value: float) -> float:
    """The round number below, or itself."""
    ten = math.floor(math.log10(value)) - 1
    return max(one for step in RUNGS if (one := float(f"{step}e{ten}")) <= value)


class CannotServeError(Exception):
    """Why a method does not serve a question, and the options that would make it do so, where that is known."""

    def __init__(self, reason: str, nearest: str = "") -> None:
        super().__init__(reason)
        self.nearest = nearest


@dataclass(frozen=True)
class Expected:
    """A method's error, in shares of the users: `standard_error` (None for an alarm) and `within_95`, the bound that 95 % of
    the errors keep; `found_from`, the share from which an item is found with 95 % probability (None: none is looked for);
    `own_error`, the standard error that `standard_error` has itself where it was simulated, else 0; a `note`."""

    standard_error: float | None
    within_95: float
    found_from: float | None = None
    own_error: float = 0.0
    note: str = ""

    @classmethod
    def normal(cls, standard_error: float, laplace: bool = False, **more: Any) -> Expected:
        return cls(standard_error, (_LAPLACE_95 if laplace else 1.959963984540054) * standard_error, **more)

    @property
    def rank(self) -> float:
        """What methods are ordered by: the smaller the better."""
        return self.found_from or self.standard_error or self.within_95


@dataclass(frozen=True)
class Method:
    """One way of the book to answer questions; what is said about it stands in `texts`.

    `settle` makes the library's settings for a question, or raises why not; `expect` predicts their error.
    """

    name: str
    statistics: tuple[str, ...]
    settle: Callable[..., Any]
    expect: Callable[..., Expected]  # (question, settings), and where it is `simulated` how many streams
    trust: str = "nobody"
    targets: tuple[str, ...] = ("period", "window", "cumulative")
    simulated: bool = False
    in_steps: bool = False  # of users and epsilon: `less`
    of_a_user: bool = False  # whether it protects no less than all that a user ever sends
    mixed: Mixed | None = None  # what its reports are to a shuffler, where it gains by one

    def asked(self, question: Question) -> Question:
        """What it is asked: less, and behind a shuffler with the epsilon of a report."""
        less = self.less(question)
        return self.mixed.question(less) if self.mixed and self.trust == "shuffler" else less

    def less(self, question: Question) -> Question:
        """What it is asked instead. Where errors are simulated, or jump, those of round numbers stand for all up to the next
        ones, so that more users or epsilon are not worse by chance: a method may always use less."""
        if not self.in_steps:
            return question
        return replace(question, users=int(rung(question.users)), epsilon=rung(question.epsilon))


@dataclass(frozen=True, kw_only=True)
class Prediction(Expected):
    """A method that serves: its error, and in words the `guarantee`, what it `assumes` of the data, what a user `sends`,
    what it `cannot` do; the library's `settings`, and a `command` to try it."""

    method: str
    guarantee: str
    assumes: str
    sends: str
    cannot: str
    settings: str
    command: str


@dataclass(frozen=True)
class Refusal:
    """A method that does not serve, the reason, and the `nearest` option at which it would."""

    method: str
    reason: str
    nearest: str


@dataclass(frozen=True)
class Answer:
    """What `plan` says: predictions, best first, methods that do not serve, a sentence; `reached` is what `reach` found."""

    question: Question
    predictions: list[Prediction]
    refusals: list[Refusal]
    sentence: str
    reached: list[Any]

    def as_json(self) -> dict[str, Any]:
        """Everything, for machines."""
        told, asked = asdict(self), self.question
        told["question"] |= {"delta": asked.failure, "share": asked.level, "change": asked.jump, "ordinary": asked.usual}
        return told | {"sampling_error": asked.sampling}
