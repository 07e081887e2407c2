"""The ladder from Algorithms 2 and 6 to what we recommend; the estimates over time; what dimensions cost."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evolvingdp.continual_mean.experiments.past_the_paper.params import SETTINGS, Params
from evolvingdp.continual_mean.experiments.past_the_paper.rungs import (
    ALIKE,
    ALIKE_DELTA,
    ANY_USERS,
    FULL,
    LADDER,
    NAIVE,
    RECOMMENDED,
    RECOMMENDED_DELTA,
)
from evolvingdp.continual_mean.experiments.past_the_paper.tables import part
from evolvingdp.continual_mean.experiments.scores import ORDER_NAMES
from evolvingdp.experiment import Figure, Result
from evolvingdp.experiment.describe import curves, short, span
from evolvingdp.experiment.style import INKS, MARKERS, PALETTE, THEORY, canvas, headline, house, names_beside


@house
def ladder(result: Result[Params]) -> Figure:
    """Error of every rung in three settings, measured and predicted."""
    params = result.params
    frame = part(result.table, "ladder", ["rung", "setting"])
    figure, axes = canvas(9.5, 5.0, 3, sharey=True)
    names = list(LADDER)
    for ax, (setting, title) in zip(axes, SETTINGS.items(), strict=True):
        mine = frame[frame.setting == setting].set_index("rung").loc[names]
        places = np.arange(len(names))[::-1]
        colours = [PALETTE[0] if name in (RECOMMENDED, RECOMMENDED_DELTA) else "0.5" for name in names]
        ax.hlines(places, mine.low, mine.high, color=colours, alpha=0.4, linewidth=5)
        ax.scatter(mine.rmse, places, color=colours, zorder=2)
        ax.plot(mine.predicted, places, "|", color="black", markersize=12, label="stated")
        ax.axhspan(len(names) - len(ANY_USERS) - 0.5, len(names) - 0.5, color=PALETTE[2], alpha=0.12, linewidth=0)
        ax.set(xscale="log", xlabel="error (RMSE), second half", title=title)
    axes[0].set_yticks(np.arange(len(names))[::-1], names)
    axes[0].plot([], [], "o", color="0.5", label="measured")
    axes[0].plot([], [], "o", color=PALETTE[0], label="measured, recommended for any users")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize="small")
    errors = frame.set_index(["setting", "rung"]).rmse
    shares = [errors[setting, RECOMMENDED] / errors[setting, NAIVE] for setting in SETTINGS]
    headline(
        figure,
        f"What is recommended has {short(min(shares))} to {short(max(shares))} times the error of Algorithm 2, both pure",
    )
    return Figure(
        "cm-past-ladder",
        figure,
        frame,
        f"Root mean square error over the second half of the stream, {params.repetitions} runs with 95% bands, and the standard error that each "
        f"release states, about the mean of all samples so far. Shaded rows hold for any users, the others for users who are alike. Left and middle: {params.n_users:,} users of at most "
        f"{params.samples_per_user:,} samples, {params.horizon:,} steps, $\\epsilon$ = {params.epsilon:g}. Right: {params.full_users:,} users of "
        f"{params.full_samples:,} samples each, $\\epsilon$ = {params.full_epsilon:g}. $\\delta$ = {params.delta:g} where there is one. Each row "
        "below Algorithm 6 adds its change to the row above it.",
        f"Three panels of dots with bands, a row for each of {len(names)} algorithms, against the error on a log axis. "
        + " ".join(
            f"{title.capitalize()}: {_steps_down(frame[frame.setting == setting])}." for setting, title in SETTINGS.items()
        ),
    )


@house
def orders(result: Result[Params]) -> Figure:
    """Algorithm 2, what is recommended for any users, and what for users alike over time, a panel per order of arrival."""
    params = result.params
    frame = part(result.table, "orders", ["rung", "setting", "step"])
    figure, grid = canvas(9.5, 6.2, 3, 2, sharex=True, sharey=True)
    *axes, empty = grid.ravel()
    empty.remove()
    colours = dict(zip((RECOMMENDED, NAIVE, RECOMMENDED_DELTA, ALIKE, ALIKE_DELTA), INKS, strict=False))
    for ax, (order, title) in zip(axes, ORDER_NAMES.items(), strict=True):
        for place, name in enumerate(colours):
            mine = frame[(frame.setting == order) & (frame.rung == name)]
            look = {"color": INKS[place], "linewidth": 1.2 if place else 2.8}
            ax.fill_between(mine.step, mine.low, mine.high, alpha=0.1 if place else 0.3, linewidth=0, color=INKS[place])
            ax.plot(mine.step, mine.rmse, marker=MARKERS[place], markersize=4, markevery=(2 * place, 10), **look)
            ax.plot(mine.step, mine.predicted, **THEORY | {"linewidth": 0.7})
        ax.set(xscale="log", yscale="log", title=title, ylim=(1e-4, 1e2))
    axes[2].tick_params(labelbottom=True)
    for ax in axes[2:]:
        ax.set_xlabel("step $t$")
    for ax in axes[::3]:
        ax.set_ylabel("error (RMSE)")
    last = frame[frame.step == frame.step.max()].set_index(["setting", "rung"])
    names_beside(axes[-1], last.rmse[order][list(colours)].to_dict(), colours, beyond=True)
    stated = last.predicted
    times = [stated[order, NAIVE] / stated[order, RECOMMENDED] for order in ORDER_NAMES]
    headline(
        figure,
        f"What is recommended states an error {short(min(times))} to {short(max(times))} times smaller at the end than Algorithm 2",
    )
    return Figure(
        "cm-past-orders",
        figure,
        frame,
        f"Error over time on five orders of arrival, {params.n_users:,} users of at most {params.samples_per_user:,} samples, $\\epsilon$ = "
        f"{params.epsilon:g}, with 95% bands; dashed: the standard error that the releases state, before clipping.",
        "Five panels of the error against the step, on log axes, with lines for Algorithm 2 with a binary tree, two recommended "
        "estimates and two for users alike, and dashed curves of the standard errors that they state. At the last step the errors are "
        + "; ".join(f"{title}: {_last_errors(frame[frame.setting == order])}" for order, title in ORDER_NAMES.items())
        + ".",
    )


SPOKEN = {
    "pure: epsilon / d": "Laplace noise at $\\epsilon/d$",
    "(eps, delta): optimal composition": "Laplace noise by optimal composition",
    "(eps, delta): Gaussian": "Gaussian noise",
}


@house
def dimensions(result: Result[Params]) -> Figure:
    """Error of a coordinate against the number of dimensions that share the budget."""
    params = result.params
    frame = part(result.table, "dimensions", ["rung", "dimension"])
    figure, ax = canvas(6.5, 4.0)
    for place, (_, mine) in enumerate(frame.groupby("rung", sort=False)):
        ax.fill_between(mine.dimension, mine.low, mine.high, alpha=0.2, linewidth=0, color=PALETTE[place])
        ax.plot(mine.dimension, mine.rmse, MARKERS[place], color=PALETTE[place])
        ax.plot(mine.dimension, mine.predicted, **THEORY)
    ticks = list(params.dimensions)
    ax.set(xscale="log", yscale="log", xlabel="dimensions $d$", ylabel="error of a coordinate (RMSE)")
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    last = frame[frame.dimension == frame.dimension.max()].set_index("rung")
    names_beside(ax, last.rmse.to_dict(), dict(zip(frame.rung.unique(), PALETTE, strict=False)))
    least, most = last.predicted.idxmin(), last.predicted.idxmax()
    times = short(last.predicted[most] / last.predicted[least])
    headline(
        figure,
        f"In {max(ticks)} dimensions the stated error is {times} times smaller with {SPOKEN[least]} than with {SPOKEN[most]}",
    )
    return Figure(
        "cm-past-dimensions",
        figure,
        frame,
        f"Error of one of $d$ coordinates over the second half of the stream, random order, when all coordinates together cost $\\epsilon$ = "
        f"{params.epsilon:g} (and $\\delta$ = {params.delta:g}); 95% bands; dashed: the standard error that is stated.",
        f"Rising points on dashed curves of the stated error, on log axes: the error of a coordinate against the dimensions, "
        f"{span(frame.dimension)}. It goes for {curves(frame, 'rung', 'dimension', 'rmse')}.",
    )


def _steps_down(frame: pd.DataFrame) -> str:
    """The error of the first rung, of the recommended ones, of Algorithm 6 and for users alike, of one setting."""
    error = frame.set_index("rung").rmse
    return ", ".join(f"{name} at {short(error[name])}" for name in (NAIVE, RECOMMENDED, RECOMMENDED_DELTA, FULL, ALIKE))


def _last_errors(frame: pd.DataFrame) -> str:
    """The errors of one order at its last step: Algorithm 2, recommended pure, recommended approximate."""
    last = frame[frame.step == frame.step.max()].set_index("rung").rmse
    naive, pure, approximate = (short(last[name]) for name in (NAIVE, RECOMMENDED, RECOMMENDED_DELTA))
    return f"{naive} against {pure} pure and {approximate} approximate"
