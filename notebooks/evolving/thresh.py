"""THRESH against recomputation: over time, against the horizon, the users, the size of a change, and where it loses.

`run` gives a row a run, `values` the numbers that claims and prose read, the rest is what the notebook's cells show.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.book import engine
from evolvingdp.book.own import Release, checked
from evolvingdp.book.params import Metric
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import baselines, streams
from evolvingdp.evolving.constants import paper_epsilons, paper_error_bound, told
from evolvingdp.evolving.rivals import once
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.streams import BitStream
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.evolving.thresh_simulation import simulate
from evolvingdp.notebooks.evolving.split_users import (
    HINDSIGHT,
    ONCE,
    ONLINE,
    SIXTEEN,
    all_reported_once,
    errors,
    periods,
    reported_once,
)
from evolvingdp.streams import reading

METRIC = Metric("error_tuned", "mean error of tuned THRESH over the epochs")

CLAIMS = """
share_spent <= 1                         No user ever spends more than epsilon: largest share over all runs
fewest_updates >= changes + 1            Every change is found: fewest updates in a run, tuned
? share_of_bound <= 1                    The proved bound holds where the caps pay for all changes: largest error over bound
? largest_bounded / bound_theorem <= 1   Theorem 4.3's bound holds, too
error_tuned / error_naive <= 0.2         THRESH, tuned, over recomputation with epsilon/T: mean error
error_tuned / error_optimal <= 0.5       THRESH, tuned, over recomputation with optimal composition
error_once / error_optimal <= 1          Each user once has a smaller mean error than recomputing with optimal composition
error_detected / error_tuned <= 1        Averaged in hindsight, each user once has a smaller mean error than THRESH, tuned
error_online / error_tuned <= 1          and averaged online, too
worst_online / worst_tuned >= 1          THRESH keeps the smaller largest error online: each user once's over it
0.6 <= error_detected / predicted_detected <= 1.4   Averaged in hindsight, each user once is nearly as good as with changes known: ratio
drift_sixteen / drift_basic <= 0.5       Where nothing moves, 16 periods split over users beat epsilon split: ratio
once_over_predicted <= 1.15              The known standard error explains each user once: largest measured over predicted
? 0.8 <= slope_naive <= 1.1              Recomputation's error grows linearly with T: slope
? 0.4 <= slope_advanced <= 0.6           With advanced composition like sqrt(T): slope
? slope_tuned <= 0.3                     THRESH's grows more slowly: slope
error_at_most_users / error_at_fewest_users >= 0.7  With the paper's b the error does not fall with n: most users over fewest
? longest_delay <= 0                     Changes well above the top threshold are found at once: longest delay
moved_online / moved_tuned <= 1          On a drift of .4 each user once, averaged online, beats THRESH, tuned: ratio
moved_tuned / moved_basic >= 1           On a drift of .4 recomputing 16 times is better: THRESH's error over that
? usual * error_paper <= 0.010           Mean error with the paper's constants
? usual * error_tuned <= 0.006           Mean error, tuned
? usual_40 * error_detected <= 0.002     Mean error, each user once, averaged in hindsight
"""

PAPER, TUNED = "THRESH, paper's constants", "THRESH, tuned"
NAIVE, ADVANCED, OPTIMAL = "every epoch, epsilon/T", "every epoch, advanced", "every epoch, optimal"
BASELINES = {NAIVE: "basic", ADVANCED: "advanced", OPTIMAL: "optimal"}  # how each composes its reports
METHODS = [PAPER, TUNED, *BASELINES]
RIVALS = [ONCE, ONLINE, HINDSIGHT, SIXTEEN]  # a user reports once
SHORT = {"paper": PAPER, "tuned": TUNED, "naive": NAIVE, "advanced": ADVANCED, "optimal": OPTIMAL, "once": ONCE}
SHORT |= {"online": ONLINE, "detected": HINDSIGHT, "sixteen": SIXTEEN}  # in values' names
START = 0.3
CHANGES = ((0.2, 0.5), (0.5, 0.25), (0.8, 0.65))  # share of the horizon after which the mean becomes this
DELTA = 1e-6  # of the (epsilon, delta) baselines
HORIZON_SWEEP_USERS = 10**7
CLIPPED = 0.15  # a mean error above is no longer that of the noise: estimates are clipped

# A run of THRESH averages the errors of a few estimates, one of each user once those of its epochs: what a claim reads is
# run so often that its bound lies about four standard errors from what is expected.
MORE = {("time", PAPER): 4, ("time", TUNED): 4, ("n_users", PAPER): 4}  # times as many runs
ERRORS = 1024  # of each user once, at least, at each horizon


def check(params: Any) -> dict[str, Any]:
    """Raise ValueError where no protocol can be planned for a point of the sweeps, or a stream does not fit."""
    if params.data:
        return checked(params, _own_bits)
    for n_users in {params.n_users, *params.n_users_sweep}:
        protocols(params, n_users, params.horizon)
    for horizon in params.horizon_sweep:
        protocols(params, HORIZON_SWEEP_USERS, horizon)
    scenarios(params)
    return {}


def protocols(params: Any, n_users: int, horizon: int) -> dict[str, Thresh]:
    """Both constants with caps for the changes and a spare estimate. Where the paper's b is not small enough for four votes
    a change besides, it has fewer votes, one a change at least: all that these streams need. Where n is so small that b
    does not allow that either, its caps last for fewer changes."""
    size, changes = (n_users, horizon, params.epoch_length, params.epsilon), len(CHANGES)
    vote, estimate = paper_epsilons(n_users, horizon, params.epoch_length, n_users, 1, params.beta)
    affordable = math.floor((params.epsilon - estimate) / (estimate + 8 * vote) * (1 - 1e-12))
    paper = Thresh.paper(*size, beta=params.beta, changes=min(changes, max(0, affordable)))
    votes = math.floor((params.epsilon - (changes + 2) * estimate) / (2 * vote) * (1 - 1e-12))
    if votes >= changes:
        paper = replace(paper, estimate_cap=changes + 2, vote_cap=votes)
    return {PAPER: paper, TUNED: Thresh.tuned(*size, beta=params.beta, changes=changes)}


def bits(n_users: int, horizon: int, epoch_length: int) -> BitStream:
    """Three changes at a fifth, a half and four fifths of the horizon."""
    changes = {max(2, round(share * horizon)): mean for share, mean in CHANGES}
    return BitStream.make([n_users], streams.steps(horizon, START, changes), epoch_length)


@dataclass(frozen=True, eq=False)
class Scenario:
    """A name that a table can show, the data, and the settings of THRESH."""

    name: str
    data: BitStream
    settings: Thresh


def scenarios(params: Any) -> list[Scenario]:
    """Staggered changes of two groups, a change within an epoch, small changes, and more changes than the caps are for."""
    n_users, horizon, epoch_length = params.n_users, params.horizon, params.epoch_length

    def at(share: float) -> int:
        return max(2, round(share * horizon))

    def tuned(changes: int, **options: int) -> Thresh:
        size = (n_users, horizon, epoch_length, params.epsilon)
        return Thresh.tuned(*size, changes=changes, beta=params.beta, **options)

    def one_group(changes: dict[int, float]) -> BitStream:
        return BitStream.make([n_users], streams.steps(horizon, 0.3, changes), epoch_length)

    three = tuned(3)
    step = 0.4 * three.threshold(1)
    if 3 * step > 0.7:  # thresholds fall as one over the root of the epoch's length
        needed = math.ceil(epoch_length * (3 * step / 0.7) ** 2)
        raise ValueError(
            f"epoch_length must be at least {needed}, so that three changes that are voted for fit, got {epoch_length}"
        )
    small_group = 2 * n_users // 5
    first = streams.steps(horizon, 0.3, {at(0.3): 0.6, at(0.7): 0.2})
    groups = np.array([first, streams.steps(horizon, 0.5, {at(0.5): 0.8})])
    small = {at(share): 0.3 + step * (number + 1) for number, share in enumerate((0.2, 0.5, 0.8))}
    many = {at(0.1): 0.6, at(0.2): 0.2, at(0.35): 0.7, at(0.5): 0.3, at(0.7): 0.8, at(0.85): 0.4}
    few = tuned(3, spare=0)
    two_groups = BitStream.make([small_group, n_users - small_group], groups, epoch_length)
    middle = one_group({at(0.4): 0.45, at(0.4) + 1: 0.6})
    return [
        Scenario("two groups, staggered changes", two_groups, tuned(3, min_group=small_group, n_groups=2)),
        Scenario("a change in the middle of an epoch", middle, tuned(2)),
        Scenario("three changes of .4 of the top threshold", one_group(small), three),
        Scenario("six changes, caps for three: freeze", one_group(many), few),
        Scenario("six changes, caps for three: as printed", one_group(many), replace(few, exhaustion="printed")),
    ]


def run(params: Any, seed: int) -> pd.DataFrame:
    """A row per run (part: time, horizon, n_users, size, drift or scenario): errors of the clipped estimates, and more."""
    compared = [(_compared, params, seed, part) for part in ("time", "horizon", "n_users")]
    others = [(part, params, seed) for part in (_sizes, _drifts, _scenarios)]
    return pd.DataFrame(engine.rows([*compared, *others]))


def over_time(params: Any, seed: int) -> pd.DataFrame:
    """The first run over time, an epoch a row: truth, estimates, updates, and the privacy that a user has spent at most."""
    data = bits(params.n_users, params.horizon, params.epoch_length)
    settings = protocols(params, params.n_users, params.horizon)[TUNED]
    trace = simulate(settings, data, stream(seed, "time", TUNED, 0))
    naive = baselines.recompute(data, params.epsilon, stream(seed, "time", NAIVE, 0))
    optimal = baselines.recompute(data, params.epsilon, stream(seed, "time", OPTIMAL, 0), composition="optimal")
    online = reported_once(data, params.epsilon, stream(seed, "time", ONLINE, 0), ONLINE)[ONLINE]
    return pd.DataFrame(
        {
            "epoch": np.arange(1, params.horizon + 1),
            "truth": data.truth,
            "thresh": trace.estimate,
            "updated": trace.updated,
            "naive": np.clip(naive, 0, 1),
            "optimal": np.clip(optimal, 0, 1),
            "online": np.clip(online, 0, 1),
            "spent": 2 * settings.vote_epsilon * trace.max_votes + settings.estimate_epsilon * trace.updated.cumsum(),
        }
    )


def curve(params: Any, table: pd.DataFrame, part: str) -> pd.DataFrame:
    """Mean error with its standard deviation over runs, per method and point of the sweep, and what is predicted."""
    x = "size" if part == "drift" else part
    grouped = table[table.part == part].groupby(["method", x], sort=False)
    columns = grouped[["mean_error", "max_error"]]
    runs = grouped.size().rename("runs")
    found = pd.concat([columns.mean(), columns.std().add_suffix("_sd"), runs], axis=1).reset_index()
    if part == "drift":
        return found.rename(columns={"size": "drift"})

    def predicted(row: Any) -> float:
        if row.method not in (*METHODS, ONCE):  # others average over stretches that data decide, or lag
            return math.nan
        size = (HORIZON_SWEEP_USERS, int(row[x])) if part == "horizon" else (int(row[x]), params.horizon)
        return predicted_error(params, row.method, *size)

    return found.assign(predicted=found.apply(predicted, axis=1))


def _run(settings: Thresh, data: BitStream, rng: np.random.Generator) -> dict[str, Any]:
    result = simulate(settings, data, rng)
    updates = int(result.updated.sum())
    return errors(result.estimate, data.truth) | {
        "updates": updates,
        "frozen": int(result.frozen.sum()),
        "spent": 2 * int(result.max_votes[-1]) * settings.vote_epsilon + updates * settings.estimate_epsilon,
        "bound": settings.error_bound,
    }


def _rivals(
    params: Any, data: BitStream, rngs: Sequence[np.random.Generator], *methods: str
) -> Iterator[list[dict[str, Any]]]:
    """Of each run, users split instead of epsilon: over epochs, as reported and averaged, and over 16 periods."""
    for found, rng in zip(all_reported_once([data] * len(rngs), params.epsilon, rngs, *methods), rngs, strict=True):
        if SIXTEEN in methods:
            found[SIXTEEN] = periods(data, params.epsilon, rng, max(1, data.horizon // 16))
        yield [{"method": method} | errors(estimates, data.truth) for method, estimates in found.items()]


def _compared(params: Any, seed: int, part: str) -> Iterator[dict[str, Any]]:
    """Every method on the three changes: over time, and for each horizon or number of users of a sweep."""
    points: dict[str, list[tuple[int, int, tuple[int, ...]]]] = {  # users, horizon, and what names the point's streams
        "time": [(params.n_users, params.horizon, ())],
        "horizon": [(HORIZON_SWEEP_USERS, horizon, (horizon,)) for horizon in params.horizon_sweep],
        "n_users": [(n_users, params.horizon, (n_users,)) for n_users in params.n_users_sweep],
    }
    for n_users, horizon, point in points[part]:
        data, both = bits(n_users, horizon, params.epoch_length), protocols(params, n_users, horizon)
        setting = {"part": part, "horizon": horizon, "n_users": n_users}
        runs = params.repetitions if part == "time" else params.sweep_repetitions
        for method in METHODS:
            for repetition in range(runs * MORE.get((part, method), 1)):
                row = setting | {"method": method, "repetition": repetition}
                rng = stream(seed, part, method, *point, repetition)
                if method in both:
                    yield row | _run(both[method], data, rng)
                    continue
                estimates = baselines.recompute(data, params.epsilon, rng, composition=BASELINES[method], delta=DELTA)
                yield row | errors(estimates, data.truth)
        more = range(runs, ERRORS // horizon if part == "horizon" else runs)
        for repetitions, others in ((range(runs), (ONLINE, HINDSIGHT, SIXTEEN)), (more, ())):
            rngs = [stream(seed, part, ONCE, *point, repetition) for repetition in repetitions]
            found = _rivals(params, data, rngs, ONCE, *others) if rngs else ()
            for repetition, rows in zip(repetitions, found, strict=True):
                yield from (setting | {"repetition": repetition} | row for row in rows)


def _sizes(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """One change right after a quarter of the horizon: epochs until an update, against its size in top thresholds."""
    settings = protocols(params, params.n_users, params.horizon)[TUNED]
    top = settings.threshold(1)
    change = params.horizon // 4 + 1
    for share in np.round(np.geomspace(0.05, 2.0, 16), 3):
        size = float(share * top)
        if START + size > 1:
            continue
        means = streams.steps(params.horizon, START, {change: START + size})
        data = BitStream.make([params.n_users], means, params.epoch_length)
        for repetition in range(params.sweep_repetitions):
            result = simulate(settings, data, stream(seed, "size", str(share), repetition))
            after = np.flatnonzero(result.updated[change - 1 :])
            yield {
                "part": "size",
                "repetition": repetition,
                "size": size,
                "share": float(share),
                "delay": int(after[0]) if len(after) else params.horizon - change,
                "found": int(len(after) > 0),
                "predicted": predicted_delay(settings, size, change),
                **errors(result.estimate, data.truth),
            }


def _drifts(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """A mean that moves by `size` over the horizon: THRESH, recomputation 16 times, and the rivals that split users."""
    settings, every = protocols(params, params.n_users, params.horizon)[TUNED], params.horizon // 16
    for size in (0.0, 0.05, 0.1, 0.2, 0.4):
        means = streams.drift(params.horizon, START, START + size)
        data = BitStream.make([params.n_users], means, params.epoch_length)
        rngs = [stream(seed, "drift", str(size), ONCE, repetition) for repetition in range(params.sweep_repetitions)]
        for repetition, rows in enumerate(_rivals(params, data, rngs, ONLINE, HINDSIGHT, SIXTEEN)):
            setting = {"part": "drift", "repetition": repetition, "size": size}
            yield setting | {"method": TUNED} | _run(settings, data, stream(seed, "drift", str(size), "thresh", repetition))
            rng = stream(seed, "drift", str(size), every, repetition)
            estimates = baselines.recompute(data, params.epsilon, rng, every=every)
            yield setting | {"method": recomputed(every)} | errors(estimates, data.truth)
            yield from (setting | row for row in rows)


def _scenarios(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """Other streams: THRESH, tuned for each, recomputation in every epoch, and the rivals that split users."""
    for scenario in scenarios(params):
        rngs = [stream(seed, "scenario", scenario.name, ONCE, repetition) for repetition in range(params.sweep_repetitions)]
        for repetition, rows in enumerate(_rivals(params, scenario.data, rngs, ONLINE, HINDSIGHT)):
            setting = {"part": "scenario", "repetition": repetition, "scenario": scenario.name}
            rng = stream(seed, "scenario", scenario.name, repetition)
            yield setting | {"method": TUNED} | _run(scenario.settings, scenario.data, rng)
            estimates = baselines.recompute(scenario.data, params.epsilon, rng, composition="optimal", delta=DELTA)
            yield setting | {"method": OPTIMAL} | errors(estimates, scenario.data.truth)
            yield from (setting | row for row in rows)


def recomputed(every: int) -> str:
    return f"every {every} epochs, basic"


def predicted_delay(settings: Thresh, size: float, change: int) -> int:
    """Epochs from `change` until the first whose threshold is below the change's size, when all vote; without noise."""
    for epoch in range(change, settings.horizon + 1):
        if settings.threshold(epoch) < size:
            return epoch - change
    return settings.horizon - change


