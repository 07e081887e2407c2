"""From Algorithm 6 to what we recommend: the parameters, and the settings that the rungs are compared in."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from evolvingdp import experiment
from evolvingdp.experiment import parameter

Dimension = Annotated[int, Field(ge=1, le=1000)]
SETTINGS = {"random": "random order", "zipf": "Zipf users", "full": "full users"}


class Params(experiment.Params):
    """Three settings: random and Zipf-active users with few samples, and users who all use up their cap."""

    n_users: int = parameter(5000, symbol="$n$", unit="users", meaning="users, random and Zipf", ge=100, le=10**6)
    samples_per_user: int = parameter(1024, symbol="$m$", unit="samples", meaning="their cap", ge=4, le=2**16)
    horizon: int = parameter(100_000, symbol="$T$", unit="samples", meaning="length of their stream", ge=1000, le=10**8)
    epsilon: float = parameter(2.0, symbol=r"$\epsilon$", meaning="privacy loss of a user", ge=1e-6, le=100)
    full_users: int = parameter(500, symbol="$n$", unit="users", meaning="users who use up their cap", ge=10, le=10**5)
    full_samples: int = parameter(512, symbol="$m$", unit="samples", meaning="their cap", ge=4, le=2**16)
    full_epsilon: float = parameter(4.0, symbol=r"$\epsilon$", meaning="privacy loss of such a user", ge=1e-6, le=100)
    delta: float = parameter(1e-6, symbol=r"$\delta$", meaning="delta of the Gaussian rungs", gt=0, lt=1)
    mean: float = parameter(0.3, symbol=r"$\mu$", meaning="mean of the bits", ge=0, le=1)
    repetitions: int = parameter(3, symbol="", unit="runs", meaning="runs of each rung", ge=2, le=1000)
    dimensions: tuple[Dimension, ...] = parameter((1, 4, 16, 64), symbol="$d$", meaning="dimensions compared", min_length=2)

    metric = experiment.Metric("random_recommended", "root mean square error of the recommended mean, random order")
    long = True
    presets = {
        "paper": {
            "n_users": 50_000,
            "samples_per_user": 4096,
            "horizon": 1_000_000,
            "full_users": 2000,
            "full_samples": 2048,
            "repetitions": 8,
        }
    }

    _each_once = field_validator("dimensions")(experiment.distinct)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        from evolvingdp.continual_mean.experiments.past_the_paper.rungs import check  # after all that is cheap

        for setting in SETTINGS:
            name, dimensions = ("full_epsilon", 1) if setting == "full" else ("epsilon", max(self.dimensions))
            check(name, *sizes(self, setting), dimensions)
        return self


def sizes(params: Params, setting: str) -> tuple[int, int, float, int]:
    """n, m, epsilon and the horizon of a setting."""
    if setting == "full":
        return params.full_users, params.full_samples, params.full_epsilon, params.full_users * params.full_samples
    return params.n_users, params.samples_per_user, params.epsilon, params.horizon
