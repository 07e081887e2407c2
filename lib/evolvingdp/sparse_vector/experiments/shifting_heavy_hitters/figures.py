"""Recall against users, error against events, the domain's price, a mis-set k, and Brown documents."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from evolvingdp.experiment import Figure, Result
from evolvingdp.experiment.describe import curves, ends, short, span
from evolvingdp.experiment.style import MARKERS, PALETTE, THEORY, band, canvas, house
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters import methods
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.params import Params
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.tables import recall

LOOKS = {
    name: {"color": PALETTE[n], "marker": MARKERS[n % len(MARKERS)], "markersize": 4}
    for n, name in enumerate([*(method for method in methods.METHODS if method != methods.FIND_BEST), methods.FIND_BEST])
}


@house
def users(result: Result[Params]) -> Figure:
    """Recall of A, B and C for every method against the number of users."""
    lines = recall(result.table, "n_users", "n_users")
    figure, axes = canvas(10.0, 3.8, columns=3, sharey=True)
    for ax, family in zip(axes, methods.FAMILIES, strict=True):
        for number, method in enumerate(methods.METHODS):
            line = lines[(lines.method == method) & (lines.family == family)]
            shift = 1.06 ** (number - len(methods.METHODS) / 2)
            band(ax, line.n_users * shift, line["mean"], line["std"], line["count"], LOOKS[method], method)
        ax.set(xscale="log", xlabel="users n", title=f"groups {family}", ylim=(-0.05, 1.05))
    axes[0].set_ylabel("recall")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize="x-small")
    return Figure(
        "sv-shifting-users",
        figure,
        lines,
        f"Example 1.4: the share of the events of each kind of group that is found, $\\epsilon$ = {result.params.epsilon:g}, $\\delta$ = {result.params.delta:g}, "
        f"$\\beta$ = {result.params.beta:g}, $m = n$ steps, $\\lvert X\\rvert = 2^{{{result.params.domain_bits}}}$. Means over runs with 95% bands; points are shifted sideways a little so that they can be told apart.",
        f"Three panels of lines, one a method, of the recall of groups A, B and C against users, {span(lines.n_users)}, on a log axis. With "
        "the most users it is, in "
        + " ".join(f"{family}: {_grouped(lines[lines.family == family])}." for family in methods.FAMILIES),
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
        ax.plot(line.tops, line.bound, **THEORY, label="proved" if method == methods.CURVE[-1] else None)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="events in all (each user in three)",
        ylabel="error: weight at which all are found",
    )
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize="x-small")
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
    figure, axes = canvas(9.0, 3.8, columns=2)
    for number, reports in enumerate(sorted(domain.reports.astype(int).unique())):
        line = domain[domain.reports == reports]
        look = {"color": PALETTE[number], "marker": MARKERS[number], "markersize": 4}
        axes[0].plot(line.bits, line.threshold, label=f"k = {reports}", **look)
        axes[0].axhline(line.without_domain.iloc[0], **(THEORY | {"color": PALETTE[number]}))
    axes[0].set(xlabel=r"$\log_2\,|X|$", ylabel="threshold (users)", ylim=(0, None))
    axes[0].legend(title=r"dashed: $a\,\ln(m/\beta)$ alone")
    lines = recall(result.table, "reports", "reports")
    for number, family in enumerate(methods.FAMILIES):
        line = lines[lines.family == family]
        look = {"color": PALETTE[number], "marker": MARKERS[number], "markersize": 4}
        band(axes[1], line.reports, line["mean"], line["std"], line["count"], look, f"groups {family}")
    axes[1].axvline(result.params.reports, color="grey", linestyle=":", label=r"$k^*$")
    axes[1].set(xscale="log", xlabel="k that the monitor is given", ylabel="recall", ylim=(-0.03, 1.03))
    axes[1].legend(loc="lower left", bbox_to_anchor=(0.3, 0.05), fontsize="x-small")
    data = pd.concat([domain.assign(panel="domain"), lines.assign(panel="reports")], ignore_index=True).dropna(
        axis=1, how="all"
    )
    return Figure(
        "sv-shifting-limits",
        figure,
        data,
        "Left: the threshold that keeps elements of weight zero out, which grows with the logarithm of the domain (computed). Right: Example 1.4 with another $k$ than the stream's: too small, and "
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
    for method in (methods.MONITOR, methods.REPEATED, methods.RENYI):
        line = lines[lines.method == method].sort_values("allowed")
        band(ax, line.allowed, line["mean"], line["std"], line["count"], LOOKS[method], method)
    ax.set(
        xscale="log", xlabel="reports allowed: k per user, or c in all", ylabel="words found, all categories", ylim=(0, None)
    )
    ax.legend(loc="upper left")
    return Figure(
        "sv-shifting-brown",
        figure,
        lines,
        f"The Brown corpus, category by category: {result.params.copies} users hold the words of each of the 500 documents and are asked for while their category is on. "
        "More reports mean more noise: ThresholdMonitor pays for those of one document, AboveThreshold for all. Means over runs with 95% bands.",
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
