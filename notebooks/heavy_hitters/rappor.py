"""RAPPOR on Google's Demo 3 and with a dictionary of Brown's words: what it costs, what a decoder finds, who is closer.

`run` gives a row a candidate and data set of Demo 3 and a row a run on Brown, `values` the numbers that claims and prose read.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from evolvingdp.book.own import Release, checked
from evolvingdp.book.params import Metric
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.count_sketch import FreqOracle
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.rappor_decoding import decode
from evolvingdp.heavy_hitters.sketches.projective import ProjectiveOracle
from evolvingdp.notebooks.heavy_hitters import streams
from evolvingdp.notebooks.heavy_hitters.lists import score
from evolvingdp.streams import reading

METRIC = Metric("found", "values that RAPPOR detects in Demo 3", "values")

CLAIMS = """
? 1.0216 <= demo_3 * epsilon_one <= 1.0217   One report of Demo 3 costs 2 ln(5/3), not ln 3
? 2.1972 <= demo_3 * epsilon_permanent <= 2.1973   Any number of reports of one value costs 2 ln 3
? demo_3 * found >= 45 - 2 * 3.0 / sqrt(data_sets)   Values found at a nominal false-discovery rate of 5%
? demo_3 * false <= 3.5 + 2 * 1.5 / sqrt(data_sets)   False ones among them
? demo_3 * found_at_ten_false >= 55 - 2 * 4.2 / sqrt(data_sets)   Values found when ten false ones are accepted
? demo_3 * l1 <= 0.148 + 2 * 0.012 / sqrt(data_sets)   L1 distance of the fit over the values it can find
? demo_3 * l_inf <= 0.0065 + 2 * 0.00094 / sqrt(data_sets)   Largest distance, mean over data sets
? demo_3 * tail_zero >= 0.8   RAPPOR's list reports zero for most values of the last fifth of the ranks: share
? demo_3 * tail_rappor / tail_mean <= 1   Zero is the better estimate there: RMSE of RAPPOR's list over FreqOracle's mean's
1 - max(0.06, z_error) <= z_rms <= 1 + max(0.06, z_error)   The standard errors are right: RMS of error over standard error
false_share <= false_discovery_rate + false_error   The list keeps its false-discovery rate, to four standard errors: share of false ones
brown_oracle_f1 >= 0.9   A dictionary on Brown, F1: ProjectiveOracle
brown_rappor_f1 >= 0.9   A dictionary on Brown, F1: RAPPOR
0.95 <= brown_error_ratio <= 1.05   The wide fit's standard error is right on Brown: RMSE over standard error
"""
# The margins of Demo 3 are two standard errors of a mean: deviations between 60 data sets that no claim is made on.

ROWS, WIDTH = 285, 4096  # of the frequency oracle, as in Section 4
UNKNOWN = 9  # Demo 3 forgets the candidates whose number ends in 9
Z_DEVIATION = 0.067  # between data sets, of the RMS of error over standard error: three, as this can fail on two sides
# Google's own R decoder on ten data sets of this kind, run apart from this book: smallest and largest value
R_DECODER = {"found": (44, 53), "false": (7, 12), "l1": (0.155, 0.202), "l_inf": (0.0077, 0.0096)}
RAPPOR, ORACLE = "RAPPOR", "ProjectiveOracle"
METHODS = {
    "rappor_listed": "RAPPOR, listed",
    "rappor": "RAPPOR, fit",
    "oracle_median": "FreqOracle, median",
    "oracle_mean": "FreqOracle, mean",
}
DEMO_3 = {
    "n_clients": 100_000, "n_reports": 10, "n_values": 100, "n_strangers": 100, "n_bits": 32, "n_cohorts": 64,
    "permanent_noise": 0.5, "one_from_zero": 0.25, "one_from_one": 0.75, "false_discovery_rate": 0.05,
}  # fmt: skip


def check(params: Any) -> dict[str, Any]:
    """Raise ValueError for what is no RAPPOR, or no fit that a list of candidates can be made from."""
    if params.data:
        return checked(params, _own_words)
    reports, equations = params.n_clients * params.n_reports, params.n_bits * params.n_cohorts
    if reports > 10**8:
        raise ValueError(f"n_clients * n_reports must be at most 10^8, got {reports:.3g}")
    if equations * (params.n_values + params.n_strangers) > 10**8:
        raise ValueError(
            f"n_bits * n_cohorts * (n_values + n_strangers) must be at most 10^8 for the fit, got "
            f"{equations * (params.n_values + params.n_strangers):.3g}"
        )
    if params.n_values + params.n_strangers > 0.8 * equations:
        raise ValueError(
            f"n_values + n_strangers must be at most {int(0.8 * equations)}, four fifths of n_bits * n_cohorts, so that a list "
            f"of candidates has a false-discovery rate, got {params.n_values + params.n_strangers}"
        )
    rappor(params)
    return {}


def rappor(params: Any) -> Rappor:
    return Rappor(params.n_bits, params.n_cohorts, params.permanent_noise, params.one_from_zero, params.one_from_one)


def is_demo_3(params: Any) -> bool:
    """Whether the parameters of the demo are Google's; its bounds say nothing about others."""
    return all(getattr(params, name) == value for name, value in DEMO_3.items())


