"""Which mean for which stream: the parameters."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from evolvingdp import experiment
from evolvingdp.experiment import parameter

Fill = Annotated[float, Field(gt=0, le=1)]


class Params(experiment.Params):
    """Users of at most m samples, who together send a part of what they may: T/(nm)."""

    n_users: int = parameter(400, symbol="$n$", unit="users", meaning="users", ge=100, le=10**6)
    samples_per_user: int = parameter(64, symbol="$m$", unit="samples", meaning="samples of a user at most", ge=4, le=2**14)
    fills: tuple[Fill, ...] = parameter(
        (0.0625, 0.25, 1.0), symbol="$T/(nm)$", meaning="how much of their cap users send, together"
    )
    epsilon: float = parameter(2.0, symbol=r"$\epsilon$", meaning="privacy loss of a user", ge=1e-6, le=100)
    delta: float = parameter(1e-6, symbol=r"$\delta$", meaning="delta of the Gaussian means", gt=0, lt=1)
    days: int = parameter(64, symbol="", unit="days", meaning="days of the stream whose windows are compared", ge=8, le=4096)
    per_day: int = parameter(
        3, symbol="$c$", unit="samples", meaning="samples of a user that count on one day", ge=1, le=1000
    )
    repetitions: int = parameter(2, symbol="", unit="runs", meaning="runs of each mean", ge=2, le=1000)

    metric = experiment.Metric("day_alone", "stated error of one day with noise of its own, pure")
    presets = {
        "paper": {"n_users": 3000, "samples_per_user": 256, "repetitions": 4, "fills": (0.015625, 0.0625, 0.25, 0.5, 1.0)}
    }

    _each_once = field_validator("fills")(experiment.distinct)
