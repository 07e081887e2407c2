"""THRESH over time, against the horizon and the users, its delay, and where it loses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.core.seeds import stream
from evolvingdp.evolving import baselines
from evolvingdp.evolving.experiments.split_users import CREWS, ONCE, ONLINE, SIXTEEN
from evolvingdp.evolving.experiments.thresh.params import HORIZON_SWEEP_USERS, Params
from evolvingdp.evolving.experiments.thresh.run import trace
from evolvingdp.evolving.experiments.thresh.scenarios import (
    ADVANCED,
    METHODS,
    NAIVE,
    OPTIMAL,
    RIVALS,
    TUNED,
    bits,
    protocols,
)
from evolvingdp.evolving.experiments.thresh.tables import curve, predicted_error
from evolvingdp.experiment import Figure, Result
from evolvingdp.experiment.describe import curves, ends, short, span
from evolvingdp.experiment.style import MARKERS, PALETTE, THEORY, TRUTH, band, canvas, headline, house, names_beside

LOOKS = {
    method: {"color": PALETTE[place], "marker": MARKERS[number % len(MARKERS)], "markersize": 4}
    for number, (method, place) in enumerate(zip([*METHODS, *RIVALS], (5, 1, 6, 6, 7, 3, 9, 0, 2, 4), strict=True))
    if method not in (ADVANCED, SIXTEEN)  # between the other two; stale
}
WITH_THEORY = [*METHODS, CREWS, ONCE]  # the others average over stretches that data decide, or lag


@house
def over_time(result: Result[Params]) -> Figure:
    """One run: truth, estimates, updates; and what a user has spent."""
    params = result.params
    data = bits(params.n_users, params.horizon, params.epoch_length)
    run = trace(params, result.seed, TUNED, 0)
    settings = protocols(params, params.n_users, params.horizon)[TUNED]
    naive = baselines.recompute(data, params.epsilon, stream(result.seed, "time", NAIVE, 0))
    optimal = baselines.recompute(data, params.epsilon, stream(result.seed, "time", OPTIMAL, 0), composition="optimal")
    spent = 2 * settings.vote_epsilon * run.max_votes + settings.estimate_epsilon * run.updated.cumsum()
    frame = pd.DataFrame(
        {
            "epoch": np.arange(1, params.horizon + 1),
            "truth": data.truth,
            "thresh": run.estimate,
            "updated": run.updated,
            "naive": np.clip(naive, 0, 1),
            "optimal": np.clip(optimal, 0, 1),
            "spent": spent,
        }
    )
    figure, axes = canvas(7.5, 6.0, columns=1)
    figure.clear()
    axes = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1.4))
    axes[0].plot(frame.epoch, frame.naive, ".", color=PALETTE[2], markersize=2, alpha=0.35, label=NAIVE)
    axes[0].plot(frame.epoch, frame.optimal, ".", color=PALETTE[4], markersize=2, alpha=0.6, label=OPTIMAL)
    error = 1.96 * settings.standard_error
    axes[0].fill_between(frame.epoch, frame.thresh - error, frame.thresh + error, step="post", color=PALETTE[1], alpha=0.35)
    axes[0].step(frame.epoch, frame.thresh, where="post", color=PALETTE[1], linewidth=2, label=f"{TUNED}, 95% interval")
    axes[0].plot(frame.epoch, frame.truth, color=TRUTH, linewidth=1, label="truth")
    updates = frame[frame.updated]
    axes[0].plot(updates.epoch, updates.thresh, "v", color=TRUTH, markersize=6, label="update")
    axes[0].set(ylabel="mean of the bits", ylim=(-0.03, 1.03))
    axes[0].legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, markerscale=2, fontsize="x-small")
    axes[1].step(frame.epoch, frame.spent, where="post", color=PALETTE[1], label="most spent by a user")
    axes[1].axhline(params.epsilon, label=r"$\epsilon$", **THEORY)
    axes[1].set(xlabel="epoch", ylabel="privacy loss", ylim=(0, 1.1 * params.epsilon))
    axes[1].legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize="x-small")
    headline(
        figure,
        f"{len(updates)} updates follow the mean, and nobody has spent more than {short(frame.spent.iloc[-1])} of {params.epsilon:g}",
    )
    return Figure(
        "ev-thresh-time",
        figure,
        frame,
        f"One run: {params.n_users:,} users, {params.horizon} epochs of {params.epoch_length:,} bits, $\\epsilon$ = "
        f"{params.epsilon:g} for all epochs together. Top: THRESH updates when the mean changes and rests in between; recomputing "
        "in every epoch (dots, clipped to [0, 1]), at the same $\\epsilon$ and with optimal composition at $(\\epsilon, 10^{-6})$, "
        "drowns in noise. The band is the estimate's 95% interval by its standard error, for the noise of the last update. "
        "Bottom: what the user who has spent most has spent so far.",
        f"Two panels over {params.horizon} epochs. Top, the mean of the bits: a black line of the truth at {span(frame.truth)}, a step line "
        f"of THRESH that is off by {short((frame.thresh - frame.truth).abs().mean())} on average with a triangle at each of its "
        f"{len(updates)} updates, and clouds of dots of recomputing, off by {short((frame.naive - frame.truth).abs().mean())}, or "
        f"{short((frame.optimal - frame.truth).abs().mean())} with the best composition. Bottom, the privacy loss of the user who has spent "
        f"most: a line that climbs in steps to {short(frame.spent.iloc[-1])}, below a dashed line at {params.epsilon:g}.",
    )


@house
def horizons(result: Result[Params]) -> Figure:
    """Error against the number of epochs, and against the number of users."""
    figure, axes = canvas(10.5, 4.2, columns=2)
    parts = []
    for ax, part, label in zip(axes, ("horizon", "n_users"), ("epochs T", "users n"), strict=True):
        lines = curve(result.table, part)
        for method in LOOKS:
            line = lines[lines.method == method]
            band(ax, line[part], line.mean_error, line.mean_error_sd, line.runs, LOOKS[method], method)
            if method not in WITH_THEORY:
                continue
            fixed = result.params.horizon if part == "n_users" else HORIZON_SWEEP_USERS
            sizes = [(fixed, int(x)) if part == "horizon" else (int(x), fixed) for x in line[part]]
            theory = [predicted_error(result.params, method, *size) for size in sizes]
            ax.plot(line[part], theory, **THEORY)
        ax.set(xscale="log", yscale="log", xlabel=label, ylim=(3e-5, 1))
        parts.append(lines.rename(columns={part: "value"}).assign(sweep=part))
    axes[0].set_ylabel("mean absolute error")
    last = lines[lines.n_users == lines.n_users.max()].set_index("method").mean_error
    names_beside(
        axes[1], {method: float(last[method]) for method in LOOKS}, {name: look["color"] for name, look in LOOKS.items()}
    )
    longest = parts[0][parts[0].value == parts[0].value.max()].set_index("method").mean_error
    times = short(longest[[NAIVE, ADVANCED, OPTIMAL]].min() / longest[CREWS])
    headline(
        figure,
        f"At {parts[0].value.max():,.0f} epochs recomputing in each, however composed, has {times} times the error of THRESH with roles by lot",
    )
    return Figure(
        "ev-thresh-sweeps",
        figure,
        pd.concat(parts, ignore_index=True),
        f"Mean absolute error over all epochs (estimates clipped to [0, 1]), three changes, $\\epsilon$ = {result.params.epsilon:g}: "
        f"against the horizon at $n$ = {HORIZON_SWEEP_USERS:,} (left) and against the users at $T$ = {result.params.horizon} "
        "(right); epochs of "
        f"{result.params.epoch_length:,} bits a user, which only THRESH needs. Means over runs with 95% bands; dashed: the mean absolute value of a normal "
        "error with the method's standard error at mean 1/2.",
        "Two panels of lines on log axes, of the mean absolute error with dashed curves of the standard error alone. Left, against "
        f"{span(parts[0].value)} epochs: {curves(parts[0], 'method', 'value', 'mean_error')}. Right, against {span(parts[1].value)} users: "
        f"{curves(parts[1], 'method', 'value', 'mean_error')}.",
    )


@house
def limits(result: Result[Params]) -> Figure:
    """Delay against the size of a change; error against the size of a drift."""
    params, table = result.params, result.table
    settings = protocols(params, params.n_users, params.horizon)[TUNED]
    figure, axes = canvas(10.5, 4.4, columns=2)
    sizes = table[table.part == "size"].groupby("share")
    delay = sizes[["delay", "size", "predicted", "found"]].mean().reset_index()
    low, high = sizes.delay.min().to_numpy(), sizes.delay.max().to_numpy()
    unfound = delay[delay.found == 0]
    axes[0].plot(unfound["size"], unfound.delay, "x", color=TRUTH, markersize=9, zorder=5, label="not found at all")
    look: dict[str, Any] = {"color": PALETTE[1], "marker": MARKERS[1]}
    axes[0].fill_between(delay["size"], low, high, color=PALETTE[1], alpha=0.25, linewidth=0)
    axes[0].plot(delay["size"], delay.delay, label="measured: mean, range", **look)
    axes[0].plot(delay["size"], delay.predicted, label="when all vote, without noise", **THEORY)
    axes[0].axvline(settings.threshold(1), color="grey", linestyle=":", label="top threshold")
    axes[0].set(
        xscale="log",
        yscale="symlog",
        xlabel="size of the change",
        ylabel="epochs until an update",
        ylim=(-0.3, params.horizon),
    )
    lines = curve(table.assign(drift=table["size"]), "drift")
    for method in dict.fromkeys(lines.method):
        line = lines[lines.method == method]
        look = LOOKS.get(str(method), {"color": "black" if method == SIXTEEN else "0.4", "marker": "x"})
        band(axes[1], line.drift, line.mean_error, line.mean_error_sd, line.runs, look, str(method))
    axes[1].plot(lines.drift.unique(), lines.drift.unique() / 2, **THEORY)
    axes[1].set(xlabel="drift over the whole horizon", ylabel="mean absolute error", ylim=(0, None))
    axes[0].legend(loc="lower left", fontsize="small")
    last = lines[lines.drift == lines.drift.max()].set_index("method").mean_error
    colours = {name: LOOKS.get(name, {"color": "black" if name == SIXTEEN else "0.4"})["color"] for name in last.index}
    names_beside(
        axes[1], last.to_dict() | {"no update at all": lines.drift.max() / 2}, colours | {"no update at all": "black"}
    )
    times = short(last[TUNED] / last[ONLINE])
    headline(
        figure,
        f"A mean that drifts by {lines.drift.max():g} costs THRESH {times} times the error of one report a user, averaged",
    )
    return Figure(
        "ev-thresh-limits",
        figure,
        pd.concat([delay.assign(panel="delay"), lines.assign(panel="drift")], ignore_index=True),
        "Where THRESH is slow or loses. Left: how long it takes to notice one change, against its size; dashed: the first epoch "
        "whose threshold is below the size. Right: the mean drifts evenly over the horizon; THRESH updates each time that it "
        "has moved by enough, until no estimate is left; averaging one report a user is better for drifts. The lines of THRESH, tuned and by lot, nearly coincide. Dashed: the "
        "error of the first estimate if nothing were ever noticed.",
        f"Two panels. Left, the epochs until an update against the size of the change, {span(delay['size'])}, on log axes: from "
        f"{ends(delay, 'size', 'delay')} epochs, a falling line near the dashed one without noise; a dotted line marks the top threshold at "
        f"{short(settings.threshold(1))}, and crosses the {len(unfound)} sizes that are never found. Right, the mean absolute error against "
        f"the drift, {span(lines.drift)}: {curves(lines, 'method', 'drift', 'mean_error')}; the dashed line, without any update, ends at "
        f"{short(lines.drift.max() / 2)}.",
    )
