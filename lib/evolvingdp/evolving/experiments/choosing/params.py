"""Parameters of the comparison of all methods, and of the choice between them."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from evolvingdp import experiment
from evolvingdp.experiment import parameter

NOTEBOOK = "evolving/choosing"

Users = Annotated[int, Field(ge=10**4, le=10**9)]
Horizon = Annotated[int, Field(ge=16, le=2**13)]
Length = Annotated[int, Field(ge=1, le=10**8)]
Changes = Annotated[int, Field(ge=1, le=2**13)]
Epsilon = Annotated[float, Field(gt=0.01, le=20)]


class Params(experiment.Params):
    """One setting, of which one size at a time is changed; and a map of settings."""

    n_users: int = parameter(1_000_000, symbol="$n$", unit="users", meaning="users", ge=10**4, le=10**9)
    horizon: int = parameter(256, symbol="$T$", unit="epochs", meaning="epochs", ge=16, le=2**13)
    epoch_length: int = parameter(
        1_000_000, symbol=r"$\ell$", unit="bits", meaning="bits of a user in an epoch", ge=1, le=10**8
    )
    epsilon: float = parameter(1.0, symbol=r"$\epsilon$", meaning="privacy loss of a user in all epochs", gt=0.01, le=20)
    changes: int = parameter(3, symbol="", unit="changes", meaning="changes of the mean, planned for", ge=1, le=2**13)
    repetitions: int = parameter(4, symbol="", unit="runs", meaning="streams of each point of the sweeps", ge=2, le=1000)
    horizons: tuple[Horizon, ...] = parameter(
        (16, 64, 256, 1024), symbol="$T$", unit="epochs", meaning="horizons compared", min_length=2
    )
    changes_sweep: tuple[Changes, ...] = parameter(
        (1, 3, 15, 63, 255), symbol="", unit="changes", meaning="numbers of changes compared", min_length=2
    )
    epoch_lengths: tuple[Length, ...] = parameter(
        (1, 100, 10**4, 10**6), symbol=r"$\ell$", unit="bits", meaning="lengths of an epoch compared", min_length=2
    )
    map_runs: int = parameter(
        8, symbol="", unit="runs", meaning="streams of each setting of the map, twice as many with 2 changes", ge=2, le=1000
    )
    map_users: tuple[Users, ...] = parameter(
        (10**5, 10**7), symbol="$n$", unit="users", meaning="users of the map", min_length=1
    )
    map_horizons: tuple[Horizon, ...] = parameter(
        (32, 128), symbol="$T$", unit="epochs", meaning="horizons of the map, with 2 and with $T/8$ changes", min_length=1
    )
    map_epsilons: tuple[Epsilon, ...] = parameter(
        (1.0, 4.0), symbol=r"$\epsilon$", meaning="privacy losses of the map", min_length=1
    )
    map_lengths: tuple[Length, ...] = parameter(
        (1, 10**6), symbol=r"$\ell$", unit="bits", meaning="lengths of an epoch of the map", min_length=1
    )

    metric = experiment.Metric("worst_online", "largest error of the choice over that of the best method, on the map")
    presets = {
        "paper": {
            "repetitions": 20,
            "horizons": (16, 64, 256, 1024, 4096),
            "changes_sweep": (1, 3, 7, 15, 31, 63, 127, 255),
            "epoch_lengths": (1, 10, 100, 10**3, 10**4, 10**5, 10**6, 10**7),
            "map_runs": 20,
            "map_horizons": (32, 256),
            "map_epsilons": (1.0, 2.0, 4.0),
            "map_lengths": (1, 10**4, 10**6),
        }
    }

    @field_validator(
        "horizons", "changes_sweep", "epoch_lengths", "map_users", "map_horizons", "map_epsilons", "map_lengths"
    )
    @classmethod
    def _each_once(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return experiment.distinct(values)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if max(self.changes, *self.changes_sweep) >= self.horizon:
            raise ValueError(f"changes must be below the horizon, {self.horizon}, got {max(self.changes_sweep)}")
        if self.changes >= min(self.horizons):
            raise ValueError(f"horizons must be above the changes, {self.changes}, got {min(self.horizons)}")
        return self