def predicted_error(params: Any, method: str, n_users: int, horizon: int) -> float:
    """Mean absolute error of one estimate if it is normal with the standard error at mean 1/2; THRESH: after each change;
    averaged in hindsight: as if it were known when changes come."""
    if method in (ONCE, HINDSIGHT):
        one = math.sqrt(2 / math.pi) * Once(n_users, horizon, params.epsilon).standard_error()
        changes = np.diff([0.0, *(share for share, _ in CHANGES), 1.0])
        stretches = changes if method == HINDSIGHT else np.ones(horizon) / horizon
        return one * float(np.sqrt(stretches).sum()) / math.sqrt(horizon)
    if method in BASELINES:
        one = baselines.epsilon_of_report(params.epsilon, horizon, BASELINES[method], DELTA)
        return math.sqrt(2 / math.pi) * baselines.standard_error(n_users, one)
    return math.sqrt(2 / math.pi) * protocols(params, n_users, horizon)[method].standard_error


def slope(table: pd.DataFrame, method: str) -> float:
    """Of log mean error against log T from T = 64 on, where the clipping of the estimates to [0, 1] does not matter."""
    line = _means(table, "horizon").get(method, pd.Series(dtype=float))
    line = line[(line < CLIPPED) & (line.index >= 64)]
    return float(np.polyfit(np.log(line.index), np.log(line), 1)[0]) if len(line) > 1 else math.nan


