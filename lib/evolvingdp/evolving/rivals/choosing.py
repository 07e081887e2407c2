"""Which protocol to run for a mean that may change, from what is public before any data are.

**Computes** for every method the mean absolute error, over the epochs, on each of several streams (`streams`). A method's
regret on a stream is its error over that of the best method there; `choose` takes the method whose largest regret is the
smallest, and of those within a tenth of it the one with the smallest in geometric mean.

- `tuned`, THRESH as `Thresh.tuned`. It stops updating after the changes that it is planned for: where there are more, or a
  drift, its last estimate stays.
- `detected`, users split over epochs, averaged between the changes that are detected; `smoothed` (in hindsight only), by
  `Once.smooth`; `reserve`, with crews that wait for a change (online only); `once`, users split over epochs, or over periods
  of 2, 4, 8, ... epochs. These go on whatever happens.

**Privacy.** That of the protocol taken: each is pure epsilon-local differential privacy of everything that one user ever
sends. The choice reads no data.

**Error.** Beside exact simulation on the same streams, predicted errors were .8 to 1.3 times those measured.

Of each epoch that of a normal estimate with a bias, which is what a run without noise has there.

**Source.** Ours. The notebook `evolving/choosing` measures regrets on streams drawn at random.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import erf

from evolvingdp.core import checks
from evolvingdp.core.detection import Watch, detect_many
from evolvingdp.evolving import thresh_simulation
from evolvingdp.evolving.rivals import once, reserve
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.rivals.reserve import Crews, Reserve
from evolvingdp.evolving.streams import BitStream, drift
from evolvingdp.evolving.thresh import Thresh

PLANNED = "planned"  # the stream that a promise is about
WEEK = 7  # epochs
_EXAMPLES = 3  # of streams with changes
_ALIKE = 1.1  # regrets within this factor of the smallest
_SEEN = 0.5  # the false-alarm rate of an online search without noise: it sees what half of all searches with noise have seen
_STEADY = (0.6, 0.75, 0.9)  # shares of a reserve's users who do not wait
_GOLDEN = (math.sqrt(5) - 1) / 2

Array = NDArray[np.float64]
Settings = Thresh | Once | Reserve
Run = tuple[Array, Array]  # bias and standard error of every epoch of every stream, (horizon, streams)


@checks.draws
@dataclass(frozen=True)
class Choice:
    """The `method` of the smallest `regret`, which is the largest over the streams. `predicted`: mean errors, by method and
    stream; `settings` of all methods that are possible, `refused`: why others are not."""

    method: str
    regret: dict[str, float]
    predicted: dict[str, dict[str, float]]
    settings: dict[str, Settings]
    online: bool
    refused: dict[str, str]

    def __str__(self) -> str:
        worst = max(self.predicted[self.method], key=lambda stream: self._ratio(self.method, stream))
        return (
            f"{self.method}: on every stream at most {self.regret[self.method]:.2f} times the error of the best method "
            f"there (most on {worst!r})"
        )

    def _ratio(self, method: str, stream: str) -> float:
        return self.predicted[method][stream] / min(each[stream] for each in self.predicted.values())

    def simulate(self, stream: BitStream, rng: np.random.Generator, method: str | None = None) -> Array:
        """Estimates of all epochs, (horizon,), clipped to [0, 1], by the method chosen, or by another."""
        name = self.method if method is None else method
        checks.one_of(tuple(self.settings), method=name)
        return follow(self.settings[name], stream, rng, name, self.online)


@checks.draws
def follow(
    settings: Settings, stream: BitStream, rng: np.random.Generator, method: str = "once", online: bool = False
) -> Array:
    """Estimates of all epochs of one run, (horizon,), clipped to [0, 1]; of users once averaged if "detected", or
    "smoothed"."""
    if isinstance(settings, Reserve):
        found = np.array([release.estimate[1] for release in reserve.simulate(settings, stream, rng)])
    elif isinstance(settings, Thresh):
        found = thresh_simulation.simulate(settings, stream, rng).estimate
    else:
        tally = once.simulate(settings, stream, rng)
        if method == "smoothed":
            found = settings.smooth(tally, rng).estimates
        else:
            found = settings.detect(tally, online=online).estimates if method == "detected" else settings.estimates(tally)
        found = settings.lots.hold(found[:, 1])
    return np.clip(filled(found), 0, 1)


def filled(estimates: Array) -> Array:
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
    promised: bool = False,
    online: bool = False,
) -> Choice:
    """The protocol with the smallest regret, planned for `changes` changes of the mean, each of all users
    together; with `promised`, on streams with exactly these. With `online`, estimates must be there when their epoch ends;
    else change detection may read later epochs, which the others never do."""
    checks.integer_at_least(0, changes=changes)
    checks.integer_at_least(1, epoch_length=epoch_length)
    size = (n_users, horizon, epoch_length, epsilon)
    one = Once(n_users, horizon, epsilon)
    periods = [1 << power for power in range(horizon.bit_length())]
    ways: dict[str, Callable[[], list[Settings]]] = {
        "tuned": lambda: [Thresh.tuned(*size, changes=changes, spare=spare) for spare in (0, 1)],
        "detected": lambda: [one],
        "reserve": lambda: _waiting(n_users, horizon, epsilon, changes, online),
        "smoothed": lambda: _late(one, online),
        "once": lambda: [Once(n_users, horizon, epsilon, every=every) for every in periods],
    }
    examples = streams(horizon, changes)
    if promised:
        examples = {PLANNED: examples[PLANNED]}
    table = np.array([means for each in examples.values() for means in each]).T
    kinds = np.repeat(np.array(list(examples)), [len(each) for each in examples.values()])
    candidates, refused = list[tuple[str, Settings, dict[str, float]]](), {}
    for method, make in ways.items():
        try:
            made = make()
        except ValueError as error:
            refused[method] = str(error)
            continue
        for settings in made:
            each = _errors(method, settings, table, one, online)
            candidates.append((method, settings, {name: float(np.mean(each[kinds == name])) for name in examples}))
    least = {name: min(errors[name] for _, _, errors in candidates) for name in examples}

    def regrets(errors: dict[str, float]) -> list[float]:
        return [errors[name] / least[name] for name in examples]

    smallest = min(max(regrets(errors)) for _, _, errors in candidates)

    def rank(errors: dict[str, float]) -> tuple[float, float]:
        worst = max(regrets(errors))
        return max(worst, _ALIKE * smallest), float(np.mean(np.log(regrets(errors))))

    ranked = sorted(candidates, key=lambda each: rank(each[2]))
    found: dict[str, tuple[Settings, dict[str, float]]] = {}
    for method, settings, errors in ranked:
        found.setdefault(method, (settings, errors))
    return Choice(
        ranked[0][0],
        {name: max(regrets(errors)) for name, (_, errors) in found.items()},
        {name: errors for name, (_, errors) in found.items()},
        {name: settings for name, (settings, _) in found.items()},
        online,
        refused,
    )


def _waiting(n_users: int, horizon: int, epsilon: float, changes: int, online: bool) -> list[Settings]:
    if not online:
        raise ValueError("online must be True for a reserve, which is called at once: in hindsight all reports are as good")
    return [Reserve(n_users, horizon, epsilon, changes, steady=steady) for steady in _STEADY]


def _late(one: Once, online: bool) -> list[Settings]:
    if online:
        raise ValueError("online must be False for a smoother, which reads later epochs")
    return [one]


def streams(horizon: int, changes: int) -> dict[str, list[Array]]:
    """What may be true, means (horizon,) by name: none, planned, twice and four times the changes (of at least one), at
    places and to means that are evenly spread; a drift, a week's rhythm, an adoption."""
    checks.integer_at_least(1, horizon=horizon)
    often = max(1, changes)
    named = {"constant": 0, PLANNED: changes, "twice": 2 * often, "four times": 4 * often}
    found = {
        name: [_jumps(horizon, min(count, horizon - 1), turn) for turn in range(_EXAMPLES if count else 1)]
        for name, count in named.items()
    }
    time = np.arange(horizon)
    found["drift"] = [drift(horizon, 0.2, 0.6)]
    found["week"] = [np.where(time % WEEK >= WEEK - 2, 0.35, 0.5)]
    found["adoption"] = [0.05 + 0.8 / (1 + np.exp(-10 * (time / max(horizon - 1, 1) - 0.5)))]
    return found


