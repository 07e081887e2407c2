"""The paper's algorithms: error over time per order, against the cap, and the map of where Algorithm 6 wins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure as Canvas

from evolvingdp.continual_mean.experiments.scores import ORDER_NAMES
from evolvingdp.continual_mean.experiments.user_mean.params import Params
from evolvingdp.continual_mean.experiments.user_mean.tables import (
    FULL,
    MEAN,
    METHODS,
    MULTIPLE,
    NAIVE,
    PER_STEP,
    SINGLE,
    WISHFUL,
    advantage,
    bounds,
    rmse,
)
from evolvingdp.experiment import Figure, Result
from evolvingdp.experiment.describe import curves, short, span
from evolvingdp.experiment.style import INKS, MARKERS, THEORY, canvas, headline, house, names_beside

INKED = dict(zip((FULL, NAIVE, WISHFUL, SINGLE, MULTIPLE, PER_STEP, MEAN), (*INKS, "black"), strict=True))
LOOKS = {name: {"color": INKED[name], "linewidth": 2.8 if name == FULL else 1.2} for name in METHODS}
MARKED: dict[str, dict[str, Any]] = {
    name: {"marker": MARKERS[place], "markersize": 4, "markevery": (place, 9)} for place, name in enumerate(METHODS)
}


@house
def orders(result: Result[Params]) -> Figure:
    """Error against time for every algorithm, a panel per arrival order."""
    params = result.params
    frame = rmse(result.table, "orders", ["order", "step"])
    limit = bounds(params, result.seed)
    figure = Canvas(figsize=(9.5, 6.4))
    panels = figure.subplots(2, 3, sharex=True, sharey=True).ravel()
    for ax, (order, title) in zip(panels[:5], ORDER_NAMES.items(), strict=True):
        for name in METHODS:
            mine = frame[(frame.order == order) & (frame.method == name)]
            ax.fill_between(
                mine.step, mine.low, mine.high, alpha=0.3 if name == FULL else 0.1, linewidth=0, color=INKED[name]
            )
            ax.plot(mine.step, mine.rmse, **MARKED[name], **LOOKS[name])
        if order == "random":
            full = limit[limit.method == FULL]
            ax.plot(full.step, full.bound, **THEORY)
        ax.set(xscale="log", yscale="log", title=title, ylim=(2e-4, 2e3))
    for ax in panels[2:]:
        ax.set_xlabel("step $t$")
    for ax in panels[::3]:
        ax.set_ylabel("error (RMSE)")
    panels[2].tick_params(labelbottom=True)
    panels[5].remove()
    final = frame[(frame.order == order) & (frame.step == frame.step.max())].set_index("method").rmse
    names_beside(panels[4], final[list(METHODS)].to_dict(), INKED, beyond=True)
    last = {order: frame[frame.order == order] for order in ORDER_NAMES}
    worse = sum(_last(ends, FULL).item() > _last(ends, NAIVE).item() for ends in last.values())
    number = "all" if worse == len(last) else f"{worse} of"
    headline(figure, f"Algorithm 2 ends with less error than Algorithm 6 in {number} {len(last)} orders")
    return Figure(
        "cm-user-orders",
        figure,
        frame.merge(limit, on=["method", "step"], how="left"),
        f"Root mean square error over {params.repetitions} runs, with 95% bands, for {params.n_users:,} users of "
        f"{params.samples_per_user} samples at most, who send {params.fill:.0%} of them in {params.horizon:,} steps, $\\epsilon$ = {params.epsilon:g} for all that a user ever sends, mean {params.mean:g}. "
        "Algorithms 3 to 5 are given a prior that is $1/\\sqrt m$ off. Dashed, in random order: the bound for Algorithm 6.",
        "Five panels of lines, one panel per order of arrival, of the error against the step, on log axes. In random order, from the first steps to the last, "
        f"it goes for {curves(frame[frame.order == 'random'], 'method', 'step', 'rmse')}. At the last step of the five orders Algorithm 2 "
        f"is at {span(_last(frame, NAIVE))}, Algorithm 6 at {span(_last(frame, FULL))} and the mean without privacy at "
        f"{span(_last(frame, MEAN))}.",
    )


@house
def caps(result: Result[Params]) -> Figure:
    """Noise against the cap where users use it up, and error against the cap where they do not."""
    params = result.params
    tight, loose = rmse(result.table, "caps", ["cap"]), rmse(result.table, "loose", ["cap"])
    exact = result.table[result.table.part == "caps"].groupby(["method", "cap"], sort=False).exact.first().reset_index()
    figure, (left, right) = canvas(9.5, 4.2, 2)
    for ax, frame, names in ((left, tight, (NAIVE, SINGLE, MULTIPLE)), (right, loose, (NAIVE, SINGLE, MULTIPLE, FULL))):
        for place, name in enumerate(names):
            mine = frame[frame.method == name]
            ax.fill_between(mine.cap, mine.low, mine.high, alpha=0.2, linewidth=0, color=INKED[name])
            ax.plot(mine.cap, mine.rmse, marker=MARKERS[place], markersize=5, **LOOKS[name])
        ax.set(xscale="log", yscale="log", xlabel="cap $m$")
        values = sorted(set(frame.cap.astype(int)))
        ax.set_xticks(values, [str(cap) for cap in values], rotation=45)
        ax.minorticks_off()
    for name in (NAIVE, SINGLE, MULTIPLE):
        mine = exact[exact.method == name]
        left.plot(mine.cap, np.sqrt(mine.exact), **THEORY)
    left.set(ylabel="error of the sum, last quarter", title="users use up the cap")
    right.set(ylabel="error of the mean, second half", title=f"users have {params.loose_samples} samples each")
    most = loose[loose.cap == loose.cap.max()].set_index("method").rmse
    names_beside(right, most.to_dict(), INKED)
    times = most / loose[loose.cap == loose.cap.min()].set_index("method").rmse
    headline(
        figure,
        f"A cap of {loose.cap.max():,.0f} for {params.loose_samples} samples a user multiplies the error of Algorithm 2 by {short(times[NAIVE])}, of Algorithm 6 by {short(times[FULL])}",
    )
    data = pd.concat([tight.assign(panel="used up"), loose.assign(panel="loose")], ignore_index=True)
    return Figure(
        "cm-user-caps",
        figure,
        data.merge(exact, on=["method", "cap"], how="left"),
        f"Left: {params.n_users:,} users in turns who use up their caps; error of the released sum over the last quarter of the stream; dashed, the "
        f"noise that is calculated (Algorithm 6 is on the right only). Right: {params.loose_users:,} users with {params.loose_samples} samples each, whatever the cap. "
        f"{params.repetitions} runs, 95% bands, $\\epsilon$ = {params.epsilon:g}.",
        f"Two panels of lines on log axes against the cap. Left, the error of the sum at caps of {span(tight.cap)}, on dashed lines of the "
        f"calculated noise: {curves(tight, 'method', 'cap', 'rmse')}. Right, the error of the mean at caps of {span(loose.cap)}: "
        f"{curves(loose, 'method', 'cap', 'rmse')}.",
    )


@house
def advantage_map(result: Result[Params]) -> Figure:
    """Noise of Algorithm 2 over that of Algorithm 6, for full users, over numbers of users and caps, at three epsilons."""
    params = result.params
    epsilons = (params.epsilon / 10, params.epsilon, params.epsilon * 10)
    frames = [advantage(epsilon, params.beta) for epsilon in epsilons]
    largest = max(float(np.abs(np.log2(frame.ratio)).max()) for frame in frames)
    figure, axes = canvas(9.5, 4.0, 3, sharey=True)
    for ax, frame, epsilon in zip(axes, frames, epsilons, strict=True):
        grid = frame.pivot(index="n_users", columns="cap", values="ratio")
        diverse = frame.pivot(index="n_users", columns="cap", values="diverse")
        image = ax.imshow(
            np.log2(grid),
            cmap="PuOr",
            norm=TwoSlopeNorm(0, -largest, largest),
            aspect="auto",
            origin="lower",
        )
        for row in range(grid.shape[0]):
            for column in range(grid.shape[1]):
                if not diverse.iloc[row, column]:
                    ax.plot(column, row, "x", color="black", markersize=5)
        places = range(0, grid.shape[1], 2)
        ax.set_xticks(places, [f"$2^{{{int(np.log2(grid.columns[place]))}}}$" for place in places])
        ax.set_yticks(range(grid.shape[0]), [f"$10^{int(np.log10(users))}$" for users in grid.index])
        ax.set(xlabel="cap $m$", title=f"$\\epsilon$ = {epsilon:g}")
        ax.grid(visible=False)
    axes[0].set_ylabel("users $n$")
    bar = figure.colorbar(image, ax=axes, shrink=0.85)
    bar.set_label("$\\log_2$ of noise, Algorithm 2 over 6")
    wins = pd.concat([frame[frame.ratio > 1].groupby("n_users").cap.min() for frame in frames])
    headline(
        figure,
        f"Algorithm 6 has less noise than Algorithm 2 mostly from a cap of {short(wins.mode()[0])} on, never below {short(wins.min())}",
    )
    return Figure(
        "cm-user-map",
        figure,
        pd.concat(frames, ignore_index=True),
        "Calculated noise of Algorithm 2 over that of Algorithm 6 when all users have used up their caps: purple where Algorithm 6 has less. "
        "Crosses: too few users for the diversity condition (11), so that its top levels never start.",
        "Three heat maps over the cap, across, and the number of users, up, coloured by the noise of Algorithm 2 over that of Algorithm 6; "
        "crosses mark too few users for Algorithm 6. "
        + " ".join(
            f"At epsilon {epsilon:g} the ratio is {span(frame.ratio)}, above one in {(frame.ratio > 1).sum()} of {len(frame)} cells, from a cap "
            f"of {short(frame[frame.ratio > 1].cap.min())} on, and {(~frame.diverse).sum()} cells are crossed."
            for frame, epsilon in zip(frames, epsilons, strict=True)
        ),
    )


def _last(frame: pd.DataFrame, method: str) -> Any:
    """The error of `method` at the last step of every order."""
    mine = frame[frame.method == method]
    return mine[mine.step == mine.step.max()].rmse
