"""The sentences that the chapter says about the stream, and the numbers that its prose prints."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy.stats import binom, norm, poisson

from evolvingdp.core import accounting
from evolvingdp.core.noise import Laplace
from evolvingdp.evolving import CrewThresh, OnceWords, Thresh
from evolvingdp.evolving.experiments.split_users import CREWS, HINDSIGHT, ONCE
from evolvingdp.experiment import Claim, Scalar, at_least, at_most, within
from evolvingdp.sparse_vector import calibrate, histogram
from evolvingdp.streams.experiments.two_centuries import trusted, words
from evolvingdp.streams.experiments.two_centuries.methods import (
    CENTRAL,
    EVERY,
    GUARANTEES,
    OPTIMAL,
    TREE,
    TUNED,
    five_deviations,
    followed,
)  # fmt: skip
from evolvingdp.streams.experiments.two_centuries.params import Params
from evolvingdp.streams.experiments.two_centuries.tables import errors, part, running

RARE = 1e-6  # how rarely a claim that counts may fail where the theory is true


def claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    """First what theory says of any data; then, for the inaugural addresses, what was seen at one seed and is tried at others."""
    found, mean = [], errors(table)
    share = part(table, "share")
    for guarantee, method in GUARANTEES.items():
        own = share[share.method == method]
        off = ((own.estimate - own.truth) / own.predicted).dropna().to_numpy()
        reach = five_deviations(len(off), 6.0 if method == CENTRAL else 3.0)
        found.append(
            within(
                f"The stated standard error is true, {guarantee}: root mean square of the errors over it",
                float(np.sqrt(np.mean(off**2))),
                1 - reach,
                1 + reach,
            )
        )
        least = binom.ppf(RARE, len(off), 0.95 if method != CENTRAL else 0.94) / len(off)
        found.append(
            at_least(f"95% intervals cover the truth, {guarantee}: share of epochs", float((abs(off) <= 1.96).mean()), least)
        )
    noticed = part(table, "noticed")
    tests = words.TESTS * len(noticed) * params.counts.horizon
    found += [
        at_most(
            "Nothing is noticed before it happens, as far as four standard errors promise: false alarms",
            int(noticed.early.sum()),
            float(poisson.isf(RARE, tests * norm.sf(words.DEVIATIONS))),
        ),
        *(_hot(params, table, method) for method in (trusted.MONITOR, trusted.EVERY)),
        at_least(
            "Recomputing with optimal composition is no better than each user once: ratio of mean errors",
            mean[OPTIMAL] / mean[ONCE],
            1.0,
        ),
        at_least(
            "Differences of Algorithm 2's running sums have more noise than each epoch's own: ratio of standard deviations",
            _noise_of_differences(params, share),
            1.0,
        ),
    ]
    if params.data == "inaugural" and not params.word:
        found += _of_addresses(params, table)
    return [claim for claim in found if not math.isnan(claim.value)]


def _noise_of_differences(params: Params, share: pd.DataFrame) -> float:
    """Over that of the noise in every epoch. Both are added to the same users' totals, which cancel: the errors themselves hold
    the drawing of the users' words, too, and that is most of them where there are many users."""
    estimates = share.pivot_table(index=["repetition", "epoch"], columns="method", values="estimate")
    apart = float(((estimates[TREE] - estimates[CENTRAL]) ** 2).mean())
    own = Laplace(params.counts.horizon / params.epsilon).variance / params.n_users**2
    return math.sqrt(max(0.0, apart / own - 1))


def _hot(params: Params, table: pd.DataFrame, method: str) -> Claim:
    """No word is on the wrong side by more than the noise and the drawing of words can explain, in all queries of all runs."""
    counts = params.counts
    queries = params.repetitions * counts.counts.size
    beta = RARE / (2 * queries)
    if method == trusted.MONITOR:
        noise = calibrate(params.epsilon, params.delta, params.reports).noise
        reach = max(noise.isf(beta), -noise.lower_quantile(beta))
    else:
        scale = histogram(params.epsilon, params.delta, counts.horizon, counts.counts.shape[1], kind="gaussian").scale
        reach = norm.isf(beta) * scale
    drawn = norm.isf(beta) * math.sqrt(params.hot / params.n_users) * 1.5
    own = part(table, "hot")
    own = own[own.method == method]
    return at_most(
        f"A word on the wrong side of the line, while nobody is deleted, is next to it ({method}): farthest share",
        own[own.left > 0.9999].farthest.max(),
        reach / params.n_users + drawn,
    )


