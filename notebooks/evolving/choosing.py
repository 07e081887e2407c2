"""All methods for a mean on the same streams, where each wins, and what `choose` loses by not knowing which stream it will
be.

`run` gives a row per method and stream, `values` the numbers that claims and prose read, the rest is what the notebook's
cells show.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evolvingdp.book import engine
from evolvingdp.book.params import Metric
from evolvingdp.core import detection
from evolvingdp.core.geometry import spaces
from evolvingdp.core.reports import Hashed, Projective, Report, Sign, Subset, best_report, set_sizes
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import baselines
from evolvingdp.evolving.rivals.choosing import PLANNED, WEEK, Choice, Settings, choose, follow
from evolvingdp.evolving.rivals.few_changes import RANDOMIZERS, layers_error, layers_loss, tree
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.rivals.reserve import Reserve
from evolvingdp.evolving.streams import BitStream, drift
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.notebooks.evolving.split_users import (
    HINDSIGHT,
    ONCE,
    ONLINE,
    SIXTEEN,
    SMOOTHED,
    all_reported_once,
    all_with_reserve,
    errors,
    periods,
)

METRIC = Metric("worst_online", "largest error of the choice over that of the best method, on the map")

CLAIMS = """
within_online >= 0.95                       Online the choice has at most twice the best error, less two standard errors: share
within_late >= 0.95                         In hindsight, too: share
surely_online <= 3                          Online it never has three times that error: largest ratio, less two standard errors
surely_late <= 3                            In hindsight it never has three times that error: largest ratio, less two standard errors
mean_factor_online <= 1.5                   The choice is close to the best: geometric mean of the ratios, online
mean_factor_late <= 1.3                     The choice is close to the best: geometric mean of the ratios, in hindsight
? voted_wrong >= 5                          Votes planned for a quarter of the changes cost five times the choice's error: largest ratio
reserve_planned <= 1                        With changes as planned a reserve beats averages online without: geometric mean of the ratios
reserve_often <= 1.15                       With four times as many it costs little: the same ratio
late_once / pairs >= 0.5                    In hindsight each user once, averaged or smoothed, mostly has the smallest mean error: share
smoothed_moving <= 0.8                      A smoother beats averages on drifts and adoptions: geometric mean of the ratios
smoothed_planned <= 1.1                     With changes as planned it has no more error: the same ratio
? one_bit * won_short_votes <= 0            With the shortest epochs voting never has the smallest mean error: share
least_optimal >= 1                          Recomputing with optimal composition is nowhere better than each user once: its smallest ratio
0.85 <= long_over_short <= 1.15             Each user once does not need long epochs: mean error, longest over shortest
windows_same >= 1                           At the same guarantee, w = T, the choice beats LDP-IDS: geometric mean of ratios
half_of_epsilon >= 1.33                     Erlingsson et al. spend half of epsilon: error over that with all of it
best_tree <= 1                              The best randomizer, tuned, is the best tree: error over the best other's
detected_over_tree <= 1                     Each user once, averaged in hindsight, beats every tree: error over the best's
rare_best / rare_once <= 1                  At the longest horizon the best tree beats each user once as reported: ratio
0.119 <= two_layers_1 <= 0.121              Memoization with two layers of 0.5 each: exact loss of one report
1.26 <= two_layers_8 <= 1.28                Memoization with two layers of 0.5 each: exact loss of eight reports
"""

FACTOR = 2.0  # of the best of all methods, that the choice is to stay within
Size = tuple[int, int, int, float]  # n_users, horizon, epoch_length, epsilon

TUNED, OPTIMAL = "THRESH, tuned", r"every epoch, ($\epsilon$, $10^{-6}$)"
RESERVE, TOLD = "once, with a reserve", "THRESH, tuned, told the number"
CHOSEN, CHOSEN_LATE = "the choice, online", "the choice, in hindsight"
ABSORBED, DISTRIBUTED = "LDP-IDS, absorption (LPA)", "LDP-IDS, distribution (LPD)"  # another guarantee where w < T
DELTA = 1e-6  # of OPTIMAL
TREES = dict(
    zip(
        RANDOMIZERS,
        (
            "tree, Erlingsson et al.",
            "tree, Erlingsson et al., all of epsilon",
            "tree, best randomizer, tuned",
        ),
        strict=True,
    )
)
MEMOIZED = "two layers (RAPPOR)"  # another guarantee
REPORTS = ("one value (GRR)", "a set of values", "a point (projective)", "a hash (OLH)", "one sign (Hadamard)")
FEW_BITS = 16
EVENT = "every report by itself"  # other guarantees than the choice's: this one, and MEMOIZED's
STREAMS = ("constant", PLANNED, "twice", "four times", "drift", "week", "adoption")
CONSTANT = 400  # series in which there is no change to be found
SETTING = ["n_users", "epsilon", "epoch_length", "horizon", "kind"]
ALIASES = (CHOSEN, CHOSEN_LATE, SIXTEEN)
FAMILIES = (RESERVE, ONLINE, HINDSIGHT, SMOOTHED, TUNED)
LATE = [HINDSIGHT, SMOOTHED]
VIEWS = {
    "mean error, online": ("mean_error", True),
    "mean error, in hindsight": ("mean_error", False),
    "largest error, online": ("max_error", True),
}


def check(params: Any) -> None:
    """Raise ValueError where a horizon does not hold as many changes as are planned for."""
    if max(params.changes, *params.changes_sweep) >= params.horizon:
        raise ValueError(f"changes must be below the horizon, {params.horizon}, got {max(params.changes_sweep)}")
    if params.changes >= min(params.horizons):
        raise ValueError(f"horizons must be above the changes, {params.changes}, got {min(params.horizons)}")


def split(every: int) -> str:
    """Each user once, in one of the epochs 1, 1 + every, ..."""
    return ONCE if every == 1 else f"users split over periods of {every}"


def planned(size: Size, changes: int) -> dict[str, Settings]:
    """What is planned for a number of changes, as far as it is possible."""
    n_users, horizon, _, epsilon = size
    ways = {
        TUNED: lambda: Thresh.tuned(*size, changes=changes),
        RESERVE: lambda: Reserve(n_users, horizon, epsilon, changes),
    }
    found: dict[str, Settings] = {}
    for name, plan in ways.items():
        try:
            found[name] = plan()
        except ValueError:  # too few users, or epochs too short
            continue
    return found


def all_errors(
    size: Size,
    plans: dict[str, Settings],
    streams: list[BitStream],
    rngs: list[np.random.Generator],
    smoothing: np.random.Generator,
) -> Iterator[dict[str, dict[str, float]]]:
    """Of every stream and method that is possible, with the settings that a reader would plan, and for periods of 1, 2, 4,
    ... epochs."""
    once = all_reported_once(streams, size[-1], rngs, ONCE, ONLINE, HINDSIGHT, smoothing=smoothing)
    called = all_with_reserve(plans[RESERVE], streams, rngs) if RESERVE in plans else None
    for row, (found, data, rng) in enumerate(zip(once, streams, rngs, strict=True)):
        if called is not None:
            found[RESERVE] = called[:, row]
        yield _errors(size, {name: plan for name, plan in plans.items() if name != RESERVE}, data, rng, found)


def _errors(
    size: Size,
    plans: dict[str, Settings],
    data: BitStream,
    rng: np.random.Generator,
    found: dict[str, NDArray[np.float64]],
) -> dict[str, dict[str, float]]:
    """Of one stream, with what is `found` of users who report once."""
    horizon, epsilon = size[1], size[-1]
    for name, settings in plans.items():
        found[name] = follow(settings, data, rng)
    for every in (1 << power for power in range(1, horizon.bit_length())):
        found[split(every)] = periods(data, epsilon, rng, every)
    found[OPTIMAL] = baselines.recompute(data, epsilon, rng, composition="optimal", delta=DELTA)
    found[SIXTEEN] = found.get(split(horizon // 16), found[ONCE])
    return {method: errors(estimates, data.truth) for method, estimates in found.items()}


def chosen_method(choice: Choice) -> str:
    """The name here of what was chosen."""
    every = choice.settings["once"]
    assert isinstance(every, Once)
    detected = ONLINE if choice.online else HINDSIGHT
    names = {"tuned": TUNED, "reserve": RESERVE, "detected": detected, "smoothed": SMOOTHED}
    names["once"] = split(every.every)
    return names[choice.method]


def run(params: Any, seed: int) -> pd.DataFrame:
    """A row per method and stream (part: horizon, changes, epoch_length, map, rare or window): mean and largest error over
    epochs."""
    calls: list[tuple[Any, ...]] = [(_sweep, params, seed, part) for part in ("horizon", "changes", "epoch_length")]
    calls += [(_map, params, seed, n_users) for n_users in params.map_users]
    return pd.DataFrame(engine.rows([*calls, (_rare, params, seed), (_windows, params, seed)]))


def random_means(horizon: int, changes: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Means that are uniform on [0, 1], with changes at so many places that are."""
    means = rng.random(changes + 1)
    places = np.sort(rng.choice(np.arange(1, horizon), size=changes, replace=False))
    return np.asarray(means[np.searchsorted(places, np.arange(horizon), side="right")])


