"""From Algorithms 2 and 6 to what we recommend; (epsilon, delta), dimensions, and where nothing helps.

Three settings: random and Zipf-active users with few samples, and users who all use up their cap.  `run` gives a row per
setting, rung and run: mean squared error over the second half of the stream, and what was predicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import chi2

from evolvingdp.book import engine
from evolvingdp.book.own import Release, checked
from evolvingdp.book.params import Metric
from evolvingdp.book.words import digits
from evolvingdp.continual_mean import algorithms, choosing, private_median, streams
from evolvingdp.continual_mean.blocks import Blocks
from evolvingdp.continual_mean.prefix_sums import Buffered, exponentials
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core import accounting, checks
from evolvingdp.core.seeds import stream
from evolvingdp.notebooks.continual_mean.own_values import released
from evolvingdp.notebooks.continual_mean.scores import ORDER_NAMES, root_mean_square, second_half
from evolvingdp.streams import reading

METRIC = Metric("random_recommended", "root mean square error of the recommended mean, random order")

CLAIMS = """
random_recommended / random_full <= 0.02   What is recommended for any users errs by a fiftieth of corrected Algorithm 6, in random order: ratio, pure
random_cap / random_naive <= 0.2           Most of the gain is the cap's: Algorithm 2 with one of 2T/n over it without, random order
most_over_stated <= allowed_over_stated    Errors are as stated for any users, noise and bias, but for chance: largest measured over stated
most_alike <= allowed_alike                For users alike errors are as stated where they are, but for chance: largest measured over stated
least_differing >= 3                       Where the most active are of one kind, these err more than they state: the smaller ratio
pure_over_gaussian >= 3                    In the most dimensions Gaussian noise beats epsilon / d: ratio of stated errors
random_root_total <= random_harmonic_total   The filter 1, 1/2, 1/3, ... states no less at the same guarantee: random order
random_root_total / random_square_root_total <= 0.95   A filter fitted to means states a twentieth less than the square root: ratio, random order
? quick * random_recommended_total <= 0.0033   Recommended, pure, random order: error and bias stated, at most as planned
? quick * random_root_total <= 0.0016      Recommended with delta, random order: the same
? paper * random_recommended <= 0.00148    Recommended, pure, random order: error measured, at most as planned
? paper * random_root <= 0.00071           Recommended with delta, random order: the same
? paper * random_alike_stated <= 0.0012    Users alike, pure, random order: error stated, at most as planned
? paper * random_alike_root_stated <= 0.0007   With delta, random order: the same
? paper * zipf_alike_root_stated <= 0.00107    With delta, Zipf users: the same
? paper * full_alike_root_stated <= 0.00101    With delta, full users: the same
"""

SETTINGS = {"random": "random order", "zipf": "Zipf users", "full": "full users"}
PLANNED = {  # the sizes that the bounds on errors were planned for: one tree, a cap near 2T/n
    "quick": (5000, 1024, 100_000, 2.0, 500, 512, 4.0),
    "paper": (50_000, 4096, 1_000_000, 2.0, 2000, 2048, 4.0),
}
KEPT = 60  # steps
POPULATION_RUNS = 2  # each error is many times the stated one, or not

KEYS = {  # what each is called in the names of a result's values
    (NAIVE := "Algorithm 2, binary tree"): "naive",
    (CAP := "+ a cap of 2T/n"): "cap",
    (RECOMMENDED := "recommended, pure"): "recommended",
    (NAIVE_ROOT := "Algorithm 2, eight buffers, (eps, delta)"): "naive_root",
    (RECOMMENDED_DELTA := "recommended, (eps, delta)"): "root",
    (HARMONIC := "filter 1, 1/2, 1/3, ..., (eps, delta)"): "harmonic",
    (FULL := "Algorithm 6, corrected"): "full",
    (ALIKE := "users alike, pure"): "alike",
    (ALIKE_DELTA := "users alike, (eps, delta)"): "alike_root",
}
LADDER = tuple(KEYS)
ANY_USERS = (NAIVE, CAP, RECOMMENDED, NAIVE_ROOT, RECOMMENDED_DELTA, HARMONIC)  # what these state holds for any users
FOR_ALL_USERS = (RECOMMENDED, RECOMMENDED_DELTA, ALIKE, ALIKE_DELTA)
POPULATIONS = {
    "beta": ("full", "means from Beta(3, 7), full users"),
    "two kinds": ("full", "a tenth always sends 1, full users"),
    "active kind": ("zipf", "the most active tenth always sends 1, Zipf users"),
}


ORDER_RUNGS = (NAIVE, RECOMMENDED, RECOMMENDED_DELTA, ALIKE, ALIKE_DELTA)


def check(params: Any) -> dict[str, Any]:
    """Raise ValueError where an epsilon is too small for integer noise, or no value lies between the bounds."""
    if not params.low < params.high:
        raise ValueError(f"low must be less than high = {params.high:g}, got {params.low:g}")
    if params.data:
        return checked(params, reading.read_values, params.low, params.high)
    for setting in SETTINGS:
        name, dimensions = ("full_epsilon", 1) if setting == "full" else ("epsilon", max(params.dimensions))
        _fits(name, *sizes(params, setting), dimensions)
    return {}


def sizes(params: Any, setting: str) -> tuple[int, int, float, int]:
    """n, m, epsilon and the horizon of a setting."""
    if setting == "full":
        return params.full_users, params.full_samples, params.full_epsilon, params.full_users * params.full_samples
    return params.n_users, params.samples_per_user, params.epsilon, params.horizon


class Harmonic(Buffered):
    """C_j = 1 / (j + 1), the first column of the matrix of running means: the integral of e^(-(j + 1) e^u) e^u, 16 terms."""

    @cached_property
    def terms(self) -> Any:
        rates = np.exp(np.linspace(-math.log(self.capacity) - 5, 1.5, 16))
        return exponentials(rates * np.exp(-rates), np.exp(-rates), -np.expm1(-rates))


class OfTheMean(UserMean):
    """The filter that the public code for the task of Kalinin et al. (2026) has, as far as we can see, in our engine."""

    @cached_property
    def filter(self) -> Harmonic:
        return Harmonic(self.capacity)


@cache
def rung_of(
    name: str, n_users: int, cap: int, epsilon: float, horizon: int, delta: float, order: str = "random", seed: int = 0
) -> UserMean | Blocks:
    """The settings of one of `LADDER`; `delta` is for those with Gaussian noise.

    The recommended ones are chosen by another stream whose users arrive in this `order`, as last month's might have.
    """
    checks.one_of(LADDER, name=name)
    if name == HARMONIC:
        draft = OfTheMean(n_users, cap, epsilon, delta, horizon=horizon, excess="drop", clip=True)
        return choosing.searched(draft, _stream_before(order, n_users, cap, horizon, seed), {"decay": 1.0})[0]
    if name in (RECOMMENDED, RECOMMENDED_DELTA, ALIKE, ALIKE_DELTA):
        make = choosing.recommended if name in (RECOMMENDED, RECOMMENDED_DELTA) else choosing.users_alike
        own_delta = delta if name in (RECOMMENDED_DELTA, ALIKE_DELTA) else 0.0
        before = _stream_before(order, n_users, cap, horizon, seed)
        return make(n_users, cap, epsilon, own_delta, arrivals=before, horizon=horizon)
    if name in (NAIVE, CAP, NAIVE_ROOT):
        made = algorithms.naive(n_users, cap, epsilon, horizon=horizon)
        if name == CAP:
            return made.but(samples_per_user=min(cap, max(1, 2 * horizon // n_users)), excess="drop")
        return made if name == NAIVE else UserMean(n_users, cap, epsilon, delta, horizon=horizon)
    return algorithms.full(n_users, cap, epsilon, horizon=horizon)


@lru_cache(maxsize=1)  # rungs of a setting follow each other
def _stream_before(order: str, n_users: int, cap: int, horizon: int, seed: int) -> NDArray[np.int64]:
    return streams.arrivals(order, n_users, cap, horizon, stream(seed, "stream before", order))


def _fits(name: str, n_users: int, cap: int, epsilon: float, horizon: int, dimensions: int) -> None:
    """Raise ValueError with the parameter `name` where the epsilon is too small for integer noise on some rung."""
    try:
        algorithms.naive(n_users, cap, epsilon / dimensions, horizon=horizon, integer=True, branching=0)
    except ValueError:
        raise ValueError(
            f"{name} must be larger, or users, samples, horizon and dimensions fewer, so that integer noise fits in 64 "
            f"bits, got {name} = {epsilon:g}"
        ) from None


def rung(params: Any, setting: str, name: str, order: str = "", seed: int = 0) -> UserMean | Blocks:
    """The settings of a rung; users arrive in the setting's own order unless another is given."""
    own = "zipf" if setting == "zipf" else "random"
    return rung_of(name, *sizes(params, setting), params.delta, order or own, seed)


