"""Parameters of the experiment on THRESH."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from evolvingdp import experiment
from evolvingdp.experiment import parameter

NOTEBOOK = "evolving/thresh"
HORIZON_SWEEP_USERS = 10**7

Horizon = Annotated[int, Field(ge=8, le=2**16)]
Users = Annotated[int, Field(ge=10**4, le=10**10)]


class Params(experiment.Params):
    """The paper runs no experiment; the presets differ in runs and in how far the sweeps go."""

    n_users: int = parameter(1_000_000, symbol="$n$", unit="users", meaning="users", ge=10**4, le=10**10)
    horizon: int = parameter(1024, symbol="$T$", unit="epochs", meaning="epochs", ge=16, le=2**16)
    epoch_length: int = parameter(
        1_000_000, symbol=r"$\ell$", unit="bits", meaning="bits of a user in an epoch", ge=100, le=10**8
    )
    epsilon: float = parameter(1.0, symbol=r"$\epsilon$", meaning="privacy loss of a user in all epochs", gt=0, le=20)
    beta: float = parameter(0.05, symbol=r"$\delta$", meaning="failure probability of the accuracy statement", gt=0, lt=1)
    repetitions: int = parameter(10, symbol="", unit="runs", meaning="runs over time", ge=2, le=10**4)
    sweep_repetitions: int = parameter(4, symbol="", unit="runs", meaning="runs per point of the sweeps", ge=2, le=10**4)
    horizon_sweep: tuple[Horizon, ...] = parameter(
        (16, 64, 256, 1024), symbol="$T$", unit="epochs", meaning="horizons compared", min_length=2
    )
    n_users_sweep: tuple[Users, ...] = parameter(
        (10**6, 10**7, 10**8), symbol="$n$", unit="users", meaning="numbers of users compared", min_length=2
    )

    metric = experiment.Metric("error_tuned", "mean error of tuned THRESH over the epochs")
    presets = {
        "paper": {
            "repetitions": 40,
            "sweep_repetitions": 20,
            "horizon_sweep": (16, 32, 64, 128, 256, 512, 1024, 2048, 4096),
            "n_users_sweep": (10**6, 10**7, 10**8, 10**9),
        }
    }

    @field_validator("horizon_sweep", "n_users_sweep")
    @classmethod
    def _each_once(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return experiment.distinct(values)

    @model_validator(mode="after")
    def _feasible(self) -> Self:
        from evolvingdp.evolving.experiments.thresh.scenarios import protocols, scenarios

        for n_users in {self.n_users, *self.n_users_sweep}:
            protocols(self, n_users, self.horizon)
        for horizon in self.horizon_sweep:
            protocols(self, HORIZON_SWEEP_USERS, horizon)
        scenarios(self)
        return self
