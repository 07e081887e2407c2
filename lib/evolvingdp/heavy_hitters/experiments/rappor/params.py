"""The parameters of the experiment with RAPPOR."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from evolvingdp import experiment
from evolvingdp.experiment import parameter


class Params(experiment.Params):
    """Demo 3's parameters; the preset `quick` differs from `paper` in the number of data sets."""

    n_clients: int = parameter(100_000, symbol="", unit="clients", meaning="clients of Demo 3", ge=1000, le=10**7)
    n_reports: int = parameter(10, symbol="", unit="reports", meaning="reports of each client", ge=1, le=100)
    n_values: int = parameter(100, symbol="$d$", unit="values", meaning="values that occur", ge=20, le=1000)
    n_strangers: int = parameter(100, symbol="", unit="values", meaning="candidates that do not occur", ge=10, le=10**4)
    n_bits: int = parameter(32, symbol="$k$", unit="bits", meaning="bits of a Bloom filter, a power of two", ge=2, le=64)
    n_hashes: int = parameter(1, symbol="$h$", meaning="bits that a value sets", ge=1, le=8)
    n_cohorts: int = parameter(
        64, symbol="", unit="cohorts", meaning="groups of clients with their own hashes", ge=1, le=4096
    )
    permanent_noise: float = parameter(0.5, symbol="$f$", meaning="share of permanent bits that are coins", gt=0, lt=1)
    one_from_zero: float = parameter(0.25, symbol="$p$", meaning="probability that a permanent 0 shows as 1", gt=0, lt=1)
    one_from_one: float = parameter(0.75, symbol="$q$", meaning="probability that a permanent 1 shows as 1", gt=0, lt=1)
    false_discovery_rate: float = parameter(
        0.05, symbol="", meaning="expected share of listed candidates that nobody reported, at most", gt=0, lt=1
    )
    repetitions: int = parameter(4, symbol="", unit="data sets", meaning="data sets of Demo 3", ge=2, le=10**4)
    n_users: int = parameter(
        10_000_000, symbol="$n$", unit="users", meaning="users on Brown, one report each", ge=10**5, le=10**9
    )
    epsilon: float = parameter(2.0, symbol=r"$\epsilon$", meaning="privacy loss of a user on Brown", ge=0.5, le=8)
    brown_repetitions: int = parameter(2, symbol="", unit="runs", meaning="runs on Brown", ge=2, le=1000)

    metric = experiment.Metric("found", "values that RAPPOR detects in Demo 3", "values", "higher")
    presets = {"paper": {"repetitions": 40, "brown_repetitions": 5}}

    @model_validator(mode="after")
    def _a_rappor(self) -> Self:
        reports, equations = self.n_clients * self.n_reports, self.n_bits * self.n_cohorts
        if reports > 10**8:
            raise ValueError(f"n_clients * n_reports must be at most 10^8, got {reports:.3g}")
        if equations * (self.n_values + self.n_strangers) > 10**8:
            raise ValueError(
                f"n_bits * n_cohorts * (n_values + n_strangers) must be at most 10^8 for the fit, got "
                f"{equations * (self.n_values + self.n_strangers):.3g}"
            )
        if self.n_values + self.n_strangers > 0.8 * equations:
            raise ValueError(
                f"n_values + n_strangers must be at most {int(0.8 * equations)}, four fifths of n_bits * n_cohorts, so that a list "
                f"of candidates has a false-discovery rate, got {self.n_values + self.n_strangers}"
            )
        from evolvingdp.heavy_hitters.experiments.rappor.tables import rappor

        rappor(self)
        return self


def is_demo_3(params: Params) -> bool:
    """Whether the parameters of the demo are Google's; its bounds say nothing about others."""
    free = {"repetitions", "n_users", "epsilon", "brown_repetitions"}
    return params.model_dump(exclude=free) == Params().model_dump(exclude=free)