def data(params: Any, setting: str, seed: int, repetition: int) -> tuple[Any, Any]:
    """Users and bits of one run."""
    n_users, cap, _, horizon = sizes(params, setting)
    rng = stream(seed, "data", setting, repetition)
    users = streams.arrivals("zipf" if setting == "zipf" else "random", n_users, cap, horizon, rng)
    return users, streams.bits(params.mean, horizon, rng)


def run(params: Any, seed: int) -> pd.DataFrame:
    """A row per part, setting or order, rung and run."""
    return pd.DataFrame(engine.rows((part, params, seed, *name) for part, *name in _runs(params)))


def _runs(params: Any) -> Iterator[tuple[Any, ...]]:
    """Part, setting or order, repetition: each has its own data and noise."""
    yield from ((_ladder, setting, repetition) for setting in SETTINGS for repetition in range(params.repetitions))
    few = range(2)
    yield from ((_dimensions, repetition) for repetition in few)
    yield from ((_orders, order, repetition) for order in streams.ORDERS for repetition in few)
    yield from ((_one_block, repetition) for repetition in few)
    yield from (
        (_populations, population, repetition) for population in POPULATIONS for repetition in range(POPULATION_RUNS)
    )


def _ladder(params: Any, seed: int, setting: str, repetition: int) -> Iterator[dict[str, Any]]:
    users, bits = data(params, setting, seed, repetition)
    mean = algorithms.running_mean(bits)[len(bits) // 2 :]
    for name in LADDER:
        settings = rung(params, setting, name, seed=seed)
        released = settings.release(users, bits, stream(seed, "noise", setting, name, repetition))
        common = {"part": "ladder", "setting": setting, "repetition": repetition, "rung": name}
        yield common | second_half(released, mean) | {"used": float(released.samples[-1] / len(users))}


def _dimensions(params: Any, seed: int, repetition: int) -> Iterator[dict[str, Any]]:
    """What a coordinate of d dimensions costs: the first coordinate's error, its budget being a share of all."""
    horizon = params.horizon
    n_users, cap, epsilon, _ = sizes(params, "random")
    before = _stream_before("random", n_users, cap, horizon, seed)
    pure = choosing.recommended(n_users, cap, epsilon, arrivals=before, horizon=horizon)
    gaussian = choosing.recommended(n_users, cap, epsilon, params.delta, arrivals=before, horizon=horizon, decay=1.0)

    def composed(dimension: int) -> UserMean:
        return pure.but(epsilon=accounting.optimal(epsilon, params.delta, dimension))

    kinds: dict[str, Callable[[int], UserMean]] = {
        "pure: epsilon / d": lambda d: pure.but(dimensions=d),
        "(eps, delta): optimal composition": lambda d: composed(d) if d > 1 else pure,
        "(eps, delta): Gaussian": lambda d: gaussian.but(dimensions=d),
    }
    users, bits = data(params, "random", seed, repetition)
    mean = algorithms.running_mean(bits)[horizon // 2 :]
    for name, kind in kinds.items():
        for dimension in params.dimensions:
            noise = stream(seed, "dimension", name, dimension, repetition)
            errors = second_half(kind(dimension).release(users, bits, noise), mean)
            yield {"part": "dimensions", "rung": name, "dimension": dimension, "repetition": repetition, **errors}


def _orders(params: Any, seed: int, order: str, repetition: int) -> Iterator[dict[str, Any]]:
    """What is shown of `LADDER`, over time, on every order of arrival."""
    n_users, cap, _, horizon = sizes(params, "random")
    steps = np.unique(np.round(np.geomspace(10, horizon, KEPT)).astype(np.int64))
    rng = stream(seed, "order data", order, repetition)
    users = streams.arrivals(order, n_users, cap, horizon, rng)
    bits = streams.bits(params.mean, horizon, rng)
    mean = algorithms.running_mean(bits)
    for name in ORDER_RUNGS:
        settings = rung(params, "random", name, order, seed)
        noise = stream(seed, "order noise", order, name, repetition)
        released = settings.release(users, bits, noise)
        squares = (released.estimate - mean) ** 2
        for step in steps:
            yield {
                "part": "orders",
                "rung": name,
                "setting": order,
                "repetition": repetition,
                "step": int(step),
                "square": float(np.mean(squares[step - 1 : max(step, int(1.1 * step))])),
                "predicted": float(released.standard_error[step - 1] ** 2),
                "bias": float(released.bias[step - 1]),
            }


def _one_block(params: Any, seed: int, repetition: int) -> Iterator[dict[str, Any]]:
    """Users alike, one after the other: Algorithm 3 with a prior from a private median of the first users' means.

    Each user is in the median or in the sums, all samples at once, so that either may cost epsilon.  An array holds one user,
    whose cost changes by 1 and not by 2: the median has twice the epsilon.
    """
    _, cap, epsilon, horizon = sizes(params, "random")
    level, complete = max(2, cap.bit_length()), horizon // cap
    first = private_median.n_arrays(2 * epsilon, level, 0.05)
    if complete < 2 * first:
        return  # too few users for both
    rng = stream(seed, "one block", repetition)
    users = streams.arrivals("contiguous", complete, cap, complete * cap, rng)
    bits = streams.bits(params.mean, len(users), rng)
    means = bits[: first * cap].reshape(first, cap).mean(axis=1)
    prior = private_median.draw(means, 2 * epsilon, level, rng)
    settings = algorithms.wishful(complete - first, cap, epsilon, prior, branching=0, integer=True, clip=True)
    later = slice(first * cap, None)
    released = settings.release(users[later] - first, bits[later], stream(seed, "one block noise", repetition))
    yield {"part": "one block", "repetition": repetition, "square": float((released.estimate[-1] - bits.mean()) ** 2)}


def _populations(params: Any, seed: int, population: str, repetition: int) -> Iterator[dict[str, Any]]:
    """Distance to the mean of all readings so far where each user has a mean of their own."""
    setting, _ = POPULATIONS[population]
    n_users, cap, _, horizon = sizes(params, setting)
    data = stream(seed, "population data", population, repetition)
    users, bits = streams.readings(population, "zipf" if setting == "zipf" else "random", n_users, cap, horizon, data)
    truth = algorithms.running_mean(bits)[horizon // 2 :]
    for name in FOR_ALL_USERS:
        settings = rung(params, setting, name, seed=seed)
        noise = stream(seed, "population noise", population, name, repetition)
        errors = second_half(settings.release(users, bits, noise), truth)
        yield {"part": "populations", "rung": name, "setting": population, "repetition": repetition, **errors}


def part(table: pd.DataFrame, name: str, by: list[str]) -> pd.DataFrame:
    """Root mean square errors with bands, the root of the mean predicted square, and the bias, of a part of the table."""
    mine = table[table.part == name].set_index(by)
    stated = mine.groupby(level=by, sort=False)[["predicted", "bias"]].mean()
    return root_mean_square(mine.square, by).assign(
        predicted=np.sqrt(stated.predicted).to_numpy(), bias=stated.bias.to_numpy()
    )


def ladder_table(table: pd.DataFrame) -> pd.DataFrame:
    """The page's table: error of each rung over the second half of the stream, measured (stated)."""
    return _shown(part(table, "ladder", ["rung", "setting"]), list(LADDER), SETTINGS)


def populations_table(table: pd.DataFrame) -> pd.DataFrame:
    """The page's table of users who differ, second half, measured (stated)."""
    titles = {population: title for population, (_, title) in POPULATIONS.items()}
    return _shown(part(table, "populations", ["rung", "setting"]), list(FOR_ALL_USERS), titles)


def orders_table(table: pd.DataFrame) -> pd.DataFrame:
    """The page's table of orders: error after a hundredth of the stream, and at its end."""
    frame = part(table, "orders", ["rung", "setting", "step"])
    steps = np.sort(frame.step.unique())
    early = steps[np.argmin(np.abs(steps - frame.step.max() / 100))]
    wide = frame.pivot(index=["step", "rung"], columns="setting", values="rmse")
    asked = wide.loc[[(step, name) for step in (early, steps[-1]) for name in frame.rung.unique()], list(ORDER_NAMES)]
    when = np.repeat(["early", "end"], len(asked) // 2)
    return asked.map(digits).reset_index().assign(step=when).rename(columns={"step": "when", **ORDER_NAMES})


def _shown(frame: pd.DataFrame, names: list[str], titles: dict[str, str]) -> pd.DataFrame:
    """A row per rung, a column per setting; what is stated for any users with the bias that is possible."""
    shown = []
    for row in frame.itertuples():
        bias = f" + {digits(row.bias)}" if 5e-5 < row.bias < 1 else ""
        shown.append(f"{digits(row.rmse)} ({digits(row.predicted)}{bias})")
    wide = frame.assign(shown=shown).pivot(index="rung", columns="setting", values="shown")
    return wide.reindex(names)[list(titles)].rename(columns=titles).reset_index()


def excess(errors: pd.DataFrame) -> pd.Series:
    """What the root mean square error has beyond the stated bias, over the stated standard error."""
    return (errors.rmse - errors.bias).clip(lower=0) / errors.predicted


def over_stated(runs: int, errors: int) -> float:
    """Largest of `errors` normal errors, root mean square of `runs`, over its stated one: exceeded once in 1000 tries."""
    return math.sqrt(chi2.ppf(1 - 1e-3 / errors, runs) / runs)


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    """What claims and prose read: errors by setting or order and `KEYS`, with what is stated and the possible bias."""
    errors, populations = (
        part(table, name, ["rung", "setting"]).set_index(["rung", "setting"]) for name in ("ladder", "populations")
    )
    orders = part(table, "orders", ["rung", "setting", "step"])
    last = orders[orders.step == params.horizon].set_index(["rung", "setting"])
    honest = [
        excess(frame.loc[[name for name in ANY_USERS if name in frame.index]]) for frame in (errors, populations, last)
    ]
    alike = excess(errors.loc[[ALIKE, ALIKE_DELTA]].assign(bias=0.0))
    differing = (populations.rmse / populations.predicted).loc[[ALIKE, ALIKE_DELTA]]
    by_dimension = part(table, "dimensions", ["rung", "dimension"]).set_index(["rung", "dimension"]).predicted
    one_block, most = table[table.part == "one block"].square, max(params.dimensions)
    given = (*(params.n_users, params.samples_per_user, params.horizon, params.epsilon),)
    given += (params.full_users, params.full_samples, params.full_epsilon)
    found: dict[str, Any] = {
        "runs": params.repetitions,
        "most_over_stated": max(float(one.max()) for one in honest),
        "allowed_over_stated": over_stated(POPULATION_RUNS, sum(map(len, honest))),
        "most_alike": alike.max(),
        "allowed_alike": over_stated(params.repetitions, len(alike)),
        "least_differing": min(differing[ALIKE, "active kind"], differing[ALIKE_DELTA, "active kind"]),
        "pure_over_gaussian": by_dimension["pure: epsilon / d", most] / by_dimension["(eps, delta): Gaussian", most],
        "contiguous_block_end": math.sqrt(one_block.mean()) if len(one_block) else math.nan,
        **{preset: 1.0 if given == size else math.nan for preset, size in PLANNED.items()},
        **{f"{row.Index[1]}_{KEYS[row.Index[0]]}_end": row.rmse for row in last.itertuples()},
    }
    for frame in (errors, populations):
        for (name, setting), row in frame.iterrows():
            key = f"{setting}_{KEYS[name]}".replace(" ", "_")
            found |= {key: row.rmse, f"{key}_stated": row.predicted, f"{key}_bias": row.bias}
    for setting in ("random", "zipf"):
        for name in (RECOMMENDED, RECOMMENDED_DELTA, HARMONIC, ALIKE):
            made, key = rung_of(name, *sizes(params, setting), params.delta, setting), f"{setting}_{KEYS[name]}"
            assert isinstance(made, UserMean)
            found |= {f"{key}_cap": made.samples_per_user, f"{key}_decay": made.decay}
            found[f"{key}_total"] = math.hypot(found[f"{key}_stated"], found[f"{key}_bias"])
    return found | {"random_square_root_total": _square_root_total(params)}


def _square_root_total(params: Any) -> float:
    """What is stated, noise and bias, in random order where the filter has no decay, and all else is chosen for that."""
    n_users, cap, epsilon, horizon = sizes(params, "random")
    before = _stream_before("random", n_users, cap, horizon, 0)
    made = choosing.recommended(n_users, cap, epsilon, params.delta, arrivals=before, horizon=horizon, decay=1.0)
    late = second_half(made.release(before, np.zeros(horizon, dtype=int), stream(0, "square root")), 0.0)
    return math.hypot(math.sqrt(late["predicted"]), late["bias"])


def of_own(params: Any, seed: int) -> Release:
    """The recommended running mean of a file's samples."""
    return released(params, params.delta, seed)
