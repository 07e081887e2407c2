"""Where each method wins: along horizons, changes and lengths of an epoch, on a map, and for bits that hardly change."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap

from evolvingdp.evolving.experiments.choosing.methods import MEMOIZED, OPTIMAL, TREES, TUNED, layered
from evolvingdp.evolving.experiments.choosing.params import Params
from evolvingdp.evolving.experiments.choosing.tables import line, winners
from evolvingdp.evolving.experiments.split_users import CREWS, HINDSIGHT, ONCE, ONLINE, SIXTEEN
from evolvingdp.experiment import Figure, Result
from evolvingdp.experiment.describe import curves, short, span
from evolvingdp.experiment.style import MARKERS, PALETTE, band, canvas, headline, house, names_beside

COLOURS = {
    TUNED: PALETTE[1],
    CREWS: PALETTE[3],
    ONLINE: PALETTE[0],
    HINDSIGHT: PALETTE[2],
    SIXTEEN: PALETTE[4],
    ONCE: PALETTE[8],
    OPTIMAL: "0.45",
    **dict(zip(TREES.values(), (PALETTE[9], PALETTE[6], PALETTE[5], PALETTE[3]), strict=True)),
    **dict.fromkeys(MEMOIZED, "0.45"),
}
PARTS = {"horizon": "epochs $T$", "changes": "changes", "epoch_length": r"bits of an epoch $\ell$"}
MEASURES = {"mean_error": "mean error", "max_error": "largest error"}


def _look(method: str) -> dict[str, Any]:
    number = list(COLOURS).index(method)
    style = ":" if method in MEMOIZED else "-"
    return {"color": COLOURS[method], "marker": MARKERS[number % len(MARKERS)], "markersize": 4, "linestyle": style}


@house
def regimes(result: Result[Params]) -> Figure:
    """Mean and largest error along each axis, with the online method that wins at each point."""
    params, parts, won = result.params, [], []
    shown = (OPTIMAL, SIXTEEN, TUNED, CREWS, ONLINE, HINDSIGHT)
    figure, axes = canvas(10.5, 6.0, columns=3, rows=2, sharex="col", sharey="row")
    for column, (part, label) in enumerate(PARTS.items()):
        lines = line(result.table, part)
        for row, measure in enumerate(MEASURES):
            ax = axes[row, column]
            for method in shown:
                one = lines[lines.method == method]
                band(ax, one[part], one[measure], one[f"{measure}_sd"], one.runs, _look(method), method)
            online = lines[lines.method.isin([method for method in shown if method != HINDSIGHT])]
            best = online.loc[online.groupby(part)[measure].idxmin()]
            won += list(best.method) if measure == "mean_error" else []
            ax.scatter(
                best[part], np.full(len(best), 0.035), s=70, marker="s", c=[COLOURS[method] for method in best.method],
                transform=ax.get_xaxis_transform(), zorder=4,
            )  # fmt: skip
            ax.set(xscale="log", yscale="log", ylim=(lines.mean_error.min() / 4, 1))
            ax.minorticks_off()
        axes[1, column].set_xlabel(label)
        parts.append(lines[lines.method.isin(shown)].rename(columns={part: "value"}).assign(sweep=part))
    for row, (measure, label) in enumerate(MEASURES.items()):
        axes[row, 0].set_ylabel(label)
        last = parts[-1][parts[-1].value == parts[-1].value.max()].set_index("method")[measure]
        names_beside(axes[row, 2], {method: float(last[method]) for method in shown if method in last.index}, COLOURS)
    wins = ", ".join(f"“{name}” in {count}" for name, count in pd.Series(won).value_counts().items())
    headline(figure, f"Of {len(won)} settings, the least mean error online has {wins}")
    names = {"horizon": "epochs", "changes": "changes", "epoch_length": "bits of an epoch"}
    described = "; then ".join(
        f"against {span(frame.value)} {names[sweep]}: {curves(frame, 'method', 'value', 'mean_error')}"
        for sweep, frame in zip(PARTS, parts, strict=True)
    )
    return Figure(
        "ev-choosing-regimes",
        figure,
        pd.concat(parts, ignore_index=True),
        f"All methods at $\\epsilon$ = {params.epsilon:g} for everything that a user ever sends (grey: $(\\epsilon, 10^{{-6}})$), on means that change "
        f"at random places to random values: $n$ = {params.n_users:,}, $T$ = {params.horizon}, {params.changes} changes and $\\ell$ = "
        f"{params.epoch_length:,} bits, of which each column changes one. Every method is planned for the number of changes; where THRESH's line ends, "
        "nobody could vote or the budget is too small. Squares: the best of those that answer at the end of each epoch. Means over "
        f"{params.repetitions} streams with 95% bands.",
        f"Six panels of lines on log axes against epochs, changes and bits of an epoch at epsilon {params.epsilon:g}, the mean error in the upper row and the largest in the lower. Mean errors {described}.",
    )


@house
def where(result: Result[Params]) -> Figure:
    """The map: who wins in each setting, and by what factor the choice misses it."""
    params = result.params
    views = {
        "mean error, at the end of each epoch": ("mean_error", True),
        "mean error, in hindsight": ("mean_error", False),
        "largest error, at the end of each epoch": ("max_error", True),
    }
    order = [TUNED, CREWS, ONLINE, HINDSIGHT, ONCE, OPTIMAL]
    figure, axes = canvas(9.0, 7.5, rows=3, sharex=True)
    parts = []
    for ax, (title, (measure, online)) in zip(axes, views.items(), strict=True):
        won = winners(result.table, measure, online)
        parts.append(won.assign(view=title))
        cells = won.pivot_table(
            index=["n_users", "epsilon"], columns=["epoch_length", "horizon", "changes"], values=["factor"], aggfunc="first"
        )["factor"]
        best = won.set_index(["n_users", "epsilon", "epoch_length", "horizon", "changes"]).best
        numbers = np.array([[order.index(best[(*row, *column)]) for column in cells.columns] for row in cells.index])
        ax.pcolormesh(
            numbers,
            cmap=ListedColormap([COLOURS[method] for method in order]),
            vmin=-0.5,
            vmax=5.5,
            alpha=0.55,
            edgecolors="white",
            linewidth=2,
        )
        if measure == "mean_error":
            for (row, column), factor in np.ndenumerate(cells.to_numpy()):
                ax.text(
                    column + 0.5,
                    row + 0.5,
                    f"{factor:.1f}" if factor > 1.05 else "1",
                    ha="center",
                    va="center",
                    fontsize="small",
                )
        ax.set_yticks(np.arange(len(cells)) + 0.5, [f"{_power(n)}, {epsilon:g}" for n, epsilon in cells.index])
        ax.set_title(title, fontsize="medium", loc="left")
        ax.set_ylabel(r"$n$, $\epsilon$")
        ax.grid(visible=False)
    labels = [f"{_power(length)}\n{horizon:g}\n{changes:g}" for length, horizon, changes in cells.columns]
    axes[-1].set_xticks(np.arange(len(labels)) + 0.5, labels)
    axes[-1].set_xlabel(r"bits of an epoch $\ell$, epochs $T$, changes")
    seen = [method for method in order if any((part.best == method).any() for part in parts)]
    handles = [axes[0].scatter([], [], s=90, marker="s", color=COLOURS[method], alpha=0.55, label=method) for method in seen]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize="small")
    missed = max(part.factor.max() for part in parts[:2])
    headline(
        figure,
        f"In all {len(parts[0])} settings choose() has at most {short(missed)} times the mean error of the best method",
    )
    counts = "; ".join(
        f"{title}: " + ", ".join(f"{count} for {name}" for name, count in part.best.value_counts().items())
        for title, part in zip(views, parts, strict=True)
    )
    return Figure(
        "ev-choosing-map",
        figure,
        pd.concat(parts, ignore_index=True),
        f"The method with the smallest error in each of {len(parts[0])} settings, on {params.map_runs} streams or, with two changes, twice as many. Numbers: the mean error of the method that "
        "`choose` takes from public inputs alone, over that of the best (1: within 5%). Each user once stands for periods of any length. The choice is by mean error, so that the lowest map has no numbers.",
        f"Three heat maps of {len(parts[0])} cells, users and epsilon against bits of an epoch, epochs and changes, coloured by the method with the smallest error. {counts}. The choice's mean error is at most "
        f"{short(parts[0].factor.max())} times the best at the end of each epoch and {short(parts[1].factor.max())} times in hindsight.",
    )


def _power(value: float) -> str:
    exponent = round(math.log10(value))
    return f"$10^{exponent}$" if exponent and value == 10**exponent else f"{value:g}"


@house
def rare(result: Result[Params]) -> Figure:
    """Bits that hardly change: trees, each user once, and memoization with what it really costs."""
    params, lines = result.params, line(result.table, "rare")
    figure, axes = canvas(11.0, 4.2, columns=2)
    methods = [*TREES.values(), ONCE, HINDSIGHT, *MEMOIZED]
    for method in methods:
        one = lines[lines.method == method]
        band(axes[0], one.horizon, one.mean_error, one.mean_error_sd, one.runs, _look(method), method)
    axes[0].set(xscale="log", yscale="log", xlabel="epochs $T$", ylabel="mean error", ylim=(lines.mean_error.min() / 2, 0.3))
    last = lines[lines.horizon == lines.horizon.max()].set_index("method").mean_error
    names_beside(axes[0], {method: float(last[method]) for method in methods}, COLOURS)
    axes[0].minorticks_off()
    epochs, prices = np.unique(np.geomspace(1, max(params.horizons), 24).astype(int)), []
    for method in MEMOIZED[:2]:
        layers = layered(method, params.n_users, int(epochs[-1]), params.epsilon)
        losses = [layers.transcript_loss(int(horizon)) for horizon in epochs]
        axes[1].plot(epochs, losses, **_look(method))
        prices.append(pd.DataFrame({"method": method, "horizon": epochs, "loss": losses}))
    axes[1].axhline(params.epsilon, color="black", linewidth=1.2)
    axes[1].set(xscale="log", yscale="log", xlabel="epochs $T$", ylabel=r"exact $\epsilon$ of a user's reports")
    names_beside(axes[1], {part.method.iloc[0]: part.loss.iloc[-1] for part in prices}, COLOURS)
    axes[1].annotate("all others", (1.03, params.epsilon), xycoords=("axes fraction", "data"), va="center", fontsize="small")
    price = pd.concat(prices, ignore_index=True)
    worst = price[price.horizon == price.horizon.max()].loss.min()
    told = f"After {price.horizon.max():,} epochs two layers have lost an epsilon of {math.floor(worst):,} or more"
    headline(figure, f"{told}; trees and one report a user keep to {params.epsilon:g}")
    return Figure(
        "ev-choosing-rare",
        figure,
        pd.concat([lines.assign(panel="error"), price.assign(panel="price")], ignore_index=True),
        f"Bits that hardly change: {params.n_users:,} users with one bit an epoch, 1 when the mean is above a threshold of their own; {params.changes} changes "
        f"of the mean, $\\epsilon$ = {params.epsilon:g}. Left: mean errors, dotted those of memoization, **whose promise is another one**. Right: what all "
        "reports of a memoizing device tell two sequences of bits apart by, exactly; one layer (dBitFlipPM) is infinite from two epochs on. "
        f"Means over {params.repetitions} streams with 95% bands.",
        f"Two panels on log axes against {span(lines.horizon)} epochs. Left, mean errors: {curves(lines, 'method', 'horizon', 'mean_error')}. Right, the exact "
        f"privacy loss: {curves(price, 'method', 'horizon', 'loss')}, above a line at {params.epsilon:g}.",
    )