def _jumps(horizon: int, changes: int, turn: int) -> Array:
    """`changes` places, each uniform within its part of the horizon, and means along the golden ratio's multiples."""
    number = np.arange(1, changes + 1)
    within = ((number + 7 * turn) * _GOLDEN**2 + turn / _EXAMPLES) % 1
    places = 1 + np.floor((number - 1 + within) * (horizon - 1) / max(changes, 1)).astype(int)
    means = ((np.arange(changes + 1) + 5 * turn + 1) * _GOLDEN) % 1
    return np.asarray(means[np.searchsorted(places, np.arange(horizon), side="right")])


def _error(bias: Array, standard_error: Array) -> Array:
    """The mean over epochs of |bias + normal error|, 1/2 at most, as it is clipped, (streams,)."""
    ratio = np.abs(bias) / standard_error / math.sqrt(2)
    folded = standard_error * math.sqrt(2 / math.pi) * np.exp(-(ratio**2)) + np.abs(bias) * erf(ratio)
    return np.asarray(np.mean(0.5 * np.tanh(2 * folded), axis=0))


def _errors(method: str, settings: Settings, means: Array, one: Once, online: bool) -> Array:
    """Of all streams, (streams,), whose means are (horizon, streams)."""
    if isinstance(settings, Thresh):
        return _error(*voted(settings, means))
    if isinstance(settings, Reserve):
        return _error(*_watched(settings.once, means, settings.parts[1:]))
    if method == "smoothed":
        levels = [_error(*_levelled(settings, means, 4.0**-power)) for power in range(-2, 9)]
        return np.asarray(np.min([_error(*_averaged(settings, means)), *levels], axis=0))
    if method == "detected":
        return _error(*(_watched(settings, means, []) if online else _averaged(settings, means)))
    return _error(
        settings.lots.hold(means[settings.lots.epochs - 1]) - means, np.full(means.shape, settings.standard_error())
    )


