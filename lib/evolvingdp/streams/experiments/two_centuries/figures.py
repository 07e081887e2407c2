"""One word over all epochs as a newspaper would print it; errors under each guarantee; hot words; running means."""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd

from evolvingdp.evolving.experiments.split_users import CREWS, HINDSIGHT, ONCE
from evolvingdp.experiment import Figure, Result
from evolvingdp.experiment.describe import curves, short, span
from evolvingdp.experiment.style import MARKERS, PALETTE, THEORY, TRUTH, band, canvas, headline, house, names_beside
from evolvingdp.streams.experiments.two_centuries.methods import CENTRAL, EVERY, GUARANTEES, OPTIMAL, TREE, TUNED, predicted
from evolvingdp.streams.experiments.two_centuries.params import Params
from evolvingdp.streams.experiments.two_centuries.tables import hot_now, part

COLOURS = {
    ONCE: PALETTE[0], HINDSIGHT: PALETTE[9], CREWS: PALETTE[3], TUNED: PALETTE[1], OPTIMAL: PALETTE[7], EVERY: PALETTE[2],
    CENTRAL: PALETTE[4], TREE: PALETTE[5],
}  # fmt: skip
RUNNING = {
    "totals, noise of their own": PALETTE[4], "recommended": PALETTE[2], "Algorithm 2": PALETTE[1], "users alike": PALETTE[9],
    "Algorithm 6": PALETTE[3],
}  # fmt: skip
MOST_WORDS = 16  # of the figure of hot words


@house
def newspaper(result: Result[Params]) -> Figure:
    """The share of one word: the truth, what each user's one report tells, and THRESH, whose budget is soon spent."""
    params, values, years = result.params, result.values, result.params.counts.years
    share = part(result.table, "share").query("repetition == 0").assign(year=lambda rows: years[rows.epoch.astype(int)])
    lines = {method: own.sort_values("year") for method, own in share.groupby("method")}
    own = lines[ONCE]
    figure, ax = canvas(8.0, 4.8)
    half = 1.96 * own.predicted
    ax.fill_between(
        own.year,
        1000 * (own.estimate - half).clip(lower=0),
        1000 * (own.estimate + half),
        color=COLOURS[ONCE],
        alpha=0.18,
        linewidth=0,
    )
    ax.plot(own.year, 1000 * own.truth, color=TRUTH, linewidth=1.2)
    ax.plot(own.year, 1000 * own.estimate.clip(lower=0), color=COLOURS[ONCE], linewidth=1.2, marker="o", markersize=3)
    ends = {
        "what was said": (1000 * own.truth.iloc[-1], TRUTH),
        "one private report a user": (1000 * own.estimate.iloc[-1], COLOURS[ONCE]),
    }
    if CREWS in lines:
        voted = lines[CREWS]
        ax.step(voted.year, 1000 * voted.estimate.clip(0, 1), where="post", color=COLOURS[CREWS], linewidth=1.6)
        ends[f"THRESH by lot: its last news is of {values['last_update_lot']}"] = (
            1000 * voted.estimate.iloc[-1],
            COLOURS[CREWS],
        )
    top = 1.12 * 1000 * float((own.estimate + half).max())
    ax.set(ylim=(0, top), xlabel="year", ylabel=f"“{params.followed}” in a thousand words", xlim=(years.min(), years.max()))
    names = {"\n".join(textwrap.wrap(name, 20)): end for name, end in ends.items()}
    names_beside(
        ax, {name: height for name, (height, _) in names.items()}, {name: colour for name, (_, colour) in names.items()}
    )
    noticed, happened = values["noticed_once"], values["happened"]
    marks = {
        f"{values['happened_how']}\n{happened}": (happened, 0.97, "right"),
        f"noticed\n{noticed}": (noticed, 0.84, "left"),
    }
    dates = dict(zip(params.counts.dates, years, strict=True))
    for text, (date, height, side) in marks.items():
        if date in dates:
            ax.axvline(dates[date], color="0.6", linewidth=0.8, linestyle=":")
            ax.annotate(
                text,
                (dates[date], height * top),
                xytext=(-4 if side == "right" else 4, 0),
                textcoords="offset points",
                ha=side,
                va="top",
                fontsize="small",
                color="0.3",
            )
    seen = f"noticed the change by {noticed}" if noticed != "never" else "did not notice a change"
    headline(
        figure,
        f"“{params.followed}” went from {values['share_first_half']:.0f} to {values['share_second_half']:.0f} in a thousand words: {_users(params.n_users)} users who trust nobody {seen}",
    )
    return Figure(
        "tc-newspaper",
        figure,
        share[share.method.isin([ONCE, CREWS])].drop(columns="part").dropna(axis=1, how="all"),
        f"The share of “{params.followed}” in the counts “{params.counts.name}”, {values['first_date']} to {values['last_date']}: black, as it was; blue, what {params.n_users:,} users tell who report once in "
        f"all their lives ($\\epsilon$ = {params.epsilon:g}), with 95% bands; red, THRESH with roles by lot at the same guarantee, planned for {params.changes} changes. Noticed: where the mean of the last {params.window} "
        "epochs is twice or half of the mean before by four standard errors (the middle of all runs). One run.",
        f"Lines over {values['first_date']} to {values['last_date']} of {params.followed} in a thousand words. The mean of the first half is {short(values['share_first_half'])}, of the second {short(values['share_second_half'])}. "
        f"The private estimate of each user's one report follows it with a mean error of {short(values['error_once'])}; THRESH by lot stays at {short(1000 * float(lines[CREWS].estimate.iloc[-1])) if CREWS in lines else 'nothing'} "
        f"after its last update in {values['last_update_lot']}, with a mean error of {short(values['error_lot'])}. The change happened in {happened} and was noticed: {noticed}.",
    )