def candidates(params: Any) -> NDArray[np.uint64]:
    """Nine tenths of the values that occur, and strangers."""
    everyone = np.arange(1, params.n_values + params.n_strangers + 1, dtype=np.uint64)
    asked: NDArray[np.uint64] = everyone[(everyone % 10 != UNKNOWN) | (everyone > params.n_values)]
    return asked


def run(params: Any, seed: int) -> pd.DataFrame:
    """A row per candidate and data set of Demo 3 (frequencies as fractions of the reports), a row per run on Brown."""
    sets = [_demo(params, seed, repetition) for repetition in range(params.repetitions)]
    brown = [row for repetition in range(params.brown_repetitions) for row in _brown(params, seed, repetition)]
    return pd.concat([*sets, pd.DataFrame(brown)], ignore_index=True)


def _demo(params: Any, seed: int, repetition: int) -> pd.DataFrame:
    """One data set: what RAPPOR and FreqOracle say of every candidate."""
    values = streams.demo_3(params.n_clients, params.n_reports, stream(seed, "data", repetition), n_values=params.n_values)
    total = values.size
    asked = candidates(params)
    present, held = np.unique(values, return_counts=True)
    truth = pd.Series(held, index=present).reindex(asked, fill_value=0).to_numpy()
    settings = rappor(params)
    cohorts = np.arange(params.n_clients) % params.n_cohorts  # as in Google's generator
    protocol = settings.draw_hashes(stream(seed, "RAPPOR hashes", repetition))
    pairs = streams.repeated_values(values, cohorts, params.n_cohorts)
    counts = protocol.simulate_pairs(*pairs, stream(seed, "RAPPOR", repetition))
    decoded = decode(protocol, counts, asked)
    hashes = MultiplyShift.draw(ROWS, WIDTH, stream(seed, "oracle hashes", repetition))
    oracle = FreqOracle(hashes, settings.epsilon_of_reports(1))
    sketch = oracle.simulate(present, held, stream(seed, "oracle", repetition))
    listed = decoded.listed(params.false_discovery_rate)
    frame = pd.DataFrame(
        {
            "part": "demo 3",
            "repetition": repetition,
            "value": asked.astype(int),
            "truth": truth / total,
            "rappor": decoded.words.estimate / total,
            "unbiased": decoded.words.unbiased / total,
            "standard_error": decoded.words.standard_error / total,
            "p_value": decoded.words.p_value,
            "listed": listed.astype(int),
            "listed_at_a_tenth": decoded.listed(0.1).astype(int),
            "rappor_listed": np.where(listed, decoded.words.estimate, 0.0) / total,
            "dispersion": decoded.dispersion,
        }
    )
    for estimator in ("median", "mean"):
        frame[f"oracle_{estimator}"] = oracle.estimate(sketch, asked, estimator) / total
    return frame


