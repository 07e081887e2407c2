"""Which protocol to run on data that change, from what is public before any data are.

**Computes** the predicted mean absolute error, over the epochs, of four ways to keep a mean up to date, and takes the best:
`crews`, THRESH with roles by lot; `tuned`, THRESH as `Thresh.tuned`; `detected`, users split over epochs, averaged between
the changes that are detected; `once`, users split over epochs, or over periods of 2, 4, 8, ... epochs.

**Privacy.** That of the protocol taken: each is pure epsilon-local differential privacy of everything that one user ever
sends. The choice reads no data.

**Error.** Predicted for `changes` changes at even distances L = T / (changes + 1) between means that are uniform on [0, 1],
so that a change is of size s with density 2 (1 - s). Noise of standard error e costs sqrt(2 / pi) e, or 1/2 at most. Each
change costs s besides, in so many epochs: for `crews` and `tuned` until the next one with a threshold below s, L where there
is none; for periods of m epochs (m - 1) / 2; for `detected`, with v the variance of an epoch's estimate, 1.5 v / s^2, the
mean distance of the largest point of a two-sided random walk with drift (Yao 1987), or 2 L / 3 where the saving s^2 L / 2v
is below the penalty: an average over L1 epochs before and L2 after an unseen change costs 2 s L1 L2 / (L1 + L2), and that is
2 s L / 3 in the mean between random places. Online, when an epoch's estimate may read no later epoch, detection takes
v penalty / s^2 epochs, and an average is of those reports of its segment that have come.

**Where the plan is wrong**, so can the choice be: `crews` and `tuned` stop updating after the changes that they are planned
for, so that more changes, or a drift, cost them many times the error of `detected`. Where nobody promises the number of
changes, ask for `methods=("detected", "once")`, whose estimates go on whatever happens.

**Source.** Ours. That the choice has at most twice the mean error of the best of all methods on a map of inputs, and 1.1
times in geometric mean, is a claim of the notebook `evolving/choosing`, which measures it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.evolving import thresh_simulation
from evolvingdp.evolving.rivals import crew_thresh, once
from evolvingdp.evolving.rivals.crew_thresh import CrewThresh
from evolvingdp.evolving.rivals.detection import penalty
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.streams import BitStream
from evolvingdp.evolving.thresh import Thresh

METHODS = ("crews", "tuned", "detected", "once")
_SIZES = (np.arange(200) + 0.5) / 200  # of changes
_SHARES = 2 * (1 - _SIZES) / 200

Settings = CrewThresh | Thresh | Once


@dataclass(frozen=True)
class Choice:
    """The `method` of the smallest predicted error. `predicted` and `settings` of all methods that are possible;
    `refused`: why others are not."""

    method: str
    predicted: dict[str, float]
    settings: dict[str, Settings]
    online: bool
    refused: dict[str, str] = field(default_factory=dict)

    def simulate(self, stream: BitStream, rng: np.random.Generator, method: str | None = None) -> NDArray[np.float64]:
        """Estimates of all epochs, (horizon,), clipped to [0, 1], by the method chosen, or by another."""
        name = self.method if method is None else method
        checks.one_of(tuple(self.settings), method=name)
        settings = self.settings[name]
        if isinstance(settings, CrewThresh):
            found = crew_thresh.traced(settings, stream, rng).estimate
        elif isinstance(settings, Thresh):
            found = thresh_simulation.simulate(settings, stream, rng).estimate
        else:
            tally = once.simulate(settings, stream, rng)
            averaged = name == "detected"
            found = settings.detect(tally, online=self.online).estimates if averaged else settings.estimates(tally)
            found = settings.lots.hold(found)
        return np.clip(_filled(found), 0, 1)


def _filled(estimates: NDArray[np.float64]) -> NDArray[np.float64]:
    """An epoch without an estimate has the last one; before the first it is 1/2."""
    last = np.maximum.accumulate(np.where(np.isnan(estimates), -1, np.arange(len(estimates))))
    return np.where(last < 0, 0.5, estimates[last])


@checks.plain
def choose(
    n_users: int,
    horizon: int,
    epoch_length: int,
    epsilon: float,
    *,
    changes: int,
    online: bool = False,
    beta: float = 0.05,
    methods: tuple[str, ...] = METHODS,
) -> Choice:
    """The protocol of `methods` for `changes` changes of the mean, each of all users together. With `online`, estimates must
    be there when their epoch ends; else change detection may read later epochs, which the others never do. Raises
    ValueError with the first one's reason where none of them is possible."""
    checks.integer_at_least(0, changes=changes)
    if not methods or not set(methods) <= set(METHODS):
        raise ValueError(f"methods must be some of {', '.join(METHODS)}, got {methods!r}")
    size = (n_users, horizon, epoch_length, epsilon)
    ways: dict[str, Callable[[], tuple[Settings, float]]] = {
        "crews": lambda: _voted(CrewThresh.plan(*size, changes=changes, beta=beta), changes),
        "tuned": lambda: _voted(Thresh.tuned(*size, changes=changes, beta=beta), changes),
        "detected": lambda: _detected(Once(*size), changes, online),
        "once": lambda: min((_split(Once(*size, every), changes) for every in _periods(horizon)), key=lambda way: way[1]),
    }
    predicted, settings, refused = {}, {}, {}
    for method in methods:
        try:
            settings[method], predicted[method] = ways[method]()
        except ValueError as error:
            if method in ("once", "detected"):  # possible for all sizes that make sense
                raise
            refused[method] = str(error)
    if not predicted:
        raise ValueError(next(iter(refused.values())))
    return Choice(min(predicted, key=lambda method: predicted[method]), predicted, settings, online, refused)