def _users(count: int) -> str:
    return f"{count // 10**6} million" if count % 10**6 == 0 else f"{count:,}"


@house
def guarantees(result: Result[Params]) -> Figure:
    """The mean error of the followed share against the number of users, for the methods of each guarantee."""
    params = result.params
    lines = (
        part(result.table, "users")
        .groupby(["method", "n_users"], sort=False)
        .error.agg(["mean", "std", "size"])
        .reset_index()
    )
    shown = [method for method in COLOURS if method in set(lines.method) and method != TUNED]
    figure, ax = canvas(8.4, 4.8)
    for number, method in enumerate(shown):
        own = lines[lines.method == method]
        look = {"color": COLOURS[method], "marker": MARKERS[number % len(MARKERS)], "markersize": 4}
        look["linestyle"] = "-." if method == HINDSIGHT else "-"
        band(ax, own.n_users, 1000 * own["mean"], 1000 * own["std"], own["size"], look, method)
    sizes = np.array(sorted(params.n_users_sweep))
    for method in GUARANTEES.values():
        ax.plot(
            sizes, [1000 * np.sqrt(2 / np.pi) * predicted(params, method, size).mean() for size in sizes.tolist()], **THEORY
        )
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="users $n$",
        ylabel="mean error, per thousand words",
        ylim=(500 * lines["mean"].min(), 2000 * lines["mean"].max()),
    )
    names_beside(ax, {method: 1000 * float(lines[lines.method == method]["mean"].iloc[-1]) for method in shown}, COLOURS)
    final = lines[lines.n_users == lines.n_users.max()].set_index("method")["mean"] * 1000
    headline(
        figure,
        f"Mean error per thousand words with {lines.n_users.max():,.0f} users: {short(final[CENTRAL])} with a curator; trusting nobody {short(final[EVERY])} a report at a time, {short(final[ONCE])} for ever",
    )
    largest = lines[lines.method.isin(shown)].assign(mean=lambda rows: 1000 * rows["mean"])
    return Figure(
        "tc-guarantees",
        figure,
        largest,
        f"What each guarantee costs: the mean error of the share of “{params.followed}” in an epoch, at $\\epsilon$ = {params.epsilon:g}. Dashed: from the stated standard errors. Blue (dashed and dotted: averaged in hindsight) and red: nobody is "
        f"trusted, for all that a user ever sends (grey: with $\\delta$ = {params.delta:g}); green: nobody is trusted, a report at a time, so that all {params.counts.horizon} reports of a user cost {result.values['all_reports']:g}; "
        "pink and violet: a curator is trusted. Means over runs with 95% bands.",
        f"Curves on log axes of the mean error per thousand words against {span(sizes)} users: {curves(largest, 'method', 'n_users', 'mean')}.",
    )