def _of_addresses(params: Params, table: pd.DataFrame) -> list[Claim]:
    """Chosen after one look, at seed 1; tried at seeds that nobody has looked at."""
    mean, users = errors(table), part(table, "users").groupby(["n_users", "method"]).error.mean()
    means = running(table).set_index(["n_users", "method"])
    fewest, most = min(params.n_users_sweep), max(params.n_users_sweep)
    stopped = part(table, "mean").groupby("method").used.max()
    half = 1 << (params.counts.horizon.bit_length() - 1)
    blocks = ["users alike", "Algorithm 4", "Algorithm 5", "Algorithm 6"]
    return [
        at_least("Drift defeats THRESH: its mean error over that of each user once", _ratio(mean, TUNED, ONCE), 2.0),
        at_least("With roles by lot, too", _ratio(mean, CREWS, ONCE), 2.0),
        at_most(
            "With the fewest users averaging between detected changes helps: error in hindsight over that as reported",
            _ratio(users[fewest], HINDSIGHT, ONCE),
            0.8,
        ),
        at_least("With the most it hurts: the same ratio", _ratio(users[most], HINDSIGHT, ONCE), 1.0),
        within(
            "Blocks of 1, 1, 2, 4, ... samples use a power of two of a user's samples and no more: the largest",
            float(stopped[blocks].max()),
            half,
            half,
        ),
        at_most(
            "Noise in every epoch, and totals, beat the recommended running mean of samples: ratio of errors",
            means.error[params.sample_users, trusted.ALONE] / means.error[params.sample_users, "recommended"],
            1.0,
        ),
    ]


def _ratio(mean: pd.Series, method: str, other: str) -> float:
    return float(mean[method] / mean[other]) if method in mean.index else math.nan


