"""Parameters of the experiment on HEAVYTHRESH."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from evolvingdp import experiment
from evolvingdp.experiment import parameter

NOTEBOOK = "evolving/heavy_thresh"


class Params(experiment.Params):
    """The stream of Brown's categories; the dictionaries are fixed. The presets differ in the number of runs."""

    n_users: int = parameter(10_000_000, symbol="$n$", unit="users", meaning="users", ge=10**5, le=10**10)
    epochs_each: int = parameter(4, symbol="", unit="epochs", meaning="epochs that a category lasts", ge=1, le=100)
    epoch_length: int = parameter(
        4_000_000, symbol=r"$\ell$", unit="words", meaning="words of a user in an epoch", ge=10**4, le=10**9
    )
    epsilon: float = parameter(4.0, symbol=r"$\epsilon$", meaning="privacy loss of a user in all epochs", gt=0, le=20)
    beta: float = parameter(0.05, symbol=r"$\delta$", meaning="failure probability of the accuracy statement", gt=0, lt=1)
    repetitions: int = parameter(3, symbol="", unit="runs", meaning="runs on Brown and on each dictionary", ge=2, le=1000)

    metric = experiment.Metric(
        "recall_tuned", "share of the ten most frequent words that HEAVYTHRESH finds", better="higher"
    )
    presets = {"paper": {"repetitions": 10}}

    @model_validator(mode="after")
    def _feasible(self) -> Self:
        from evolvingdp.evolving.experiments.heavy_thresh.settings import brown_settings

        brown_settings(self)
        return self
