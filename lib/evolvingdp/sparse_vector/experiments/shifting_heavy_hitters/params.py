"""The parameters of the experiment on shifting heavy hitters."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from evolvingdp import experiment
from evolvingdp.experiment import parameter
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.target import Target

Users = Annotated[int, Field(ge=4000, le=10**9)]
Small = Annotated[int, Field(ge=1, le=10**5)]
Bits = Annotated[int, Field(ge=8, le=200)]


class Params(experiment.Params):
    """The paper runs no experiment; the presets differ in runs and in how far the sweeps go."""

    n_users: int = parameter(
        1_000_000, symbol="$n$", unit="users", meaning="users, and steps, of Example 1.4", ge=4000, le=10**7
    )
    epsilon: float = parameter(1.0, symbol=r"$\epsilon$", meaning="privacy loss of a user in all steps", ge=0.1, le=5)
    delta: float = parameter(1e-6, symbol=r"$\delta$", meaning="its failure probability", ge=1e-20, le=0.01)
    beta: float = parameter(
        0.05, symbol=r"$\beta$", meaning="failure probability of the accuracy statement", ge=1e-6, le=0.5
    )
    reports: int = parameter(3, symbol="$k$", unit="reports", meaning="reports after which a user is deleted", ge=3, le=1000)
    domain_bits: int = parameter(
        32, symbol=r"$\log_2\lvert X\rvert$", unit="bits", meaning="size of the domain", ge=31, le=32
    )
    repetitions: int = parameter(50, symbol="", unit="runs", meaning="runs of Example 1.4", ge=2, le=10**4)
    sweep_repetitions: int = parameter(5, symbol="", unit="runs", meaning="runs per point of the sweeps", ge=2, le=10**4)
    n_users_sweep: tuple[Users, ...] = parameter(
        (10**4, 10**5, 10**6, 10**7), symbol="$n$", unit="users", meaning="numbers of users compared", min_length=2
    )
    tops_sweep: tuple[Small, ...] = parameter(
        (3, 30, 300, 3000, 30_000), symbol="", unit="events", meaning="numbers of events compared", min_length=2
    )
    reports_sweep: tuple[Small, ...] = parameter(
        (1, 2, 3, 6, 10), symbol="$k$", unit="reports", meaning="values of k compared", min_length=2
    )
    bits_sweep: tuple[Bits, ...] = parameter(
        (16, 32, 64, 128), symbol=r"$\log_2\lvert X\rvert$", unit="bits", meaning="domains compared", min_length=2
    )
    group_users_sweep: tuple[Users, ...] = parameter(
        (4000, 10**7), symbol="$n$", unit="users", meaning="numbers of users for the smallest group", min_length=1
    )
    group_reports_sweep: tuple[Small, ...] = parameter(
        (10,), symbol="$k$", unit="groups", meaning="groups of one user for the smallest group", min_length=1
    )
    copies: int = parameter(100, symbol="", unit="users", meaning="users that stand for one Brown document", ge=1, le=10**4)
    brown_sweep: tuple[Small, ...] = parameter(
        (1, 10, 100, 300),
        symbol="$k$, $c$",
        unit="reports",
        meaning="values of k on Brown; c / 10 goes from the least to the largest",
        min_length=2,
    )

    metric = experiment.Metric("monitor_A", "share of the events A that ThresholdMonitor finds", better="higher")
    presets = {
        "paper": {
            "repetitions": 200,
            "sweep_repetitions": 20,
            "n_users_sweep": (10**4, 10**5, 10**6, 10**7, 10**8, 10**9),
            "tops_sweep": (3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000),
            "reports_sweep": (1, 2, 3, 4, 6, 8, 10, 15, 30),
            "group_users_sweep": (4000, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9),
            "group_reports_sweep": (1, 3, 10, 30, 100),
            "bits_sweep": (8, 16, 32, 64, 96, 128, 160),
            "brown_sweep": (1, 3, 10, 30, 60, 100, 200, 300),
        }
    }

    @field_validator(
        "n_users_sweep",
        "group_users_sweep",
        "group_reports_sweep",
        "tops_sweep",
        "reports_sweep",
        "bits_sweep",
        "brown_sweep",
    )
    @classmethod
    def _each_once(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return experiment.distinct(values)

    @model_validator(mode="after")
    def _feasible(self) -> Self:
        """A group must fit: fewer users than the error have none."""
        from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.methods import example_plan

        for n_users in {self.n_users, *self.n_users_sweep}:
            sizes = example_plan(self.target, n_users, self.reports)[1]
            if max(sizes.values()) > n_users:
                raise ValueError(f"n_users must be >= {max(sizes.values())} for one group of each kind, got {n_users}")
        return self

    @property
    def target(self) -> Target:
        return Target(self.epsilon, self.delta, self.beta, 2**self.domain_bits)