def _brown(params: Any, seed: int, repetition: int) -> Iterator[dict[str, Any]]:
    """A dictionary of all Brown words at one loss per user: who finds the words above 15 sqrt(n) users?"""
    counts = streams.brown_counts(params.n_users, stream(seed, "brown", repetition))
    keys = streams.brown_keys()
    threshold = 15 * math.isqrt(params.n_users)
    heavy = set(np.flatnonzero(counts > threshold))
    protocol = Rappor.one_shot(params.epsilon, n_bits=64, n_cohorts=128).draw_hashes(
        stream(seed, "brown RAPPOR hashes", repetition)
    )
    decoded = decode(protocol, protocol.simulate(keys, counts, stream(seed, "brown RAPPOR", repetition)), keys)
    oracle = ProjectiveOracle.draw(16, 2**14, params.epsilon, stream(seed, "brown oracle hashes", repetition))
    sketch = oracle.simulate(keys, counts, stream(seed, "brown oracle", repetition))
    told = {
        RAPPOR: (decoded.words.unbiased.to_numpy(), float(decoded.words.standard_error.mean()), protocol.settings.n_bits)
    }
    points = math.ceil(math.log2(oracle.space.points))
    told[ORACLE] = oracle.estimate(sketch, keys, "joint"), oracle.standard_error(params.n_users, "mean"), points
    for method, (estimate, error, bits) in told.items():
        yield {
            "part": "brown",
            "repetition": repetition,
            "method": method,
            **score(pd.Series(np.flatnonzero(estimate >= threshold)), heavy),
            "rmse": float(np.sqrt(np.mean(np.square(estimate - counts)))),
            "standard_error": error,
            "bits": bits,
        }


def demo(table: pd.DataFrame) -> pd.DataFrame:
    return table[table.part == "demo 3"]


def per_data_set(table: pd.DataFrame) -> pd.DataFrame:
    """A row per data set: how many candidates are listed, rightly and wrongly, and the distance of the fit to the truth."""
    rows = []
    for repetition, data in demo(table).groupby("repetition"):
        real = data.truth > 0
        distance = (data.rappor - data.truth).abs()[real]
        tenth = data[data.listed_at_a_tenth == 1]
        rows.append(
            {
                "repetition": repetition,
                "found": int(data.listed[real].sum()),
                "false": int(data.listed[~real].sum()),
                "false_at_a_tenth": float((tenth.truth == 0).mean()) if len(tenth) else 0.0,
                "found_at_ten_false": int(np.interp(10, *_curve(data)[::-1])),
                "l1": float(distance.sum()),
                "l1_listed": float((data.rappor_listed - data.truth).abs()[real].sum()),
                "l_inf": float(distance.max()),
                "z_rms": float(np.sqrt(np.mean(np.square((data.unbiased - data.truth) / data.standard_error)))),
            }
        )
    return pd.DataFrame(rows)