def drawn(kind: str, horizon: int, changes: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], int]:
    """A stream of a kind, drawn at random, and how many changes it has; 0 where its mean always moves."""
    often = {"constant": 0, PLANNED: changes, "twice": 2 * changes, "four times": 4 * changes}
    if kind in often:
        count = min(often[kind], horizon - 1)
        return random_means(horizon, count, rng), count
    time = np.arange(horizon)
    if kind == "drift":
        low, high = rng.uniform(0.1, 0.4), rng.uniform(0.5, 0.9)
        return drift(horizon, *(low, high) if rng.random() < 0.5 else (high, low)), 0
    if kind == "week":
        return np.where(time % WEEK >= WEEK - 2, rng.uniform(0.1, 0.4), rng.uniform(0.4, 0.7)), 0
    middle, steep = rng.uniform(0.3, 0.7) * horizon, rng.uniform(6, 14) / horizon
    return rng.uniform(0, 0.2) + rng.uniform(0.4, 0.8) / (1 + np.exp(-steep * (time - middle))), 0


def _sweep(params: Any, seed: int, part: str) -> Iterator[dict[str, Any]]:
    """One size at a time. A repetition has the same means at all points of a sweep, as far as it has as many."""
    sweeps: dict[str, tuple[int, ...]] = {
        "horizon": params.horizons,
        "changes": params.changes_sweep,
        "epoch_length": params.epoch_lengths,
    }
    for value in sweeps[part]:
        sizes = {"horizon": params.horizon, "changes": params.changes, "epoch_length": params.epoch_length, part: value}
        size = (params.n_users, sizes["horizon"], sizes["epoch_length"], params.epsilon)
        plans = planned(size, sizes["changes"])
        streams, rngs = [], []
        for repetition in range(params.repetitions):
            means = random_means(sizes["horizon"], sizes["changes"], stream(seed, "means", repetition))
            streams.append(BitStream.make([params.n_users], means, sizes["epoch_length"]))
            rngs.append(stream(seed, part, value, repetition))
        found = all_errors(size, plans, streams, rngs, stream(seed, "smoothing", part, value))
        for repetition, rows in enumerate(found):
            for method, row in rows.items():
                yield {"part": part, "repetition": repetition} | sizes | {"method": method} | row


