"""Recall against users, error against events, the domain's price, a mis-set k, and Brown documents."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from evolvingdp.experiment import Figure, Result
from evolvingdp.experiment.describe import curves, ends, short, span
from evolvingdp.experiment.style import INKS, MARKERS, PALETTE, THEORY, band, canvas, headline, house, names_beside
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters import methods
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.groups import BOUND, RIVALS
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.params import Params
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.tables import recall

_SHOWN = {  # few enough to be told apart; the others are in the table
    methods.MONITOR: (INKS[0], "o", "ThresholdMonitor,\nStableMonitor"),
    methods.FIND_BEST: (INKS[1], "s", "find the step"),
    methods.GAUSSIAN: (INKS[2], "D", "AboveThreshold,\nGaussian"),
    methods.REPEATED: (INKS[3], "^", "AboveThreshold"),
    "histogram, Gaussian, stable": (INKS[5], "v", "histogram"),
}
LOOKS = {name: {"color": color, "marker": marker, "markersize": 4} for name, (color, marker, _) in _SHOWN.items()}
LOOKS["histogram, Gaussian"] = LOOKS["histogram, Gaussian, stable"]


@house
def users(result: Result[Params]) -> Figure:
    """Recall of A, B and C against the number of users, for ThresholdMonitor and the best rival of each kind."""
    lines = recall(result.table, "n_users", "n_users")
    figure, axes = canvas(10.0, 3.6, columns=3, sharey=True)
    for ax, family in zip(axes, methods.FAMILIES, strict=True):
        for name, (_, _, label) in _SHOWN.items():
            line = lines[(lines.method == name) & (lines.family == family)]
            band(ax, line.n_users, line["mean"], line["std"], line["count"], LOOKS[name], label)
        ax.set(xscale="log", xlabel="users n", title=f"groups {family}", ylim=(-0.05, 1.05))
    axes[0].set_ylabel("recall")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(_SHOWN), fontsize="small")
    shown = lines[lines.method.isin(_SHOWN)]
    most = lines[lines.n_users == lines.n_users.max()].groupby("method", sort=False)["mean"].min()
    all_found = " and ".join(most[most > 0.99].index) or "no method"
    headline(figure, f"With {lines.n_users.max():,.0f} users all of A, B and C are found by {all_found}")
    return Figure(
        "sv-shifting-users",
        figure,
        lines,
        f"Example 1.4: the share of the events of each kind of group that is found, $\\epsilon$ = {result.params.epsilon:g}, $\\delta$ = {result.params.delta:g}, "
        f"$\\beta$ = {result.params.beta:g}, $m = n$ steps, $\\lvert X\\rvert = 2^{{{result.params.domain_bits}}}$. Each rival with its best split, threshold and number of reports; of each kind the best "
        "(the table has all). Means over runs with 95% bands, the order of the events drawn anew in each.",
        f"Three panels of lines, one a method, of the recall of groups A, B and C against users, {span(lines.n_users)}, on a log axis. With "
        "the most users it is, in "
        + " ".join(f"{family}: {_grouped(shown[shown.family == family])}." for family in methods.FAMILIES),
    )


@house
def groups(result: Result[Params]) -> Figure:
    """The smallest group that is found with probability .99, against the number of users."""
    params = result.params
    part = result.table[result.table.part == "groups"]
    part = part[(part.reports == params.reports) & (part.bits == params.domain_bits)].sort_values("n_users")
    names = {methods.STABLE: ("black", "P", "StableMonitor")} | {
        name: (color, marker, label.partition(",\nStable")[0]) for name, (color, marker, label) in _SHOWN.items()
    }
    figure, ax = canvas(7.5, 4.4)
    ends_of = {}
    for name, (color, marker, label) in names.items():
        line = part[part.method == name]
        ax.plot(line.n_users, line["size"], color=color, marker=marker, markersize=4, label=label)
        ends_of[label] = float(line["size"].iloc[-1])
    bound = part[part.method == BOUND]
    ax.plot(bound.n_users, bound["size"], **THEORY, label="no method can")
    ends_of["no method can"] = float(bound["size"].iloc[-1])
    ax.set(xscale="log", yscale="log", xlabel="users and steps n", ylabel="smallest group found (users)")
    names_beside(ax, ends_of, {label: color for color, _, label in names.values()} | {"no method can": THEORY["color"]})
    largest = part[
        (part.n_users == part.n_users.max()) & (part.reports == params.reports) & (part.bits == params.domain_bits)
    ]
    found = largest.set_index("method")["size"]
    rival = found[list(RIVALS)].min()
    headline(
        figure,
        f"With {part.n_users.max():,.0f} users StableMonitor finds groups of {found[methods.STABLE]:,.0f}, the best rival of {rival:,.0f}",
    )
    return Figure(
        "sv-shifting-groups",
        figure,
        part,
        f"The smallest group that is found with probability .99 where every user is in $k$ = {params.reports} groups of that size, at $\\epsilon$ = {params.epsilon:g}, "
        f"$\\delta$ = {params.delta:g} and $\\lvert X\\rvert = 2^{{{params.domain_bits}}}$; dashed: the lower bound for any private method. Each rival at the best setting of its grid. Computed, "
        "not sampled: no bands.",
        f"Lines on log axes of the smallest group against users, {span(part.n_users)}, above a dashed lower bound: "
        f"{curves(part, 'method', 'n_users', 'size')}.",
    )


@house
def events(result: Result[Params]) -> Figure:
    """The weight that is needed to find all events, against their number, at k* = 3."""
    part = result.table[result.table.part == "tops"]
    lines = part.groupby(["method", "tops"], sort=False).agg(
        mean=("needed", "mean"), sd=("needed", "std"), runs=("needed", "count"), bound=("bound", "first")
    )
    figure, ax = canvas(7.0, 4.3)
    for method in methods.CURVE:
        line = lines.loc[method].reset_index()
        band(ax, line.tops, line["mean"], line.sd, line.runs, LOOKS[method], method)
        ax.plot(line.tops, line.bound, **THEORY)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="events in all (each user in three)",
        ylabel="error: weight at which all are found",
    )
    last = lines.xs(part.tops.max(), level="tops")["mean"]
    names_beside(
        ax, last[list(methods.CURVE)].to_dict(), {method: LOOKS[method]["color"] for method in methods.CURVE}, "x-small"
    )
    times = short(last[methods.GAUSSIAN] / last[methods.MONITOR])
    headline(
        figure,
        f"With {part.tops.max():,.0f} events AboveThreshold with Gaussian noise has {times} times ThresholdMonitor's error",
    )
    return Figure(
        "sv-shifting-events",
        figure,
        lines.reset_index(),
        f"The smallest weight at which a run would have found all events, against how many there are, if no user is in more than $k^*$ = {result.params.reports} "
        f"of them; $m = 10^{{{round(math.log10(methods.CURVE_HORIZON))}}}$ steps. AboveThreshold may report as often as there are events. Means over runs with 95% bands; dashed: the bound that holds with probability "
        "$1-\\beta/2$.",
        f"Lines on log axes of the error, the weight at which all events are found, against the events in all, "
        f"{span(part.tops)}, below dashed bounds. It goes for {curves(part[part.method.isin(methods.CURVE)], 'method', 'tops', 'needed')}.",
    )


@house
def limits(result: Result[Params]) -> Figure:
    """The threshold against the size of the domain; recall against a mis-set k."""
    domain = result.table[result.table.part == "domain"]
    figure, axes = canvas(9.5, 3.8, columns=2)
    ends_of: dict[str, float] = {}
    for number, reports in enumerate(sorted(domain.reports.astype(int).unique())):
        line = domain[domain.reports == reports]
        look = {"color": PALETTE[number], "marker": MARKERS[number], "markersize": 4}
        axes[0].plot(line.bits, line.threshold, **look)
        ends_of[f"k = {reports}"] = float(line.threshold.iloc[-1])
        axes[0].axhline(line.without_domain.iloc[0], **(THEORY | {"color": PALETTE[number]}))
    axes[0].set(xlabel=r"$\log_2\,|X|$", ylabel="threshold (users)", ylim=(0, None))
    names_beside(axes[0], ends_of, dict(zip(ends_of, PALETTE, strict=False)))
    lines = recall(result.table, "reports", "reports")
    for number, family in enumerate(methods.FAMILIES):
        line = lines[lines.family == family]
        look = {"color": PALETTE[number], "marker": MARKERS[number], "markersize": 4}
        band(axes[1], line.reports, line["mean"], line["std"], line["count"], look, f"groups {family}")
    axes[1].axvline(result.params.reports, color="grey", linestyle=":")
    axes[1].set(xscale="log", xlabel="k that the monitor is given", ylabel="recall", ylim=(-0.03, 1.03))
    shares = lines.pivot(index="reports", columns="family", values="mean")
    names = {family: f"groups {family}" for family in methods.FAMILIES}
    names_beside(axes[1], shares.iloc[-1].rename(names).to_dict(), dict(zip(names.values(), PALETTE, strict=False)))
    asked = [k for k in (shares.index.min(), result.params.reports, shares.index.max()) if k in shares.index]
    told = ", ".join(f"{shares.A[k]:.2f} at k = {k:g}" for k in dict.fromkeys(asked))
    headline(figure, f"The share of the groups A that is found: {told}")
    data = pd.concat([domain.assign(panel="domain"), lines.assign(panel="reports")], ignore_index=True).dropna(
        axis=1, how="all"
    )
    return Figure(
        "sv-shifting-limits",
        figure,
        data,
        "Left: the threshold that keeps elements of weight zero out, which grows with the logarithm of the domain (computed; dashed: $a\\,\\ln(m/\\beta)$, without it). Right: Example 1.4 with another $k$ than the stream's (dotted): too small, and "
        "users are gone when their next group comes; too large, and the noise hides the small groups. Means over runs with 95% bands.",
        f"Two panels. Left, the threshold in users against the bits of the domain, {span(domain.bits)}: rising lines, "
        f"{curves(domain.assign(k='k = ' + domain.reports.astype(int).astype(str)), 'k', 'bits', 'threshold')}, above dashed levels that "
        f"ignore the domain, {span(domain.without_domain)}. Right, recall against the k that the monitor is given, "
        f"{span(lines.reports)} on a log axis, with a dotted line at the right k, {result.params.reports}, where it is "
        + ", ".join(
            f"{span(line[line.reports == result.params.reports]['mean'])} for group {family} and elsewhere at least {short(line['mean'].min())}"
            for family, line in lines.groupby("family", sort=False)
        )
        + ".",
    )


@house
def brown(result: Result[Params]) -> Figure:
    """Words found among Brown documents against the reports allowed."""
    part = result.table[result.table.part == "brown"].copy()
    part["allowed"] = np.where(part.method == methods.MONITOR, part.reports, part.total)
    lines = part.groupby(["method", "allowed"], sort=False).found.agg(["mean", "std", "count"]).reset_index()
    figure, ax = canvas(7.0, 4.0)
    for method in (methods.MONITOR, methods.REPEATED, methods.GAUSSIAN):
        line = lines[lines.method == method].sort_values("allowed")
        band(ax, line.allowed, line["mean"], line["std"], line["count"], LOOKS[method], method)
    ax.set(
        xscale="log", xlabel="reports allowed: k per user, or c in all", ylabel="words found, all categories", ylim=(0, None)
    )
    peaks = lines.loc[lines.groupby("method", sort=False)["mean"].idxmax()].set_index("method")
    for method in (methods.MONITOR, methods.GAUSSIAN):
        place = (peaks.allowed[method], peaks["mean"][method])
        ax.annotate(
            method, place, (0, 6), textcoords="offset points", ha="right", color=LOOKS[method]["color"], fontsize="small"
        )
    last = lines[lines.method == methods.REPEATED].sort_values("allowed").iloc[-1]
    look = {"ha": "left", "color": LOOKS[methods.REPEATED]["color"], "fontsize": "small"}
    ax.annotate(methods.REPEATED, (last.allowed, last["mean"]), (6, 4), textcoords="offset points", **look)
    best = peaks["mean"].idxmax()
    headline(
        figure,
        f"On this corpus {best} finds most words, {peaks['mean'][best]:,.0f}; ThresholdMonitor finds {peaks['mean'][methods.MONITOR]:,.0f}",
    )
    return Figure(
        "sv-shifting-brown",
        figure,
        lines,
        f"The Brown corpus, category by category: {result.params.copies} users hold the words of each of the 500 documents and are asked for while their category is on. "
        "More reports mean more noise: ThresholdMonitor pays for those of one document, AboveThreshold for all, with Gaussian noise at most for as many queries as a document has words. Means over runs with 95% bands.",
        f"Lines of the words found against the reports allowed, {span(lines.allowed)} on a log axis. They rise to a peak and fall again: "
        + ", ".join(
            f"{method} from {ends(line, 'allowed', 'mean')} with a peak of {short(line['mean'].max())}"
            for method, line in lines.groupby("method", sort=False)
        )
        + ".",
    )


def _grouped(lines: pd.DataFrame) -> str:
    """Recall with the most users, the methods that have the same one together."""
    last = lines[lines.n_users == lines.n_users.max()].round({"mean": 2})
    return ", ".join(f"{short(recall)} for {'; '.join(same.method)}" for recall, same in last.groupby("mean", sort=False))