def _means(table: pd.DataFrame, part: str) -> pd.Series:
    """Mean error by method and point of a sweep."""
    return table[table.part == part].groupby(["method", part], sort=False)[["mean_error", "max_error"]].mean().mean_error


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    """What claims and prose read, by short names of the methods (`SHORT`); what a run does not have is missing."""
    parts = {str(part): rows for part, rows in table.groupby("part")}
    time, drift = parts["time"].groupby("method"), parts["drift"].groupby(["size", "method"]).mean_error.mean()
    settings = protocols(params, params.n_users, params.horizon)
    lasting = [method for method in (PAPER, TUNED) if settings[method].changes >= len(CHANGES)]
    thresh = parts["time"][parts["time"].method.isin([PAPER, TUNED])]
    bounded = thresh[thresh.method.isin(lasting)]
    paper, once = _means(table, "n_users")[PAPER], _means(table, "horizon")[ONCE]
    sizes = (params.n_users, params.horizon, params.epoch_length, params.epsilon)
    usual = 1.0 if sizes == (10**6, 1024, 10**6, 1.0) else math.nan
    found: dict[str, Any] = {
        "changes": len(CHANGES),
        "top_threshold": settings[TUNED].threshold(1),
        "bottom_threshold": 2 * settings[TUNED].unit,
        "bound_theorem": (printed := paper_error_bound(params.n_users, params.horizon, params.epoch_length, params.beta)),
        "proved_theorem": told(printed),
        "proved_paper": told(settings[PAPER].error_bound),
        "proved_tuned": told(settings[TUNED].error_bound),
        "a_paper": settings[PAPER].vote_epsilon,
        "a_tuned": settings[TUNED].vote_epsilon,
        "b_paper": settings[PAPER].estimate_epsilon,
        "b_tuned": settings[TUNED].estimate_epsilon,
        "printed_loss": Thresh.printed(*sizes, beta=params.beta).privacy_loss,
        "share_spent": (thresh.spent / params.epsilon).max(),
        "fewest_updates": time.updates.min()[TUNED],
        "share_of_bound": (bounded.max_error / bounded.bound).max(),
        "largest_bounded": bounded.max_error.max(),
        "once_over_predicted": max(
            error / predicted_error(params, ONCE, HORIZON_SWEEP_USERS, int(horizon)) for horizon, error in once.items()
        ),
        "error_at_most_users": paper[max(params.n_users_sweep)],
        "error_at_fewest_users": paper[min(params.n_users_sweep)],
        "longest_delay": parts["size"][parts["size"].share > 1.3].delay.max(),
        "drift_basic": drift[0.0, recomputed(params.horizon // 16)],
        "moved_basic": drift[0.4, recomputed(params.horizon // 16)],
        "drift_sixteen": drift[0.0, SIXTEEN],
        "usual": usual,
        "usual_40": usual if params.repetitions >= 40 else math.nan,
    }
    for short, method in SHORT.items():
        if method in time.groups:
            found[f"error_{short}"] = time.mean_error.mean()[method]
            found[f"largest_{short}"] = time.max_error.max()[method]
            found[f"worst_{short}"] = time.max_error.mean()[method]
            found[f"slope_{short}"] = slope(table, method)
        if (0.4, method) in drift.index:
            found[f"moved_{short}"] = drift[0.4, method]
        if method == HINDSIGHT:
            found[f"predicted_{short}"] = predicted_error(params, method, params.n_users, params.horizon)
    return found


def summary(params: Any, table: pd.DataFrame) -> pd.DataFrame:
    """Over time: errors, updates and loss per method."""
    rows = []
    for method, runs in table[table.part == "time"].groupby("method", sort=False):
        thresh = method in (PAPER, TUNED)
        rows.append(
            {
                "method": str(method).replace("epsilon", "$\\epsilon$"),
                "mean error": f"{runs.mean_error.mean():.4f} (sd {runs.mean_error.std():.4f})",
                "largest error of a run, mean": f"{runs.max_error.mean():.4f}",
                "proved bound": told(runs.bound.iloc[0]) if thresh else "–",
                "updates": f"{runs.updates.mean():.1f}" if thresh else "–",
                "reports of a user": "in each update" if thresh else "1" if method in RIVALS else f"{params.horizon}",
                "loss": f"{runs.spent.max():.2f} of {params.epsilon:g}" if thresh else f"{params.epsilon:g}",
            }
        )
    return pd.DataFrame(rows)


def other_streams(table: pd.DataFrame) -> pd.DataFrame:
    """Other streams: errors, updates, and epochs in which an update was wanted that nobody could pay for."""
    names = {OPTIMAL: "every epoch, optimal", ONLINE: "once, online", HINDSIGHT: "once, in hindsight"}
    rows = []
    for name, runs in table[table.part == "scenario"].groupby("scenario", sort=False):
        ours, means = runs[runs.method == TUNED], runs.groupby("method").mean_error.mean()
        rows.append(
            {
                "stream": name,
                "THRESH, tuned: mean error": f"{ours.mean_error.mean():.4f}",
                "largest error of a run, mean": f"{ours.max_error.mean():.4f}",
                "updates": f"{ours.updates.mean():.1f}",
                "flagged epochs": f"{ours.frozen.mean():.0f}",
            }
            | {shown: f"{means[method]:.4f}" if method in means else "–" for method, shown in names.items()}
        )
    return pd.DataFrame(rows)


OWN_USERS = 20  # a period: with so many it is one in 10^8 in which nobody reports


def _own_bits(path: Any) -> reading.Bits:
    own = reading.read_bits(path)
    if own.n_users < (least := OWN_USERS * len(own.periods)):
        raise ValueError(
            f"{path} must have {least:,} users or more, {OWN_USERS} for each of its {len(own.periods)} periods, since a user "
            f"reports in one of them, got {own.n_users:,}; join periods"
        )
    return own


def of_own(params: Any, seed: int) -> Release:
    """Each user of a file once: with a bit a period THRESH, which needs thousands, does not serve."""
    own = _own_bits(params.data)
    settings = Once(own.n_users, len(own.periods), params.epsilon)
    if own.bits is None:
        drawn = BitStream.make([own.n_users], own.shares, 1)
        tally = once.simulate(settings, drawn, stream(seed, "own", "noise"))
    else:
        generators = {name: stream(seed, "own", name) for name in ("words", "public", "private")}
        tally = once.run(settings, own.bits, **generators)
    estimate = settings.estimates(tally)[:, 1]
    with np.errstate(divide="ignore"):
        off = 1.96 * np.sqrt(settings.report.variance(np.clip(estimate, 0.0, 1.0)) / tally.reports)
    table = pd.DataFrame({"period": own.periods, "estimate": estimate, "low": estimate - off, "high": estimate + off})
    promise = f"pure {params.epsilon:g}-local differential privacy of everything that a user ever sends"
    return Release(
        own.name, "period", "share of ones", "one report of each user", promise, table.assign(truth=own.shares), "series"
    )