def _periods(horizon: int) -> list[int]:
    return [1 << power for power in range(horizon.bit_length())]


def noise(standard_error: float) -> float:
    """The mean error of a normal estimate: sqrt(2 / pi) standard errors, and 1/2 at most, as it is clipped."""
    return 0.5 * math.tanh(2 * math.sqrt(2 / math.pi) * standard_error)


def _voted(settings: CrewThresh | Thresh, changes: int) -> tuple[Settings, float]:
    voting = settings.voting if isinstance(settings, CrewThresh) else settings
    error = settings.standard_error() if isinstance(settings, CrewThresh) else settings.standard_error
    lasts = voting.horizon / (changes + 1)
    waits = np.full(len(_SIZES), lasts)
    for trailing in range(voting.levels, -1, -1):
        seen = voting.threshold(1 << trailing) < _SIZES
        waits[seen] = np.minimum(waits[seen], ((1 << trailing) - 1) / 2)
    return settings, noise(error) + _stale(voting.horizon, changes, waits)


def _stale(horizon: int, changes: int, epochs: NDArray[np.float64]) -> float:
    """The mean error over all epochs of `changes` changes that stay unseen for so many epochs, by size."""
    return min(0.5, changes / horizon * float(_SHARES @ (epochs * _SIZES)))


def _split(settings: Once, changes: int) -> tuple[Settings, float]:
    waits = np.full(len(_SIZES), (settings.every - 1) / 2)
    return settings, noise(settings.standard_error) + _stale(settings.horizon, changes, waits)


def _detected(settings: Once, changes: int, online: bool) -> tuple[Settings, float]:
    horizon, lasts = settings.horizon, settings.horizon / (changes + 1)
    variance, fine = settings.standard_error**2, penalty(settings.horizon)
    seen, blurred = _SIZES**2 * lasts / 2 > variance * fine, 2 * lasts / 3
    if online:
        epochs = np.where(
            seen, np.clip(variance * fine / _SIZES**2 - 1, 0, lasts), blurred
        )  # none where one epoch is enough
        come = 1 / np.arange(1, max(1, round(lasts)) + 1)
        error = float(np.mean([noise(math.sqrt(variance * share)) for share in come]))
    else:
        epochs = np.where(seen, np.minimum(lasts, 1.5 * variance / _SIZES**2), blurred)
        error = noise(math.sqrt(variance / lasts))
    return settings, error + _stale(horizon, changes, epochs)
