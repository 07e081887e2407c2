"""The parameters of the experiment on ThresholdMonitor."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, field_validator

from evolvingdp import experiment
from evolvingdp.experiment import parameter

Reports = Annotated[int, Field(ge=1, le=10**5)]


class Params(experiment.Params):
    """The paper runs no experiment; the presets differ in runs and in how finely k is swept."""

    epsilon: float = parameter(
        1.0, symbol=r"$\epsilon$", meaning="privacy loss of a user, all answers together", ge=0.05, le=5
    )
    delta: float = parameter(1e-6, symbol=r"$\delta$", meaning="its failure probability", ge=1e-20, le=0.01)
    reports: int = parameter(3, symbol="$k$", unit="reports", meaning="reports after which a user is deleted", ge=1, le=1000)
    n_groups: int = parameter(100, symbol="", unit="groups", meaning="disjoint groups asked for", ge=10, le=1000)
    group_size: int = parameter(400, symbol="", unit="users", meaning="users in a group", ge=1, le=10**6)
    halts: tuple[Reports, ...] = parameter(
        (3, 10, 100), symbol="$c$", unit="reports", meaning="reports after which AboveThreshold halts", min_length=1
    )
    repetitions: int = parameter(20, symbol="", unit="runs", meaning="runs of the first figure", ge=2, le=10**4)
    reports_sweep: tuple[Reports, ...] = parameter(
        (1, 3, 10, 30, 100, 300, 1000), symbol="$k$", unit="reports", meaning="calibrations compared", min_length=2
    )

    metric = experiment.Metric("found_monitor", "groups that ThresholdMonitor finds", "groups", "higher")
    presets = {
        "paper": {"repetitions": 200, "reports_sweep": (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000, 2000, 5000)}
    }

    @field_validator("halts", "reports_sweep")
    @classmethod
    def _each_once(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return experiment.distinct(values)


MONITOR = "ThresholdMonitor"


def halting(reports: int) -> str:
    return f"AboveThreshold, c = {reports}"
