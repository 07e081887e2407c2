"""All methods for a mean on the same streams, where each wins, and whether `choose` takes the best from public inputs alone.

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
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import baselines
from evolvingdp.evolving.rivals import memoized, once, tree
from evolvingdp.evolving.rivals.choosing import Choice, choose
from evolvingdp.evolving.rivals.memoized import Memoized
from evolvingdp.evolving.rivals.threshold_stream import ThresholdStream
from evolvingdp.evolving.rivals.tree import ChangeTree
from evolvingdp.evolving.streams import BitStream
from evolvingdp.notebooks.evolving.split_users import CREWS, HINDSIGHT, ONCE, ONLINE, SIXTEEN, errors, reported_once

METRIC = Metric("worst_online", "largest error of the choice over that of the best method, on the map")

CLAIMS = """
surely_online <= factor                     Online the choice stays within a factor of the best of all methods: the largest, less two of its standard errors
surely_late <= factor                       In hindsight the choice stays within a factor of the best of all methods: the largest, less two of its standard errors
mean_factor_online <= 1.1                   The choice is close to the best in most settings: geometric mean of the factors, online
mean_factor_late <= 1.1                     The choice is close to the best in most settings: geometric mean of the factors, in hindsight
won_late_detected / settings >= 0.5         In hindsight each user once, averaged, has the smallest mean error in most settings: share
won_long_votes >= 0.5                       With the longest epochs and the fewest users voting has the smallest largest error in most settings: share
? one_bit * won_short_votes <= 0            With the shortest epochs voting never has the smallest mean error: share
least_optimal >= 1                          Recomputing with optimal composition is nowhere better than each user once: its smallest ratio
0.85 <= long_over_short <= 1.15             Each user once does not need long epochs: its mean error with the longest over that with the shortest
? crews_over_tuned <= 1                     Roles by lot beat THRESH, tuned, with the longest epochs: ratio of mean errors
half_of_epsilon >= 1.33                     Spending half of epsilon makes the error of Erlingsson et al. larger by a third or more: error over that with all of it
best_tree <= 1                              The best randomizer, tuned, is the best of the trees: its error over the smallest of the others'
detected_over_tree <= 1                     Each user once, averaged in hindsight, beats every tree: its error over that of the best
rare_best / rare_once <= 1                  Over long horizons the best tree beats each user once as reported: ratio of errors at the longest
0.119 <= two_layers_1 <= 0.121              Memoization with two layers of 0.5 each: exact loss of one report
1.26 <= two_layers_8 <= 1.28                Memoization with two layers of 0.5 each: exact loss of eight reports (promised for a bit that never changes: 0.5)
"""

FACTOR = 2.0  # that the choice promises, of the best of all methods
Size = tuple[int, int, int, float]  # n_users, horizon, epoch_length, epsilon

TUNED, OPTIMAL = "THRESH, tuned", r"every epoch, ($\epsilon$, $10^{-6}$)"
CHOSEN, CHOSEN_LATE = "the choice, online", "the choice, in hindsight"
DELTA = 1e-6  # of OPTIMAL
TREES = {
    "erlingsson": "tree, Erlingsson et al.",
    "erlingsson_exact": "tree, Erlingsson et al., all of epsilon",
    "future_rand": "tree, FutureRand",
    "best": "tree, best randomizer, tuned",
}
TWO_LAYERS, HASHED, ONE_LAYER = "two layers (RAPPOR)", "two layers, hashed (LOLOHA)", "one layer (dBitFlipPM)"
MEMOIZED = (TWO_LAYERS, HASHED, ONE_LAYER)  # another guarantee
SETTING = ["n_users", "epsilon", "epoch_length", "horizon", "changes"]
ALIASES = (CHOSEN, CHOSEN_LATE, SIXTEEN)
FAMILIES = {TUNED: "THRESH, tuned", CREWS: CREWS, ONLINE: ONLINE, HINDSIGHT: HINDSIGHT, OPTIMAL: OPTIMAL}
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


def choices(size: Size, changes: int) -> dict[str, Choice]:
    return {name: choose(*size, changes=changes, online=name == CHOSEN) for name in (CHOSEN, CHOSEN_LATE)}


def chosen_method(choice: Choice) -> str:
    """The name here of what was chosen."""
    every = choice.settings["once"]
    assert isinstance(every, once.Once)
    detected = ONLINE if choice.online else HINDSIGHT
    return {"tuned": TUNED, "crews": CREWS, "detected": detected, "once": split(every.every)}[choice.method]


def all_errors(size: Size, chosen: dict[str, Choice], data: BitStream, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Of every method that is possible, with the settings that a reader would plan, and for periods of 1, 2, 4, ... epochs."""
    horizon, epsilon, planned = size[1], size[-1], chosen[CHOSEN]
    found = reported_once(data, epsilon, rng, ONCE, ONLINE, HINDSIGHT)
    for method, name in {TUNED: "tuned", CREWS: "crews"}.items():
        if name in planned.settings:
            found[method] = planned.simulate(data, rng, name)
    for every in (1 << power for power in range(1, horizon.bit_length())):
        found[split(every)] = baselines.recompute(data, epsilon, rng, every=every, split="users")
    found[OPTIMAL] = baselines.recompute(data, epsilon, rng, composition="optimal", delta=DELTA)
    found[SIXTEEN] = found.get(split(horizon // 16), found[ONCE])
    found |= {name: found[chosen_method(choice)] for name, choice in chosen.items()}
    for method, estimates in found.items():
        yield {"method": method} | errors(estimates, data.truth)


def rare_errors(data: ThresholdStream, epsilon: float, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Of what is made for bits that hardly change, trees for as many changes as any bit has; of each user once; and of
    memoization, whose epsilon promises less."""
    most = data.most_changes()
    found = reported_once(data.read_once, epsilon, rng, ONCE, ONLINE, HINDSIGHT)
    for randomizer, method in TREES.items():
        nodes = ChangeTree(data.n_users, data.horizon, epsilon, most, randomizer, tuned=randomizer == "best")
        found[method] = nodes.estimates(tree.simulate(nodes, data, rng))
    for method in MEMOIZED:
        layers = layered(method, data.n_users, data.horizon, epsilon)
        found[method] = layers.estimates(memoized.simulate(layers, data, rng))
    for method, estimates in found.items():
        yield {"method": method} | errors(estimates, data.truth)


def layered(method: str, n_users: int, horizon: int, epsilon: float) -> Memoized:
    """Memoization that promises `epsilon` for a bit that never changes: a second layer has half of it, and a report of LOLOHA."""
    if method == TWO_LAYERS:
        return Memoized.rappor(n_users, horizon, epsilon, epsilon / 2)
    if method == HASHED:
        return Memoized.loloha(n_users, horizon, epsilon, epsilon / 2)
    return Memoized.dbitflip(n_users, horizon, epsilon)


def run(params: Any, seed: int) -> pd.DataFrame:
    """A row per method and stream (part: horizon, changes, epoch_length, map or rare): mean and largest error over epochs."""
    calls: list[tuple[Any, ...]] = [(_sweep, params, seed, part) for part in ("horizon", "changes", "epoch_length")]
    calls += [(_map, params, seed, n_users) for n_users in params.map_users]
    return pd.DataFrame(engine.rows([*calls, (_rare, params, seed)]))


def random_means(horizon: int, changes: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Means that are uniform on [0, 1], with changes at so many places that are."""
    means = rng.random(changes + 1)
    places = np.sort(rng.choice(np.arange(1, horizon), size=changes, replace=False))
    return np.asarray(means[np.searchsorted(places, np.arange(horizon), side="right")])


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
        chosen = choices(size, sizes["changes"])
        for repetition in range(params.repetitions):
            means = random_means(sizes["horizon"], sizes["changes"], stream(seed, "means", repetition))
            data = BitStream.make([params.n_users], means, sizes["epoch_length"])
            for row in all_errors(size, chosen, data, stream(seed, part, value, repetition)):
                yield {"part": part, "repetition": repetition} | sizes | row


def _map(params: Any, seed: int, n_users: int) -> Iterator[dict[str, Any]]:
    """All settings, each on streams of its own: on `map_runs` with a change in one of eight epochs, and on twice as many with
    two, whose sizes make more of a difference."""
    for horizon, epsilon, length in itertools.product(params.map_horizons, params.map_epsilons, params.map_lengths):
        size = (n_users, horizon, length, epsilon)
        for changes in (2, horizon // 8):
            chosen = choices(size, changes)
            setting = {
                "n_users": n_users,
                "horizon": horizon,
                "epsilon": epsilon,
                "epoch_length": length,
                "changes": changes,
            }
            for repetition in range(2 * params.map_runs if changes == 2 else params.map_runs):
                rng = stream(seed, "map", *map(str, (*size, changes)), repetition)
                data = BitStream.make([n_users], random_means(horizon, changes, rng), length)
                for row in all_errors(size, chosen, data, rng):
                    yield {"part": "map", "repetition": repetition} | setting | row


def _rare(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """Users with one bit an epoch, 1 when the mean is above their own fixed threshold."""
    for horizon in params.horizons:
        for repetition in range(params.repetitions):
            means = random_means(horizon, params.changes, stream(seed, "means", repetition))
            data = ThresholdStream.make(params.n_users, means)
            for row in rare_errors(data, params.epsilon, stream(seed, "rare", horizon, repetition)):
                yield {"part": "rare", "repetition": repetition, "horizon": horizon} | row


def line(table: pd.DataFrame, part: str) -> pd.DataFrame:
    """Means over the streams with their deviations, per method and point of a sweep."""
    groups = table[table.part == part].groupby(["method", "horizon" if part == "rare" else part], sort=False)
    columns = groups[["mean_error", "max_error"]]
    runs = groups.size().rename("runs")
    return pd.concat([columns.mean(), columns.std().add_suffix("_sd"), runs], axis=1).reset_index()


def winners(table: pd.DataFrame, measure: str, online: bool) -> pd.DataFrame:
    """A row per setting of the map: the method with the smallest error, `best`, and how many times that the choice has,
    `factor`, with its `standard_error`."""
    groups = table[table.part == "map"].groupby([*SETTING, "method"])[measure]
    means, relative = groups.mean().unstack("method"), (groups.sem() / groups.mean()).unstack("method")
    chosen = CHOSEN if online else CHOSEN_LATE
    methods = means.drop(columns=[*ALIASES, *([HINDSIGHT] if online else [])])
    best, error = methods.idxmin(axis=1), methods.min(axis=1)
    factor = means[chosen] / error
    of_best = relative.to_numpy()[np.arange(len(best)), relative.columns.get_indexer(best)]
    named = best.where(best.isin([*FAMILIES]), ONCE)  # users split over periods of any length
    columns = {
        "best": named,
        "error": error,
        "factor": factor,
        "standard_error": factor * np.hypot(relative[chosen], of_best),
    }
    return pd.DataFrame(columns).reset_index()


def shares(table: pd.DataFrame) -> pd.DataFrame:
    """Of the settings of the map, in how many each method has the smallest error."""
    columns = {name: winners(table, measure, online).best.value_counts() for name, (measure, online) in VIEWS.items()}
    counts = pd.DataFrame(columns).fillna(0).astype(int)
    order = [name for name in (HINDSIGHT, ONLINE, CREWS, TUNED, ONCE, OPTIMAL) if name in counts.index]
    return counts.loc[order].rename_axis("smallest").reset_index()


def pairs(first: Any, second: Any) -> Iterator[Any]:
    """Every entry of the one with every entry of the other, with their numbers."""
    return itertools.product(enumerate(first), enumerate(second))


def power(value: float) -> str:
    """A power of ten as one, in mathtext."""
    exponent = round(math.log10(value))
    return f"$10^{exponent}$" if exponent and value == 10**exponent else f"{value:g}"


def geometric_mean(values: pd.Series) -> float:
    return float(np.exp(np.log(values).mean()))


def prices(params: Any) -> pd.DataFrame:
    """The exact loss of all reports of a memoizing device with two layers, by epochs."""
    epochs, parts = np.unique(np.geomspace(1, max(params.horizons), 24).astype(int)), []
    for method in MEMOIZED[:2]:
        layers = layered(method, params.n_users, int(epochs[-1]), params.epsilon)
        losses = [layers.transcript_loss(int(horizon)) for horizon in epochs]
        parts.append(pd.DataFrame({"method": method, "horizon": epochs, "loss": losses}))
    return pd.concat(parts, ignore_index=True)


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    """What claims and prose read."""
    online, late, largest = (winners(table, *view) for view in VIEWS.values())
    votes = [CREWS, TUNED]
    long = largest[(largest.epoch_length == max(params.map_lengths)) & (largest.n_users == min(params.map_users))]
    short = online[online.epoch_length == min(params.map_lengths)]
    sweeps = pd.concat([line(table, part).set_index("method") for part in ("horizon", "changes", "epoch_length")])
    lengths = line(table, "epoch_length").set_index(["method", "epoch_length"]).mean_error
    crews, tuned = (lengths.get((method, max(params.epoch_lengths))) for method in votes)
    rare, last = line(table, "rare"), max(params.horizons)
    means = rare.groupby("method").mean_error.apply(geometric_mean)
    at_last, half = rare[rare.horizon == last].set_index("method").mean_error, Memoized.rappor(params.n_users, 8, 0.5, 0.5)
    found: dict[str, Any] = {
        "settings": len(online),
        "factor": FACTOR,
        "worst_online": online.factor.max(),
        "worst_late": late.factor.max(),
        "surely_online": (online.factor - 2 * online.standard_error).max(),
        "surely_late": (late.factor - 2 * late.standard_error).max(),
        "mean_factor_online": geometric_mean(online.factor),
        "mean_factor_late": geometric_mean(late.factor),
        "longest": max(params.map_lengths),
        "shortest": min(params.map_lengths),
        "won_long_votes": long.best.isin(votes).mean(),
        "won_short_votes": int(short.best.isin(votes).sum()),
        "one_bit": 1.0 if min(params.map_lengths) == 1 else math.nan,
        "least_optimal": (sweeps.loc[OPTIMAL].mean_error.to_numpy() / sweeps.loc[ONCE].mean_error.to_numpy()).min(),
        "long_over_short": lengths[ONCE, max(params.epoch_lengths)] / lengths[ONCE, min(params.epoch_lengths)],
        "crews_over_tuned": math.nan if crews is None or tuned is None else crews / tuned,
        "half_of_epsilon": means[TREES["erlingsson"]] / means[TREES["erlingsson_exact"]],
        "best_tree": means[TREES["best"]] / min(means[method] for name, method in TREES.items() if name != "best"),
        "detected_over_tree": means[HINDSIGHT] / means[TREES["best"]],
        "two_layers_1": half.transcript_loss(1),
        "two_layers_8": half.transcript_loss(8),
        "last_horizon": last,
    }
    names = {"tuned": TUNED, "crews": CREWS, "once": ONCE, "online": ONLINE, "detected": HINDSIGHT}
    for view, won in {"online": online, "late": late, "largest": largest}.items():
        for name, method in names.items():
            found[f"won_{view}_{name}"] = int((won.best == method).sum())
    for name, method in (TREES | {"detected": HINDSIGHT, "once": ONCE}).items():
        found[f"rare_{name}"] = at_last[method]
    for name, method in zip(("rappor", "loloha"), MEMOIZED, strict=False):
        found[f"price_{name}"] = layered(method, params.n_users, last, params.epsilon).transcript_loss()
    return found
