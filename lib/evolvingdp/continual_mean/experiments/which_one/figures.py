"""Which mean for which stream: a map of errors, and windows."""

from __future__ import annotations

import pandas as pd

from evolvingdp.continual_mean.experiments.which_one.params import Params
from evolvingdp.continual_mean.experiments.which_one.tables import (
    ALONE,
    DELTA,
    KINDS,
    ORDERS,
    POPULATIONS,
    PURE,
    RECOMMENDED,
    USERS_ALIKE,
    WIDE,
    by_width,
    errors,
)
from evolvingdp.experiment import Figure, Result
from evolvingdp.experiment.describe import curves, short, span
from evolvingdp.experiment.style import MARKERS, PALETTE, canvas, headline, house, names_beside


@house
def fills(result: Result[Params]) -> Figure:
    """Late error against T/(nm): a panel per order and population; open and dotted with delta."""
    params, frame = result.params, errors(result.table)
    frame = frame[frame.part == "late"]
    figure, axes = canvas(10.5, 6.2, len(ORDERS), len(POPULATIONS), sharex=True, sharey=True)
    for row, (population, who) in zip(axes, POPULATIONS.items(), strict=True):
        for ax, (order, when) in zip(row, ORDERS.items(), strict=True):
            cell = frame[(frame.population == population) & (frame.order == order)]
            for place, name in enumerate((WIDE, RECOMMENDED, USERS_ALIKE)):
                for kind in KINDS:
                    mine = cell[(cell.name == name) & (cell.kind == kind)].sort_values("fill")
                    look = {"linestyle": ":", "markerfacecolor": "none"} if kind == DELTA else {}
                    label = name if kind != DELTA else f"{name}, with $\\delta$"
                    ax.plot(mine.fill, mine.rmse, marker=MARKERS[place], color=PALETTE[place], label=label, **look)
            ax.set(xscale="log", yscale="log", title=f"{when};\n{who}")
    for ax in axes[-1]:
        ax.set_xlabel("$T/(nm)$")
    for row in axes:
        row[0].set_ylabel("error (RMSE), second half")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize="small")
    cells = frame.pivot_table(index=["population", "order", "fill", "kind"], columns="name", values="rmse")
    better = int((cells[RECOMMENDED] < cells[WIDE]).sum())
    headline(figure, f"What is recommended has less error than a cap of m in {better} of {len(cells)} settings")
    last = frame[frame.fill == max(params.fills)]
    return Figure(
        "cm-which-map",
        figure,
        frame,
        f"Root mean square distance to the mean of all samples so far over the second half of the stream, {params.repetitions} runs, against how "
        f"much of their cap users send together. {params.n_users:,} users of at most {params.samples_per_user} samples, $\\epsilon$ = "
        f"{params.epsilon:g}; dotted: $\\delta$ = {params.delta:g}. Above: users alike; below: a tenth of the users, in Zipf's order the most active, always sends 1, the others 0.",
        "Six panels of the error against T/(nm) on log axes, three orders of arrival and two populations, with lines for a cap of m, what is "
        "recommended and what is for users alike, each pure and with delta. At the largest T/(nm) the errors are, pure: "
        + "; ".join(
            f"{when}, {who}: {_cell(last, order, kind)}"
            for order, when in ORDERS.items()
            for kind, who in POPULATIONS.items()
        )
        + ".",
    )


@house
def widths(result: Result[Params]) -> Figure:
    """Standard error of the mean over the last days, by how many."""
    params, frame = result.params, by_width(result.params, result.seed)
    figure, axes = canvas(9.5, 4.2, 2, sharey=True)
    for ax, kind in zip(axes, KINDS, strict=True):
        for place, (_, mine) in enumerate(frame[frame.kind == kind].groupby("name", sort=False)):
            ax.plot(mine.width, mine.error, marker=MARKERS[place], color=PALETTE[place])
        ax.set(
            xscale="log",
            yscale="log",
            xlabel="days in the window",
            title=kind.replace("eps", r"$\epsilon$").replace("delta", r"$\delta$"),
        )
    axes[0].set_ylabel("standard error of the window's mean")
    longest = {kind: _longest(frame[frame.kind == kind]) for kind in KINDS}
    last = frame[(frame.kind == DELTA) & (frame.width == frame.width.max())].set_index("name").error
    names_beside(axes[1], last.to_dict(), dict(zip(frame.name.unique(), PALETTE, strict=False)))
    headline(
        figure,
        f"Days with noise of their own are best for windows of up to {longest[PURE]} days, with delta up to {longest[DELTA]}",
    )
    return Figure(
        "cm-which-windows",
        figure,
        frame.assign(series=frame.name + ", " + frame.kind),
        f"Exact standard error of the mean of the samples of the last days, by how many of {params.days} days, no simulation; "
        f"{params.n_users:,} users, random order, $\\epsilon$ = {params.epsilon:g}, right $\\delta$ = {params.delta:g}; at most {params.per_day} samples of a user count on one day.",
        f"Two panels with lines, pure and with delta, of the standard error against the days in a window, {span(frame.width)}, on log axes: "
        f"{curves(frame.assign(series=frame.name + ', ' + frame.kind), 'series', 'width', 'error')}.",
    )


def _longest(frame: pd.DataFrame) -> int:
    """Up to how many days noise of each day's own has the least error; 0 if never."""
    wide = frame.pivot(index="width", columns="name", values="error")
    best = wide.idxmin(axis="columns") == ALONE
    return int(wide.index[best.cummin()].max()) if best.iloc[0] else 0


def _cell(frame: pd.DataFrame, order: str, population: str) -> str:
    mine = frame[(frame.order == order) & (frame.population == population) & (frame.kind != DELTA)].set_index("name").rmse
    return ", ".join(f"{name} {short(mine[name])}" for name in (WIDE, RECOMMENDED, USERS_ALIKE))