def _map(params: Any, seed: int, n_users: int) -> Iterator[dict[str, Any]]:
    """All settings, each on streams of its own of every kind; where these have another number of changes than was planned
    for, voters that are told the number are among the methods."""
    for horizon, epsilon, length in itertools.product(params.map_horizons, params.map_epsilons, params.map_lengths):
        size = (n_users, horizon, length, epsilon)
        chosen = {name: choose(*size, changes=params.changes, online=name == CHOSEN) for name in (CHOSEN, CHOSEN_LATE)}
        plans = planned(size, params.changes)
        setting = {"n_users": n_users, "horizon": horizon, "epsilon": epsilon, "epoch_length": length}
        for kind in STREAMS:
            rngs = [stream(seed, "map", *map(str, size), kind, repetition) for repetition in range(params.map_runs)]
            means, counts = zip(*(drawn(kind, horizon, params.changes, rng) for rng in rngs), strict=True)
            told = planned(size, counts[0]) if kind in STREAMS[2:4] else {}
            more = {TOLD: told[TUNED]} if TUNED in told else {}
            streams, smoothing = [BitStream.make([n_users], each, length) for each in means], ("smoothing", kind)
            found = all_errors(size, plans | more, streams, rngs, stream(seed, *smoothing, *map(str, size)))
            for repetition, rows in enumerate(found):
                rows |= {name: rows[chosen_method(choice)] for name, choice in chosen.items()}
                for method, row in rows.items():
                    yield {"part": "map", "kind": kind, "repetition": repetition} | setting | {"method": method} | row