@house
def hot_words(result: Result[Params]) -> Figure:
    """Which words ThresholdMonitor reports as hot, epoch by epoch: those reported most, in the order of their middle."""
    params, found = result.params, hot_now(result)
    counts, years = params.counts, params.counts.years
    most = found.word.value_counts().head(MOST_WORDS).index
    order = sorted(most, key=lambda word: float(np.median(found[found.word == word].epoch)), reverse=True)
    figure, ax = canvas(8.0, 0.6 + 0.3 * max(4, len(order)))
    rows = []
    for height, word in enumerate(order):
        true = np.flatnonzero(counts.shares[:, counts.place(word)] >= params.hot)
        seen = found[found.word == word].epoch.to_numpy()
        ax.scatter(years[true], np.full(len(true), height), s=70, facecolors="none", edgecolors="0.35", linewidths=1)
        ax.scatter(years[seen], np.full(len(seen), height), s=18, color=PALETTE[0])
        rows += [
            {"word": word, "date": counts.dates[epoch], "hot": epoch in true, "reported": epoch in seen}
            for epoch in sorted({*true, *seen})
        ]
    ax.set(xlabel="year", yticks=np.arange(len(order)), yticklabels=order, xlim=(years.min() - 3, years.max() + 3))
    ax.grid(axis="y", visible=False)
    values, data = result.values, pd.DataFrame(rows, columns=["word", "date", "hot", "reported"])
    spans = "; ".join(
        f"{word} from {own.date.iloc[0]} to {own.date.iloc[-1]} in {len(own)} epochs"
        for word, own in data.groupby("word", sort=False)
    )
    headline(
        figure,
        f"{values['hot_listed']:.0f} reports of hot words in a run, on average {values['hot_wrong_monitor']:.2g} of them wrong",
    )
    return Figure(
        "tc-hot-words",
        figure,
        data,
        f"Which words are hot now, told to a public that trusts the curator: ThresholdMonitor at $\\epsilon$ = {params.epsilon:g}, $\\delta$ = {params.delta:g}, $k$ = {params.reports}, {params.n_users:,} users with one word each an epoch. Filled: reported; "
        f"open: content words of at least {values['hot']:g} in a thousand. The {len(order)} words that are reported most; all epochs together report {values['hot_listed']:.0f} in a run, of which {values['hot_wrong_monitor']:.1f} are wrong on average over the runs. Shown is one run.",
        f"A row of dots for each of {len(order)} words over {values['first_date']} to {values['last_date']}: {spans}. Nearly every open circle is filled: {values['hot_wrong_monitor']:.2g} of {values['hot_listed']:.0f} reports a run are wrong.",
    )


@house
def running_means(result: Result[Params]) -> Figure:
    """The running mean with a curator: the paper's algorithms sample by sample, and noisy totals of each epoch."""
    params, years = result.params, result.params.counts.years
    found = (
        part(result.table, "mean")
        .query("n_users == @params.sample_users")
        .assign(year=lambda rows: years[rows.epoch.astype(int)])
    )
    lines = found.groupby(["method", "year"], sort=False).estimate.mean().mul(1000).reset_index()
    truth = found.groupby("year").truth.mean().mul(1000)
    figure, ax = canvas(8.0, 4.4)
    ax.plot(truth.index, truth, color=TRUTH, linewidth=2.4, alpha=0.6)
    for method, colour in RUNNING.items():
        own = lines[lines.method == method]
        ax.plot(own.year, own.estimate.clip(lower=1e-2), color=colour, linewidth=1.3)
    top = 2.5 * float(truth.max())
    ax.set(
        xlabel="year",
        yscale="log",
        ylim=(max(0.1, float(truth.min()) / 2), top),
        ylabel=f"running mean of “{params.followed}”, per thousand",
        xlim=(years.min(), years.max()),
    )
    ends = {method: min(max(float(lines[lines.method == method].estimate.iloc[-1]), 0.2), top) for method in RUNNING}
    names_beside(ax, {"truth": float(truth.iloc[-1])} | ends, RUNNING | {"truth": TRUTH})
    shown = lines[lines.method.isin(list(RUNNING))]
    final = {method: short(float(lines[lines.method == method].estimate.iloc[-1])) for method in RUNNING}
    plain, *_, full = RUNNING
    headline(
        figure, f"The mean ends at {short(float(truth.iloc[-1]))}: “{plain}” at {final[plain]}, “{full}” at {final[full]}"
    )
    return Figure(
        "tc-running-means",
        figure,
        pd.concat(
            [shown, pd.DataFrame({"method": "truth", "year": truth.index, "estimate": truth.to_numpy()})], ignore_index=True
        ),
        f"A curator's running mean of the share of “{params.followed}”, {params.sample_users:,} users with one word an epoch, $\\epsilon$ = {params.epsilon:g} for each user. Algorithm 6 and users alike put a user's samples into blocks of 1, 1, 2, 4, ...: their last block is full in "
        f"{result.values['used_until']}, and they tell nothing of what comes after; a step may be too small to be seen. A line that falls out of the axis is at 0, or nearly. Violet: the totals of each epoch with noise of their own, the plainest method. Means of the runs.",
        f"Lines on a log axis of the running mean per thousand words over {result.values['first_date']} to {result.values['last_date']}: truth from {short(float(truth.iloc[0]))} to {short(float(truth.iloc[-1]))}; {curves(shown, 'method', 'year', 'estimate')}. "
        f"Block algorithms stand still from {result.values['used_until']} on.",
    )
