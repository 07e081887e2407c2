"""Running sums of a long stream: its parameters."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from evolvingdp import experiment
from evolvingdp.experiment import parameter

Branching = Annotated[int, Field(ge=2, le=64)]


class Params(experiment.Params):
    """One stream of fair bits; each element is one person's (event level)."""

    horizon: int = parameter(100_000, symbol="$T$", unit="steps", meaning="length of the stream", ge=64, le=10**8)
    epsilon: float = parameter(1.0, symbol=r"$\epsilon$", meaning="privacy loss of an element", ge=1e-6, le=20)
    delta: float = parameter(1e-6, symbol=r"$\delta$", meaning="delta of the Gaussian mechanisms", gt=0, lt=1)
    repetitions: int = parameter(10, symbol="", unit="runs", meaning="runs of each mechanism", ge=2, le=1000)
    branching_sweep: tuple[Branching, ...] = parameter(
        (2, 3, 4, 5, 6, 8, 12, 16, 32), symbol="$b$", meaning="branchings compared by their exact errors", min_length=2
    )

    metric = experiment.Metric("binary_measured", "root mean square error of Algorithm 1 over the stream", "elements")
    presets = {"paper": {"horizon": 1_000_000, "repetitions": 20}}

    _each_once = field_validator("branching_sweep")(experiment.distinct)
