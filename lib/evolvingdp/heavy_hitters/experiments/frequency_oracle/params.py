"""The parameters of the experiment with the frequency oracle."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from evolvingdp import experiment
from evolvingdp.core import checks
from evolvingdp.experiment import parameter

Users = Annotated[int, Field(ge=1000, le=10**10)]
Epsilon = Annotated[float, Field(ge=1e-6, le=20)]
Width = Annotated[int, Field(ge=2)]


class Params(experiment.Params):
    """Section 4.1's parameters; the defaults are the preset `quick`, `paper` is the paper's scale."""

    n_users: int = parameter(
        1_000_000, symbol=r"$n$", unit="users", meaning="users where n is not swept", ge=1000, le=10**10
    )
    epsilon: float = parameter(2.0, symbol=r"$\epsilon$", meaning="privacy loss of a user's one report", ge=1e-6, le=20)
    rows: int = parameter(285, symbol="$t$", unit="rows", meaning="hash functions; each user reports to one", ge=1)
    width: int = parameter(1024, symbol="$m$", unit="cells", meaning="range of a hash function, a power of two", ge=2)
    n_items: int = parameter(100, symbol="$d$", unit="items", meaning="items of the synthetic data", ge=50, le=10**5)
    power: float = parameter(15.0, symbol="", meaning="exponent of the synthetic power law", ge=0.1, le=100)
    compression: Literal["none", "hadamard"] = parameter(
        "none", symbol="", meaning="what a user sends in the sweeps: m signs as in Section 4, or one bit"
    )
    repetitions: int = parameter(
        5, symbol="", unit="runs", meaning="runs per setting, each with new hashes and noise", ge=2, le=10**4
    )
    n_users_sweep: tuple[Users, ...] = parameter(
        (100_000, 300_000, 1_000_000), symbol="$n$", unit="users", meaning="values of n in Figure 1", min_length=2
    )
    epsilon_sweep: tuple[Epsilon, ...] = parameter(
        (1.0, 2.0, 4.0), symbol=r"$\epsilon$", meaning="values of epsilon in Figures 1 and 3", min_length=2
    )
    width_sweep: tuple[Width, ...] = parameter(
        (256, 1024, 4096), symbol="$m$", unit="cells", meaning="values of m in Figure 2, powers of two", min_length=2
    )

    metric = experiment.Metric("brown_error", "root mean square error of the frequent Brown words' estimates", "users")
    presets = {
        "paper": {
            "n_users": 10_000_000,
            "width": 4096,
            "repetitions": 10,
            "n_users_sweep": (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000),
            "epsilon_sweep": (0.5, 1.0, 2.0, 4.0),
            "width_sweep": (256, 1024, 2048, 4096, 16_384),
        }
    }

    @field_validator("n_users_sweep", "epsilon_sweep", "width_sweep")
    @classmethod
    def _each_once(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return experiment.distinct(values)

    @model_validator(mode="after")
    def _feasible(self) -> Params:
        checks.power_of_two(width=self.width, **{f"width_sweep[{i}]": width for i, width in enumerate(self.width_sweep)})
        widest = max(self.width, *self.width_sweep)
        checks.fits_in_memory(
            f"a sketch of rows = {self.rows} by width = {widest}", 8 * 8 * self.rows * widest, "lower rows or width"
        )
        return self
