"""The paper's algorithms on its problem: the parameters."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from evolvingdp import experiment
from evolvingdp.experiment import parameter

Cap = Annotated[int, Field(ge=2, le=2**20)]


class Params(experiment.Params):
    """Bits of one mean. Algorithms 3 to 5 are given a prior that is off by 1/sqrt(m), as far as the theorems allow."""

    n_users: int = parameter(1000, symbol="$n$", unit="users", meaning="users", ge=10, le=10**6)
    samples_per_user: int = parameter(64, symbol="$m$", unit="samples", meaning="samples of a user at most", ge=2, le=2**16)
    fill: float = parameter(0.5, symbol="$T/(nm)$", meaning="how much of their cap users send, together", gt=0, le=1)
    epsilon: float = parameter(4.0, symbol=r"$\epsilon$", meaning="privacy loss of a user", ge=1e-6, le=1000)
    beta: float = parameter(0.05, symbol=r"$\delta$", meaning="failure probability of accuracy", gt=0, lt=1)
    mean: float = parameter(0.3, symbol=r"$\mu$", meaning="mean of the bits", ge=0, le=1)
    repetitions: int = parameter(3, symbol="", unit="runs", meaning="runs on each order, new data and noise", ge=2, le=1000)
    cap_sweep: tuple[Cap, ...] = parameter((16, 64, 256), symbol="$m$", meaning="caps that full users use up", min_length=2)
    loose_users: int = parameter(2000, symbol="$n$", unit="users", meaning="users where the cap is loose", ge=10, le=10**6)
    loose_samples: int = parameter(16, symbol="$M_T$", unit="samples", meaning="samples a user has there", ge=2, le=1024)
    loose_caps: tuple[Cap, ...] = parameter((16, 256, 4096), symbol="$m$", meaning="caps compared there", min_length=2)

    metric = experiment.Metric("full_end", "root mean square error of Algorithm 6 at the stream's end, random order")
    presets = {
        "paper": {
            "n_users": 2000,
            "samples_per_user": 256,
            "repetitions": 10,
            "cap_sweep": (16, 32, 64, 128, 256, 512),
            "loose_users": 20_000,
            "loose_caps": (16, 64, 256, 1024, 4096, 16384, 65536),
        }
    }

    _each_once = field_validator("cap_sweep", "loose_caps")(experiment.distinct)

    @model_validator(mode="after")
    def _caps(self) -> Self:
        if min(self.loose_caps) < self.loose_samples:
            raise ValueError(f"loose_caps must be at least loose_samples = {self.loose_samples}, got {min(self.loose_caps)}")
        return self

    @property
    def horizon(self) -> int:
        """T of the five orders; with all of n * m every user is full, and Zipf's order is the random one."""
        return max(1, round(self.fill * self.n_users * self.samples_per_user))