def voted(voting: Thresh, means: Array) -> Run:
    """Of every epoch the bias, and the standard error of its last update, of THRESH where (horizon, streams) `means` are
    true.

    A user votes where the mean is beyond the threshold; all do, so that an update follows as long as there is one.
    """
    bias, reference, updates = np.zeros_like(means), np.zeros(means.shape[1]), np.zeros(means.shape[1], dtype=np.int64)
    for place, mean in enumerate(means):
        moved = (updates == 0) | (np.abs(mean - reference) > voting.threshold(place + 1))
        moved &= updates < voting.estimate_cap
        reference, updates = np.where(moved, mean, reference), updates + moved
        bias[place] = reference - mean
    ones = voting.report_one(np.clip(means + bias, 0, 1))
    return bias, np.sqrt(ones * (1 - ones) / voting.n_users) * voting.estimate_randomizer.debias


def _estimates(settings: Once, means: Array) -> tuple[Array, Array, Array]:
    """Of every epoch a report's variance, the number of reports, and the estimate: off by a standard error, up and down in
    turn, so that residuals are what they are on average."""
    variances, reports = settings.report.variance(means), np.full(means.shape, settings.n_users / len(means))
    told: Array = means + np.sqrt(variances / reports) * _turns(len(means))
    return variances, reports, told


def _turns(horizon: int) -> Array:
    return np.asarray(1.0 - 2 * (np.arange(horizon)[:, None] % 2), dtype=float)


def _watched(settings: Once, means: Array, waiting: list[int]) -> Run:
    (horizon, streams), (variances, reports, told) = means.shape, _estimates(settings, means)
    watch, rows, turns = Watch(horizon, 1, false_alarm=_SEEN, series=streams), np.arange(streams), _turns(horizon)
    crews, (sums, held) = Crews(waiting, streams), np.zeros((2, horizon + 1, streams))
    bias, error = np.zeros((2, horizon, streams))
    for place in range(horizon):
        watch.tell(told[place, :, None], reports[place], variances[place, :, None])
        if (asked := crews.call(watch)).any():
            reports[place] += asked
            more = means[place] + turns[place] * np.sqrt(variances[place] / reports[place])
            watch.tell(more[:, None], reports[place], variances[place, :, None], again=True)
        sums[place + 1], held[place + 1] = sums[place] + means[place] * reports[place], held[place] + reports[place]
        among = held[place + 1] - held[watch.start, rows]
        bias[place] = (sums[place + 1] - sums[watch.start, rows]) / among - means[place]
        error[place] = np.sqrt(variances[place] / among)
    return bias, error


def _averaged(settings: Once, means: Array) -> Run:
    variances, reports, told = _estimates(settings, means)
    fit, sums = detect_many(told, reports, variances), np.cumsum(np.vstack([np.zeros(means.shape[1]), means]), axis=0)
    lengths = np.rint(fit.reports / reports).astype(np.int64)
    ends = np.take_along_axis(sums, fit.starts + lengths, axis=0)
    return (ends - np.take_along_axis(sums, fit.starts, axis=0)) / lengths - means, np.sqrt(variances / fit.reports)


def _levelled(settings: Once, means: Array, ratio: float) -> Run:
    """A local level whose steps have `ratio` times an estimate's variance, far from both ends: weights fall off evenly."""
    decay = 1 / (1 + ratio / 2 + math.sqrt(ratio + ratio**2 / 4))
    reach = min(len(means) - 1, math.ceil(math.log(1e-4) / math.log(decay)))
    kernel = decay ** np.abs(np.arange(-reach, reach + 1))
    variances, reports, _ = _estimates(settings, means)
    total = scipy.ndimage.convolve1d(np.ones_like(means), kernel, axis=0, mode="constant")
    squares = scipy.ndimage.convolve1d(variances / reports, kernel**2, axis=0, mode="constant")
    return scipy.ndimage.convolve1d(means, kernel, axis=0, mode="constant") / total - means, np.sqrt(squares) / total