def _curve(data: pd.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The most values found for each number of false ones, as the list grows: found (f,), false (f,)."""
    real = (data.truth > 0).to_numpy()[np.argsort(data.p_value.to_numpy(), kind="stable")]
    found, false = np.cumsum(real), np.cumsum(~real)
    steps = np.arange(false[-1] + 1)
    return np.array([found[false <= step].max(initial=0) for step in steps]), steps


def discoveries(table: pd.DataFrame) -> pd.DataFrame:
    """Found against false, mean over data sets: false, found, found_sd, and what normal errors predict."""
    curves = np.array([_curve(data)[0] for _, data in demo(table).groupby("repetition")])
    mean = demo(table).groupby("value")[["truth", "standard_error"]].mean()
    signal = (mean.truth / mean.standard_error)[mean.truth > 0].to_numpy()
    false = np.arange(curves.shape[1])
    cut = -ndtri((false + 0.5) / int((mean.truth == 0).sum()))
    predicted = ndtr(signal[None, :] - cut[:, None]).sum(axis=1)
    return pd.DataFrame(
        {"false": false, "found": curves.mean(axis=0), "found_sd": curves.std(axis=0, ddof=1), "predicted": predicted}
    )


def bands(table: pd.DataFrame, n_values: int) -> pd.DataFrame:
    """By fifths of the `n_values` ranks: how often a method reports zero, and its root mean square error with a 95% band."""
    rows = []
    data = demo(table)
    edges = np.round(np.linspace(0, n_values, 6)).astype(int)
    for low, high in zip(edges[:-1] + 1, edges[1:], strict=True):
        part = data[data.value.between(low, high)]
        for method in METHODS:
            squares = ((part[method] - part.truth) ** 2).groupby(part.repetition).mean()
            half = 1.96 * squares.std() / math.sqrt(len(squares))
            rows.append(
                {
                    "ranks": f"{low}\u2013{high}",
                    "method": method,
                    "zero": float((part[method] == 0).mean()),
                    "rmse": math.sqrt(squares.mean()),
                    "low": math.sqrt(max(0.0, squares.mean() - half)),
                    "high": math.sqrt(squares.mean() + half),
                }
            )
    return pd.DataFrame(rows)


def by_rank(table: pd.DataFrame, method: str) -> pd.DataFrame:
    """Of the candidates that occur: mean, deviation and truth of an estimate, and what it is in the first data set."""
    data = demo(table)
    data = data[data.truth > 0]
    grouped = data.groupby("value")[method]
    part = pd.DataFrame({"mean": grouped.mean(), "sd": grouped.std(), "truth": data.groupby("value").truth.mean()})
    return part.reset_index().assign(method=method, repetition_0=data[data.repetition == 0][method].to_numpy())


def losses(params: Any) -> pd.DataFrame:
    """The exact loss of many reports of one value: of RAPPOR, and with fresh noise at every report."""
    settings = rappor(params)
    reports = np.unique(np.round(np.geomspace(1, 100, 40)).astype(int))
    told = [settings.epsilon_of_reports(int(number)) for number in reports]
    fresh = reports * settings.epsilon_of_reports(1)
    return pd.DataFrame({"reports": reports, "rappor": told, "fresh": fresh, "permanent": settings.epsilon_permanent})


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    sets, settings, ranks = per_data_set(table), rappor(params), bands(table, params.n_values)
    tail = ranks[ranks.ranks == ranks.ranks.iloc[-1]].set_index("method")
    brown = table[table.part == "brown"].groupby("method")
    f1, total, changes = brown.f1.mean(), params.n_clients * params.n_reports, min(10, params.n_bits, params.n_reports)
    listed = max(1, int((sets.found + sets.false).sum()))
    means = sets[["found", "false", "found_at_ten_false", "l1", "l_inf", "z_rms", "false_at_a_tenth"]].mean().to_dict()
    return means | {
        "demo_3": 1 if is_demo_3(params) else math.nan,
        "epsilon_one": settings.epsilon_of_reports(1),
        "epsilon_permanent": settings.epsilon_permanent,
        "epsilon_fresh": params.n_reports * settings.epsilon_of_reports(1),
        "epsilon_one_change": settings.loss_of_histories([1, 1], [1, 2]),
        "change_reports": changes,
        "epsilon_changes": settings.loss_of_histories([1] * changes, [1 << place for place in range(changes)]),
        "reports": total,
        "data_sets": params.repetitions,
        "dispersion": demo(table).dispersion.mean(),
        "z_error": 3 * Z_DEVIATION / math.sqrt(params.repetitions),
        "false_share": (sets.false / (sets.found + sets.false).clip(lower=1)).mean(),
        "false_error": 4 * math.sqrt(params.false_discovery_rate / listed),  # the false ones are nearly Poisson
        "false_at_a_tenth_error": sets.false_at_a_tenth.sem(),
        "tail_zero": tail.zero["rappor_listed"],
        "tail_rappor": tail.rmse["rappor_listed"] * total,
        "tail_median": tail.rmse["oracle_median"] * total,
        "tail_mean": tail.rmse["oracle_mean"] * total,
        "brown_rappor_f1": f1[RAPPOR],
        "brown_oracle_f1": f1[ORACLE],
        "brown_error_ratio": (brown.get_group(RAPPOR).rmse / brown.get_group(RAPPOR).standard_error).mean(),
        "brown_rmse_ratio": brown.rmse.mean()[RAPPOR] / brown.rmse.mean()[ORACLE],
        "brown_rappor_bits": brown.bits.first()[RAPPOR],
        "brown_oracle_bits": brown.bits.first()[ORACLE],
        "brown_users": params.n_users,
        "brown_epsilon": params.epsilon,
    }


def decoders(params: Any, table: pd.DataFrame) -> pd.DataFrame:
    """Ours beside Google's R decoder."""
    sets = per_data_set(table)

    def ours(column: str, digits: int) -> str:
        return f"{sets[column].mean():.{digits}f} ({sets[column].std():.{digits}f})"

    def theirs(column: str) -> str:
        return " to ".join(map(str, R_DECODER[column]))

    rows = [
        ("values found", theirs("found"), ours("found", 1)),
        ("false ones", theirs("false"), ours("false", 1)),
        ("found with ten false", "", ours("found_at_ten_false", 1)),
        ("L1 distance of the fit", theirs("l1"), ours("l1", 3)),
        ("L1 distance, zero where not listed", "", ours("l1_listed", 3)),
        ("largest distance of the fit", theirs("l_inf"), ours("l_inf", 4)),
    ]
    rate = f"at a false-discovery rate of {params.false_discovery_rate:g}"
    return pd.DataFrame(rows, columns=["", "Google's decoder", f"ours, {rate}: mean (sd)"])


def brown_table(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for method, runs in table[table.part == "brown"].groupby("method", sort=False):
        row = {"protocol": method, "bits a user": f"{runs.bits.iloc[0]:.0f}"}
        for column in ("precision", "recall", "f1"):
            row["F1" if column == "f1" else column] = f"{runs[column].mean():.3f} ({runs[column].std():.3f})"
        rows.append(row | {"standard error": f"{runs.standard_error.mean():,.0f}", "RMSE": f"{runs.rmse.mean():,.0f}"})
    return pd.DataFrame(rows)


def in_words(ranks: pd.DataFrame, column: str, short: Any) -> str:
    """`column` of every method in the first and in the last group of ranks."""
    lines = ((label, ranks[ranks.method == method][column]) for method, label in METHODS.items())
    return ", ".join(f"{label} from {short(line.iloc[0])} to {short(line.iloc[-1])}" for label, line in lines)


OWN_BITS, OWN_COHORTS = 64, 128  # for words of a reader's own
OWN_MOST = 2_000  # words of a list: half a minute


def _own_words(path: Any) -> reading.Words:
    own = reading.read_words(path)
    if len(own.words) > OWN_MOST:
        raise ValueError(
            f"{path} must have at most {OWN_MOST:,} different words, got {len(own.words):,}; join the rare ones"
        )
    return own


def of_own(params: Any, seed: int) -> Release:
    """RAPPOR on the words of a file, a user each; the list of words is public, and only their counts are not."""
    own = _own_words(params.data)
    keys = np.array(
        [int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest()) for word in own.words], np.uint64
    )
    method = Rappor.one_shot(params.epsilon, n_bits=OWN_BITS, n_cohorts=OWN_COHORTS)
    protocol = method.draw_hashes(stream(seed, "own", "hashes"))
    found = decode(protocol, protocol.simulate(keys, own.counts, stream(seed, "own", "noise")), keys).words
    estimate, off = found.unbiased.to_numpy(), 1.96 * found.standard_error.to_numpy()
    table = pd.DataFrame({"word": own.words, "estimate": estimate, "low": estimate - off, "high": estimate + off})
    table = table.assign(truth=own.counts).sort_values("estimate", ascending=False, kind="stable", ignore_index=True)
    promise = f"pure {params.epsilon:g}-local differential privacy of a user's only report; the list of words is public"
    return Release(own.name, "word", "users", "RAPPOR, one report of 64 bits", promise, table)
