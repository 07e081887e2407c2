"""Parameters of Verified privacy, and what its cases are called."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, field_validator

from evolvingdp import experiment
from evolvingdp.experiment import parameter

KEPT, REDRAWN, UNCLEARED = "as stated", "permanent response redrawn", "true bit never cleared"
RIGHT, LESS, DIGITS, INTEGER = "Laplace, as stated", "10 % less noise", "Laplace, last digits", "integer noise, last digits"
Runs = Annotated[int, Field(ge=10, le=10**6)]
Reports = Annotated[int, Field(ge=1, le=10**4)]


class Params(experiment.Params):
    """Sizes of the audits, and how much of the ledger is computed."""

    runs: tuple[Runs, ...] = parameter(
        (100, 300, 1000, 3000), symbol="", unit="runs", meaning="runs an input of an audit", min_length=2
    )
    box_runs: int = parameter(1000, symbol="", unit="runs", meaning="runs an input for each mechanism", ge=10, le=10**6)
    confidence: float = parameter(
        0.95, symbol="", meaning="confidence of each bound; of one of this book's mechanisms more", gt=0, lt=1
    )
    n_reports: tuple[Reports, ...] = parameter(
        (1, 3, 10, 30, 100, 200), symbol="", unit="reports", meaning="reports of a RAPPOR client", min_length=2
    )
    one_in: int = parameter(10, symbol="", meaning="the ledger's rows: one in so many is computed", ge=1, le=100)
    n_users: int = parameter(200, symbol="$n$", unit="users", meaning="users whose words are guessed", ge=10, le=10**5)
    repetitions: int = parameter(4, symbol="", unit="runs", meaning="repetitions of each audit and guess", ge=2, le=1000)

    metric = experiment.Metric(
        "bound_right", "largest epsilon that an audit proves of a mechanism that promises 1", better="higher"
    )
    long = True
    presets = {"paper": {"one_in": 1, "runs": (100, 300, 1000, 3000, 10_000, 30_000), "box_runs": 10_000, "repetitions": 8}}

    @property
    def box_confidence(self) -> float:
        """Of the bound for each mechanism of this book: wrong a thousandth as often, as there are many, and none may be."""
        return 1 - (1 - self.confidence) / 1000

    @field_validator("runs", "n_reports")
    @classmethod
    def _each_once(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return experiment.distinct(values)
