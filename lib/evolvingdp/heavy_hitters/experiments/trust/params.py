"""The parameters of the experiment on trust."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, field_validator

from evolvingdp import experiment
from evolvingdp.experiment import parameter

Epsilon = Annotated[float, Field(ge=0.02, le=8)]


class Params(experiment.Params):
    """The preset `quick` differs from `paper` in the number of runs and of epsilons, not in scale."""

    n_users: int = parameter(10_000_000, symbol="$n$", unit="users", meaning="users, one word each", ge=10**5, le=10**9)
    delta: float = parameter(
        1e-9, symbol=r"$\delta$", meaning="of the central guarantee, where a rung needs one", ge=1e-12, le=1e-5
    )
    epsilon_sweep: tuple[Epsilon, ...] = parameter(
        (0.1, 1.0), symbol=r"$\epsilon$", meaning="values of the central epsilon", min_length=2
    )
    repetitions: int = parameter(
        2, symbol="", unit="runs", meaning="runs a setting, each with new data and noise", ge=2, le=100
    )

    metric = experiment.Metric("local_words", "words found without any trust, at the largest epsilon", "words", "higher")
    presets = {"paper": {"repetitions": 5, "epsilon_sweep": (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)}}

    @field_validator("epsilon_sweep")
    @classmethod
    def _rising(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(sorted(experiment.distinct(values)))
