"""The parameters of the Bitstogram experiment."""

from __future__ import annotations

import math
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from evolvingdp import experiment
from evolvingdp.experiment import parameter

Buckets = Annotated[int, Field(ge=2, le=2**20)]
Repetitions = Annotated[int, Field(ge=1, le=64)]
Users = Annotated[int, Field(ge=10**5, le=10**9)]
Epsilon = Annotated[float, Field(ge=0.25, le=8)]


class Params(experiment.Params):
    """Section 4.2's data and threshold; the preset `quick` differs from `paper` in the number of runs."""

    n_users: int = parameter(10_000_000, symbol="$n$", unit="users", meaning="users", ge=10**5, le=10**10)
    epsilon: float = parameter(2.0, symbol=r"$\epsilon$", meaning="privacy loss of a user over all reports", ge=0.1, le=8)
    factor: float = parameter(15.0, symbol="", meaning="a heavy hitter has more than factor * floor(sqrt(n)) users", ge=1)
    n_items: int = parameter(100, symbol="$d$", unit="items", meaning="items of the synthetic data", ge=10, le=10**4)
    code_length: int = parameter(127, symbol="", unit="bits", meaning="length of a codeword (a BCH code)", ge=31, le=1023)
    message_bits: int = parameter(29, symbol="", unit="bits", meaning="message bits of the code", ge=29, le=63)
    buckets: int = parameter(1024, symbol="$T$", unit="buckets", meaning="range of the hash function", ge=2, le=2**20)
    repetitions: int = parameter(2, symbol="", unit="runs", meaning="runs of each protocol and data set", ge=2, le=10**4)
    sweep_repetitions: int = parameter(2, symbol="", unit="runs", meaning="runs per point of the sweeps", ge=2, le=10**4)
    bucket_sweep: tuple[Buckets, ...] = parameter(
        (256, 1024), symbol="$T$", unit="buckets", meaning="numbers of buckets on Brown", min_length=2
    )
    repeat_sweep: tuple[Repetitions, ...] = parameter(
        (1, 2), symbol="$R$", meaning="numbers of hash functions on Brown", min_length=2
    )
    map_epsilons: tuple[Epsilon, ...] = parameter(
        (0.5, 2.0), symbol=r"$\epsilon$", meaning="values of epsilon on the map", min_length=2
    )
    map_users: tuple[Users, ...] = parameter(
        (100_000, 1_000_000), symbol="$n$", unit="users", meaning="numbers of users on the map", min_length=2
    )
    map_runs: int = parameter(2, symbol="", unit="runs", meaning="runs of each method in a setting of the map", ge=2, le=100)

    metric = experiment.Metric("brown_best_f1", "F1 of Bitstogram with one bit a user on Brown", better="higher")
    presets = {
        "paper": {
            "repetitions": 10,
            "sweep_repetitions": 5,
            "bucket_sweep": (64, 256, 1024, 4096),
            "repeat_sweep": (1, 2, 4),
            "map_epsilons": (0.5, 1.0, 2.0, 4.0),
            "map_users": (100_000, 1_000_000, 10_000_000),
            "map_runs": 3,
        }
    }

    @field_validator("bucket_sweep", "repeat_sweep", "map_epsilons", "map_users")
    @classmethod
    def _each_once_in_order(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(sorted(experiment.distinct(values)))

    @field_validator("buckets", "bucket_sweep")
    @classmethod
    def _powers_of_two(cls, values: Any) -> Any:
        for value in values if isinstance(values, tuple) else (values,):
            if value & (value - 1):
                raise ValueError(f"must be powers of two, got {value}")
        return values

    @model_validator(mode="after")
    def _some_words_are_heavy(self) -> Self:
        if threshold(self) > self.n_users / 100:
            raise ValueError(
                f"factor must be at most {self.n_users / 100 / math.isqrt(self.n_users):.3g} with {self.n_users} users, so that "
                f"some words are heavy, got {self.factor:g}"
            )
        return self

    @field_validator("code_length")
    @classmethod
    def _a_length_that_exists(cls, value: int) -> int:
        from evolvingdp.heavy_hitters.binary_code import check_length

        check_length(value)
        return value

    @field_validator("message_bits")
    @classmethod
    def _a_code_that_exists(cls, value: int, info: Any) -> int:
        if "code_length" in info.data:  # else that is what is wrong
            from evolvingdp.heavy_hitters.binary_code import BinaryCode

            BinaryCode(info.data["code_length"], value)
        return value


def threshold(params: Params) -> float:
    return params.factor * math.isqrt(params.n_users)
