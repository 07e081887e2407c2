"""The parameters of the TreeHist experiment."""

from __future__ import annotations

import math
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from evolvingdp import experiment
from evolvingdp.experiment import parameter

PAPER_TABLE_2 = {"synthetic": {"precision": 0.36, "recall": 0.95}, "brown": {"precision": 0.24, "recall": 0.86}}

Users = Annotated[int, Field(ge=1000, le=10**10)]
Epsilon = Annotated[float, Field(ge=0.1, le=10)]  # as far as OLH goes


class Params(experiment.Params):
    """Section 4.2's parameters; the preset `quick` differs from `paper` in the number of runs, not in scale."""

    n_users: int = parameter(
        10_000_000, symbol="$n$", unit="users", meaning="users where n is not swept", ge=1000, le=10**10
    )
    epsilon: float = parameter(2.0, symbol=r"$\epsilon$", meaning="privacy loss of a user over all reports", ge=0.1, le=10)
    factor: float = parameter(15.0, symbol="", meaning="a heavy hitter has more than factor * floor(sqrt(n)) users", ge=1)
    n_items: int = parameter(100, symbol="$d$", unit="items", meaning="items of the synthetic data", ge=10, le=10**4)
    repetitions: int = parameter(
        2, symbol="", unit="runs", meaning="runs of the ladder, each with new data, hashes, noise", ge=2
    )
    sweep_repetitions: int = parameter(2, symbol="", unit="runs", meaning="runs per point of the sweeps", ge=2, le=10**4)
    epsilon_sweep: tuple[Epsilon, ...] = parameter(
        (1.0, 4.0), symbol=r"$\epsilon$", meaning="values of epsilon on Brown", min_length=2
    )
    n_users_sweep: tuple[Users, ...] = parameter(
        (100_000, 1_000_000), symbol="$n$", unit="users", meaning="values of n on Brown", min_length=2
    )

    metric = experiment.Metric("brown_best_f1", "F1 of TreeHist with one bit a user on Brown", better="higher")
    long = True
    presets = {
        "paper": {
            "repetitions": 20,
            "sweep_repetitions": 6,
            "epsilon_sweep": (0.5, 1.0, 2.0, 4.0, 8.0),
            "n_users_sweep": (100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000),
        }
    }

    @field_validator("n_users_sweep", "epsilon_sweep")
    @classmethod
    def _each_once(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return experiment.distinct(values)

    @model_validator(mode="after")
    def _some_words_are_heavy_and_not_too_many(self) -> Self:
        for name, users, share in (("n_users", [self.n_users], 0.01), ("n_users_sweep", self.n_users_sweep, 0.05)):
            for n_users in users:  # the most frequent word of Brown has .07 of the users
                most = share * n_users / math.isqrt(n_users)
                if self.factor > most:
                    raise ValueError(
                        f"factor must be at most {most:.3g} with {n_users} users ({name}), so that some words are heavy, "
                        f"got {self.factor:g}"
                    )
        from evolvingdp.heavy_hitters.experiments.treehist.ladder import VARIANTS, answers, protocol

        for variant in VARIANTS:
            needed = self.factor
            while not answers(protocol(self, variant, self.n_users, self.epsilon, needed), self.n_users):
                needed *= 1.05
            if needed > 0.01 * self.n_users / math.isqrt(self.n_users):
                raise ValueError(
                    f"epsilon must be larger, or n_users: at epsilon = {self.epsilon:g} and {self.n_users} users there is no factor "
                    f"at which {variant!r} finds words and does not ask for too many candidates that nobody holds"
                )
            if needed > self.factor:
                raise ValueError(
                    f"factor must be at least {needed:.3g} at epsilon = {self.epsilon:g}, so that {variant!r} does not ask for "
                    f"too many candidates that nobody holds, got {self.factor:g}"
                )
        return self


def threshold(params: Params, n_users: int) -> float:
    return params.factor * math.isqrt(n_users)