def values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    counts, mean, truth = params.counts, errors(table), followed(params)
    dates, half, horizon = counts.dates, counts.horizon // 2, counts.horizon
    shown: dict[str, Scalar] = {
        "word": params.followed,
        "n_users": params.n_users,
        "words_per_user": params.words_per_user,
        "sample_users": params.sample_users,
        "epsilon": params.epsilon,
        "delta": params.delta,
        "epochs": horizon,
        "n_words": len(counts.words),
        "first_date": dates[0],
        "last_date": dates[-1],
        "changes": params.changes,
        "window": params.window,
        "hot": 1000 * params.hot,
        "reports": params.reports,
        "share_first_half": 1000 * float(truth[:half].mean()),
        "share_second_half": 1000 * float(truth[half:].mean()),
        "all_reports": horizon * params.epsilon,
        "all_reports_delta": _composed(params),
        "epoch_scale": Laplace(horizon / params.epsilon).scale,
        "fewest_users": min(params.n_users_sweep),
        "most_users": max(params.n_users_sweep),
    }
    names = {"once": ONCE, "hindsight": HINDSIGHT, "lot": CREWS, "tuned": TUNED, "composed": OPTIMAL, "every": EVERY}
    users = part(table, "users").groupby(["method", "n_users"]).error.mean()
    for name, method in (names | {"central": CENTRAL, "differences": TREE}).items():
        shown[f"error_{name}"] = 1000 * float(mean.get(method, 0.5))
        for size in (min(params.n_users_sweep), max(params.n_users_sweep)):
            side = "fewest" if size == min(params.n_users_sweep) else "most"
            shown[f"error_{name}_{side}"] = 1000 * float(users.get((method, size), 0.5))
    share = part(table, "share")
    for name, method in {"lot": CREWS, "tuned": TUNED}.items():
        own = share[share.method == method].last_update
        shown[f"last_update_{name}"] = dates[int(own.median())] if len(own) else "never"
    noticed = part(table, "noticed")
    followed_events = noticed[noticed.word == params.followed]
    for name, guarantee in zip(("once", "every", "central"), GUARANTEES, strict=True):
        epochs = np.sort(followed_events[followed_events.guarantee == guarantee].epoch.to_numpy())
        middle = int(epochs[len(epochs) // 2]) if len(epochs) else -1
        shown[f"noticed_{name}"] = dates[middle] if middle >= 0 else "never"
        seen = noticed[noticed.guarantee == guarantee].groupby("word").epoch.max() >= 0
        shown[f"words_noticed_{name}"] = int(seen.sum())
    event = int(followed_events.event.iloc[0]) if len(followed_events) else -1
    shown["happened"] = dates[event] if event >= 0 else "never"
    shown["happened_how"] = str(followed_events.event_kind.iloc[0]) if event >= 0 else ""
    shown["watched"] = len(params.watched)
    of_words = part(table, "words").groupby("method")[["max_error", "recall"]].mean()
    kinds = {"split": words.SPLIT, "averaged": words.AVERAGED, "heavy": words.HEAVY, "report": words.REPORTS}
    for name, method in (kinds | {"trusted": words.HISTOGRAM, "heavy_lot": words.HEAVY_LOT}).items():
        shown[f"recall_{name}"] = float(of_words.recall.get(method, 0.0))
        shown[f"word_error_{name}"] = 1000 * float(of_words.max_error.get(method, 1.0))
    shown["split_error"] = 1000 * OnceWords(params.n_users, horizon, len(counts.words), params.epsilon).standard_error
    means = running(table).set_index(["n_users", "method"])
    for name, method in {
        "naive": "Algorithm 2", "recommended": "recommended", "full": "Algorithm 6", "alone": trusted.ALONE,
        "gaussian": trusted.ALONE_DELTA, "per_step": trusted.PER_STEP, "tree": "totals, Algorithm 2", "alike": "users alike",
    }.items():  # fmt: skip
        shown[f"running_{name}"] = 1000 * float(means.error[params.sample_users, method])
        shown[f"own_{name}"] = 1000 * float(means.own_error[params.sample_users, method])
    used = part(table, "mean").query("method == 'Algorithm 6'").used.max()
    shown["used_blocks"] = int(used)
    shown["used_until"] = dates[int(used) - 1]
    hot = part(table, "hot")
    for name, method in {"monitor": trusted.MONITOR, "histogram": trusted.EVERY}.items():
        own_hot = hot[hot.method == method]
        shown[f"hot_wrong_{name}"] = float(own_hot.wrong.sum() / params.repetitions)
    shown["hot_listed"] = float(hot[hot.method == trusted.MONITOR].found.sum() / params.repetitions)
    shown["left"] = float(hot.left.min())
    shown["monitor_noise"] = float(calibrate(params.epsilon, params.delta, params.reports).noise.isf(0.16))
    shown["histogram_noise"] = histogram(params.epsilon, params.delta, horizon, 2, kind="gaussian").scale
    searched = part(table, "search")
    shown["searched"] = len(searched)
    shown["search_found"] = int(searched.found.sum()) if len(searched) else 0
    shown["search_heavy"] = int(searched.heavy.sum()) if len(searched) else 0
    shown["search_right"] = int(searched.right.sum()) if len(searched) else 0
    shown["search_line"] = 1000 * float(searched.threshold.max()) if len(searched) else 0.0
    return shown | _planned(params)


def _composed(params: Params) -> float:
    """What all reports of one user cost together with optimal composition, at `delta`."""
    low, high = params.epsilon, params.counts.horizon * params.epsilon
    for _ in range(40):
        middle = (low + high) / 2
        enough = accounting.optimal(middle, params.delta, params.counts.horizon) >= params.epsilon
        low, high = (low, middle) if enough else (middle, high)
    return high


def _planned(params: Params) -> dict[str, Scalar]:
    """The smallest change of the share that THRESH can vote for, per thousand, with and without roles by lot; 1000: it cannot."""
    size = (params.n_users, params.counts.horizon, params.words_per_user, params.epsilon)
    shown: dict[str, Scalar] = {}
    for name, plan in {"tuned": Thresh.tuned, "lot": CrewThresh.plan}.items():
        try:
            made = plan(*size, changes=params.changes)
            voting = made.voting if isinstance(made, CrewThresh) else made
            shown[f"threshold_{name}"] = 1000 * float(voting.threshold(1))
            shown[f"estimates_{name}"] = int(made.crews if isinstance(made, CrewThresh) else made.estimate_cap)
        except ValueError:
            shown[f"threshold_{name}"], shown[f"estimates_{name}"] = 1000.0, 0
    return shown
