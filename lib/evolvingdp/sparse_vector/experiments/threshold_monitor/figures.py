"""What deletion buys, noise against k, and promised against attained loss."""

from __future__ import annotations

import numpy as np

from evolvingdp.experiment import Figure, Result
from evolvingdp.experiment.describe import curves, ends, short, span
from evolvingdp.experiment.style import MARKERS, PALETTE, THEORY, TRUTH, band, canvas, headline, house, names_beside
from evolvingdp.sparse_vector.calibration import METHODS
from evolvingdp.sparse_vector.experiments.threshold_monitor.params import MONITOR, Params, halting
from evolvingdp.sparse_vector.experiments.threshold_monitor.tables import calibrations

LOOKS = {name: {"color": PALETTE[n], "marker": MARKERS[n], "markersize": 4} for n, name in enumerate(METHODS)}
NAMES = {
    "theorem": "Theorem 3.2",
    "epochs": "Theorem 3.8, epochs",
    "tight-proof": "the paper's proof, constants evaluated",
    "renyi": "Rényi, for {0, 1}",
    "exact": "exact",
}


@house
def deletion(result: Result[Params]) -> Figure:
    """Groups found against groups asked for."""
    params = result.params
    lines = (
        result.table[result.table.part == "answers"]
        .groupby(["method", "groups"])
        .found.agg(["mean", "std", "count"])
        .reset_index()
    )
    figure, ax = canvas(7.0, 4.0)
    ax.plot([0, params.n_groups], [0, params.n_groups], **THEORY | {"zorder": 5})
    for number, method in enumerate([MONITOR, *map(halting, params.halts)]):
        line = lines[lines.method == method]
        look = {"color": PALETTE[number], "marker": MARKERS[number], "markersize": 4}
        band(ax, line.groups, line["mean"], line["std"], line["count"], look, method)
    ax.set(xlabel="groups asked for", ylabel="groups found")
    last = lines[lines.groups == lines.groups.max()].set_index("method")["mean"]
    names = [MONITOR, *map(halting, params.halts)]
    names_beside(ax, last[names].to_dict(), dict(zip(names, PALETTE, strict=False)))
    rivals = last[names[1:]].max()
    headline(
        figure,
        f"ThresholdMonitor finds {short(last[MONITOR])} of {params.n_groups} groups, AboveThreshold at most {short(rivals)}",
    )
    return Figure(
        "sv-monitor-deletion",
        figure,
        lines,
        f"{params.n_groups} disjoint groups of {params.group_size} users are asked for one after the other, an empty query before each, "
        f"$\\epsilon$ = {params.epsilon:g}, $\\delta$ = {params.delta:g}. AboveThreshold, composed optimally, halts after $c$ reports, and the larger $c$, the larger its noise; "
        "ThresholdMonitor with $k = 1$ deletes the group that it has reported and goes on. Dashed: all groups. Means over runs with 95% bands.",
        f"Lines of the groups found against the groups asked for, {span(lines.groups)}, with a dashed diagonal for all. They go for "
        f"{curves(lines, 'method', 'groups', 'mean')}.",
    )


@house
def noise(result: Result[Params]) -> Figure:
    """The scale of the outer noise against k, for every method."""
    scales = calibrations(result.table)
    figure, ax = canvas(7.0, 4.2)
    for method in METHODS:
        ax.plot(
            scales.index,
            scales[method],
            **LOOKS[method] | {"linewidth": 2.8 if method == "exact" else 1.2},
        )
    k = np.array([scales.index.min(), scales.index.max()])
    ax.plot(k, 4.2247 * np.sqrt(2 * k) / result.params.epsilon, **THEORY)
    ax.set(xscale="log", yscale="log", xlabel="reports k after which a user is deleted", ylabel="scale of the noise (users)")
    last = scales.iloc[-1][list(METHODS)].rename(NAMES)
    names_beside(ax, last.to_dict(), {NAMES[method]: LOOKS[method]["color"] for method in METHODS})
    least = scales.index.min()
    headline(
        figure,
        f"At k = {least:.0f} the exact proof asks for 1/{scales.theorem[least] / scales.exact[least]:,.0f} of the noise that the theorem asks for",
    )
    return Figure(
        "sv-monitor-noise",
        figure,
        scales.reset_index(),
        f"The noise that five proofs ask for to promise the same: ($\\epsilon$, $\\delta$) = ({result.params.epsilon:g}, {result.params.delta:g}) under replacement of a "
        "user. Dashed: what grows like $\\sqrt k$. Computed, not sampled: no bands.",
        f"Five rising lines on log axes of the noise scale in users against the reports k after which a user is deleted, "
        f"{span(scales.index)}, and a dashed one that grows like the square root of k: "
        + ", ".join(f"{NAMES[method]} from {ends(scales.reset_index(), 'reports', method)}" for method in METHODS)
        + ".",
    )


@house
def losses(result: Result[Params]) -> Figure:
    """The exact loss of each method's noise against the promise; and what an explicit adversary attains."""
    params = result.params
    part = result.table[result.table.part == "calibration"]
    figure, axes = canvas(9.0, 4.2, columns=2)
    for method in METHODS:
        line = part[part.method == method]
        axes[0].plot(line.reports, np.maximum(line.exact_epsilon, 1e-6), label=NAMES[method], **LOOKS[method])
    axes[0].axhline(params.epsilon, label="promised", **THEORY)
    axes[0].set(
        xscale="log",
        yscale="log",
        xlabel="reports k",
        ylabel=r"exact $\epsilon$ of its noise",
        ylim=(1e-6, 3 * params.epsilon),
    )
    exact = part[part.method == "exact"]
    axes[1].fill_between(
        exact.reports, exact.attained_laplace, exact.exact_epsilon, color=PALETTE[0], alpha=0.25, linewidth=0
    )
    axes[1].plot(exact.reports, exact.exact_epsilon, color=TRUTH, label="exact bound")
    axes[1].plot(exact.reports, exact.attained_laplace, color=PALETTE[0], marker="o", label="attained, Laplace noise alone")
    axes[1].plot(exact.reports, exact.attained, color=PALETTE[1], marker="s", label="attained, with the inner noise")
    axes[1].set(xscale="log", xlabel="reports k", ylabel=r"$\epsilon$", ylim=(0.85 * params.epsilon, 1.02 * params.epsilon))
    axes[1].legend(loc="lower right", fontsize="x-small")
    first = part[part.method == "theorem"].iloc[0]
    headline(
        figure,
        f"At k = {first.reports:.0f} the theorem's noise costs {short(first.exact_epsilon)}, where {params.epsilon:g} is promised",
    )
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize="x-small")
    return Figure(
        "sv-monitor-losses",
        figure,
        part,
        f"Left: what the noise of each method really costs at $\\delta$ = {params.delta:g}, by the exact analysis, if it promises {params.epsilon:g} (values below $10^{{-6}}$ are drawn there). Right: the "
        "exact bound and what one explicit adversary attains; the truth lies in the shaded strip, and for the full noise between its curve and the bound. Computed, not sampled.",
        f"Two panels against the reports k, {span(part.reports)}, on a log axis. Left, the exact epsilon of each method's noise, on a log axis "
        f"with a dashed line at the promised {params.epsilon:g}: {curves(part.replace({'method': NAMES}), 'method', 'reports', 'exact_epsilon')}. "
        f"Right, epsilon: the exact bound at {span(exact.exact_epsilon)}, what is attained with Laplace noise alone at "
        f"{span(exact.attained_laplace)}, and with the inner noise at {span(exact.attained)}.",
    )