def _rare(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """One bit an epoch: each user once, measured; and the expected errors of what is made for bits that hardly change,
    trees for as many changes as the mean has and a first one."""
    for horizon in params.horizons:
        expected = {}
        for randomizer, method in TREES.items():
            planned_for = params.n_users, horizon, params.epsilon, params.changes + 1
            expected[method] = float(np.mean(tree(*planned_for, randomizer)[0]))
        expected[MEMOIZED] = layers_error(params.n_users, *layered(params.epsilon))
        all_means = [random_means(horizon, params.changes, stream(seed, "means", run)) for run in range(params.repetitions)]
        streams = [BitStream.make([params.n_users], means, 1) for means in all_means]
        rngs = [stream(seed, "rare", horizon, repetition) for repetition in range(params.repetitions)]
        reported = all_reported_once(streams, params.epsilon, rngs, ONCE, ONLINE, HINDSIGHT)
        for repetition, (found, data) in enumerate(zip(reported, streams, strict=True)):
            rows = {method: errors(estimates, data.truth) for method, estimates in found.items()}
            rows |= {method: {"mean_error": math.sqrt(2 / math.pi) * error} for method, error in expected.items()}
            for method, row in rows.items():
                yield {"part": "rare", "repetition": repetition, "horizon": horizon, "method": method} | row


def _windows(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """What promises buy: of one report (`EVENT`), within w epochs (LDP-IDS at w = 4, 16, ..., T), of a user while its bit
    never changes (`MEMOIZED`, expected), and the choice's, of everything that a user ever sends."""
    n_users, horizon, epsilon = params.n_users, params.horizon, params.epsilon
    choice = choose(n_users, horizon, 1, epsilon, changes=params.changes, online=True)
    windows = [4**power for power in range(1, 20) if 4**power < horizon] + [horizon]
    for kind, repetition in itertools.product(STREAMS, range(params.repetitions)):
        rng = stream(seed, "windows", kind, repetition)
        data = BitStream.make([n_users], drawn(kind, horizon, params.changes, rng)[0], 1)
        found = {(CHOSEN, horizon): choice.simulate(data, rng)}
        found[EVENT, 1] = baselines.recompute(data, horizon * epsilon, stream(seed, "event", kind, repetition))
        for method, window in itertools.product((ABSORBED, DISTRIBUTED), windows):
            absorb = method == ABSORBED
            found[method, window] = baselines.within_windows(data, epsilon, rng, window=window, absorb=absorb)[0]
        for (method, window), estimates in found.items():
            row = {"part": "window", "kind": kind, "repetition": repetition, "window": window, "method": method}
            yield row | errors(estimates, data.truth)
        row = {"part": "window", "kind": kind, "repetition": repetition, "window": horizon, "method": MEMOIZED}
        yield row | {"mean_error": math.sqrt(2 / math.pi) * layers_error(n_users, *layered(epsilon))}


def windows(table: pd.DataFrame) -> pd.DataFrame:
    """The mean errors of other guarantees by kind of stream, method and window, `factor` times that of the choice."""
    rows = table[table.part == "window"].groupby(["kind", "method", "window"], sort=False).mean_error.mean().reset_index()
    ours = rows[rows.method == CHOSEN].set_index("kind").mean_error
    rows = rows[rows.method != CHOSEN]
    return rows.assign(factor=rows.mean_error / ours.loc[rows.kind].to_numpy())


def layered(epsilon: float) -> tuple[float, float]:
    """Memoization that promises `epsilon` for a bit that never changes: the second layer has half of it."""
    return epsilon, epsilon / 2


def line(table: pd.DataFrame, part: str) -> pd.DataFrame:
    """Means over the streams with their deviations, per method and point of a sweep."""
    groups = table[table.part == part].groupby(["method", "horizon" if part == "rare" else part], sort=False)
    columns = groups[["mean_error", "max_error"]]
    runs = groups.size().rename("runs")
    return pd.concat([columns.mean(), columns.std().add_suffix("_sd"), runs], axis=1).reset_index()


def winners(table: pd.DataFrame, measure: str, online: bool) -> pd.DataFrame:
    """A row per setting and kind of stream of the map: the method with the smallest error, `best`, and how many times that
    the choice has, `factor`, with its `standard_error`."""
    groups = table[table.part == "map"].groupby([*SETTING, "method"])[measure]
    means, relative = groups.mean().unstack("method"), (groups.sem() / groups.mean()).unstack("method")
    chosen = CHOSEN if online else CHOSEN_LATE
    methods = means.drop(columns=[*ALIASES, OPTIMAL, *(LATE if online else [])])  # optimal: another guarantee
    best, error = methods.idxmin(axis=1), methods.min(axis=1)
    factor = means[chosen] / error
    of_best = relative.to_numpy()[np.arange(len(best)), relative.columns.get_indexer(best)]
    named = best.replace(TOLD, TUNED)
    columns = {
        "best": named.where(named.isin([*FAMILIES]), ONCE),  # users split over periods of any length
        "error": error,
        "factor": factor,
        "standard_error": factor * np.hypot(relative[chosen], of_best),
    }
    return pd.DataFrame(columns).reset_index()


def regrets(table: pd.DataFrame) -> pd.DataFrame:
    """By method and kind of stream: the error over that of the best method told the stream, the geometric mean over the
    settings and, in brackets, the largest; a method that is impossible somewhere only where it is possible."""
    rows = table[table.part == "map"].groupby([*SETTING, "method"]).mean_error.mean().unstack("method")
    best = rows.drop(columns=[*ALIASES, OPTIMAL, *LATE]).min(axis=1)
    shown = {CHOSEN: CHOSEN, RESERVE: RESERVE, ONLINE: ONLINE, ONCE: ONCE, TUNED: TUNED}
    ratios = rows[[name for name in shown if name in rows]].div(best, axis=0)
    groups = ratios.groupby("kind")
    logs = np.log(ratios).groupby("kind").mean()
    told = np.exp(logs).map("{:.3g}".format) + groups.max().map(" ({:.3g})".format)
    return told.loc[list(STREAMS)].T.rename_axis(index="mean factor (largest)", columns=None).reset_index()


def power(value: float) -> str:
    """A power of ten as one, in mathtext."""
    exponent = round(math.log10(value))
    return f"$10^{exponent}$" if exponent and value == 10**exponent else f"{value:g}"


def geometric_mean(values: pd.Series) -> float:
    return float(np.exp(np.log(values).mean()))


def prices(params: Any) -> pd.DataFrame:
    """The exact loss of all reports of a memoizing device with two layers, by epochs."""
    epochs, layers = np.unique(np.geomspace(1, max(params.horizons), 24).astype(int)), layered(params.epsilon)
    losses = [layers_loss(int(horizon), *layers) for horizon in epochs]
    return pd.DataFrame({"method": MEMOIZED, "horizon": epochs, "loss": losses})


def reports() -> pd.DataFrame:
    """A row per report of one of k values and epsilon, of any number of bits or of `FEW_BITS`: the standard error for a value
    that one user in k holds, times the root of n, its bits, its error over the least, and whether `best_report` takes it."""
    rows = []
    for n_values, epsilon in itertools.product((2, 4, 8, 16, 32, 64, 128, 1024, 8192), (0.5, 1.0, 2.0, 3.0, 4.0, 6.0)):
        points = [Projective(n_values, epsilon, space) for space in spaces() if space.points >= n_values]
        made: dict[str, list[Any]] = {REPORTS[0]: [Subset(n_values, epsilon)], REPORTS[2]: points}
        made |= {REPORTS[1]: [Subset(n_values, epsilon, size) for size in set_sizes(n_values)[1:]]}
        made |= {REPORTS[3]: [Hashed(n_values, epsilon)], REPORTS[4]: [Sign(n_values, epsilon)]}
        for limit, (name, kinds) in itertools.product((math.inf, FEW_BITS), made.items()):
            best: Report = best_report(n_values, epsilon, None if limit == math.inf else FEW_BITS)
            short = [one for one in kinds if one.bits <= limit]
            for one in sorted(short, key=lambda kind: float(kind.variance(1 / n_values)))[:1]:
                setting = {"limit": limit, "n_values": n_values, "epsilon": epsilon, "report": name}
                error = math.sqrt(float(one.variance(1 / n_values)))
                rows.append(setting | {"error": error, "bits": one.bits, "best": one == best})
    table = pd.DataFrame(rows)
    return table.assign(factor=table.error / table.groupby(["limit", "n_values", "epsilon"]).error.transform("min"))


def false_cuts(params: Any, online: bool) -> float:
    """Of many constant series with normal noise, the share in which a change is found."""
    noise = stream(0, "constant").normal(size=(params.horizon, CONSTANT))
    return float(np.mean(detection.detect_many(noise, np.ones(noise.shape), 1.0, online=online).starts.any(axis=0)))


def _over(table: pd.DataFrame, kind: str, first: str, second: str) -> pd.Series:
    """By setting of the map, on streams of a kind: the mean error of a method over another's."""
    rows = (
        table[(table.part == "map") & (table.kind == kind)].groupby([*SETTING, "method"]).mean_error.mean().unstack("method")
    )
    return (rows[first] / rows[second]).dropna() if first in rows and second in rows else pd.Series(dtype=float)


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    """What claims and prose read."""
    online, late, largest = (winners(table, *view) for view in VIEWS.values())
    short = online[online.epoch_length == min(params.map_lengths)]
    sweeps = pd.concat([line(table, part).set_index("method") for part in ("horizon", "changes", "epoch_length")])
    lengths = line(table, "epoch_length").set_index(["method", "epoch_length"]).mean_error
    rare, last, promised = line(table, "rare"), max(params.horizons), windows(table)
    windowed = promised[promised.method.isin([ABSORBED, DISTRIBUTED])]
    means = rare.groupby("method").mean_error.apply(geometric_mean)
    at_last = rare[rare.horizon == last].set_index("method").mean_error
    found: dict[str, Any] = {
        "settings": len(online) // len(STREAMS),
        "pairs": len(online),
        "factor": FACTOR,
        "worst_online": online.factor.max(),
        "worst_late": late.factor.max(),
        "within_online": (online.factor - 2 * online.standard_error <= FACTOR).mean(),
        "within_late": (late.factor - 2 * late.standard_error <= FACTOR).mean(),
        "surely_online": (online.factor - 2 * online.standard_error).max(),
        "surely_late": (late.factor - 2 * late.standard_error).max(),
        "mean_factor_online": geometric_mean(online.factor),
        "mean_factor_late": geometric_mean(late.factor),
        "voted_wrong": _over(table, "four times", TUNED, CHOSEN).max(),
        "reserve_planned": geometric_mean(_over(table, PLANNED, RESERVE, ONLINE)),
        "reserve_often": geometric_mean(_over(table, "four times", RESERVE, ONLINE)),
        "smoothed_planned": geometric_mean(_over(table, PLANNED, SMOOTHED, HINDSIGHT)),
        "smoothed_moving": geometric_mean(
            pd.concat([_over(table, kind, SMOOTHED, HINDSIGHT) for kind in ("drift", "adoption")])
        ),
        "longest": max(params.map_lengths),
        "shortest": min(params.map_lengths),
        "won_short_votes": int((short.best == TUNED).sum()),
        "one_bit": 1.0 if min(params.map_lengths) == 1 else math.nan,
        "least_optimal": (sweeps.loc[OPTIMAL].mean_error.to_numpy() / sweeps.loc[ONCE].mean_error.to_numpy()).min(),
        "long_over_short": lengths[ONCE, max(params.epoch_lengths)] / lengths[ONCE, min(params.epoch_lengths)],
        "half_of_epsilon": means[TREES["erlingsson"]] / means[TREES["erlingsson_exact"]],
        "best_tree": means[TREES["best"]] / min(means[method] for name, method in TREES.items() if name != "best"),
        "detected_over_tree": means[HINDSIGHT] / means[TREES["best"]],
        "windows_same": windowed[windowed.window == params.horizon].groupby("kind").factor.min().pipe(geometric_mean),
        "windows_least": windowed[windowed.window == params.horizon].factor.min(),
        "shortest_window": int(windowed.window.min()),
        "two_layers_1": layers_loss(1, 0.5, 0.5),
        "two_layers_8": layers_loss(8, 0.5, 0.5),
        "last_horizon": last,
        "false_online": false_cuts(params, True),
        "false_late": false_cuts(params, False),
        "constant": CONSTANT,
    }
    for name, method in {"event": EVENT, "unchanged": MEMOIZED}.items():
        found[f"promise_{name}"] = geometric_mean(promised[promised.method == method].factor)
    for name, method in {"lpa": ABSORBED, "lpd": DISTRIBUTED}.items():
        own = windowed[windowed.method == method]
        for length, window in {"same": params.horizon, "short": found["shortest_window"]}.items():
            found[f"windows_{length}_{name}"] = geometric_mean(own[own.window == window].factor)
    names = {"tuned": TUNED, "once": ONCE, "online": ONLINE, "detected": HINDSIGHT, "reserve": RESERVE}
    names["smoothed"] = SMOOTHED
    for view, won in {"online": online, "late": late, "largest": largest}.items():
        for name, method in names.items():
            found[f"won_{view}_{name}"] = int((won.best == method).sum())
    found["late_once"] = found["won_late_detected"] + found["won_late_smoothed"]
    for name, method in (TREES | {"detected": HINDSIGHT, "once": ONCE}).items():
        found[f"rare_{name}"] = at_last[method]
    found["price_rappor"] = layers_loss(last, *layered(params.epsilon))
    return found
