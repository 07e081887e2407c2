"""What RAPPOR costs, the paper's Figure 4, and what a decoder can find."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evolvingdp.core.experiment import Figure, Result
from evolvingdp.core.style import MARKERS, PALETTE, THEORY, TRUTH, canvas, house
from evolvingdp.heavy_hitters.experiments.rappor import R_DECODER, Params, is_demo_3, rappor
from evolvingdp.heavy_hitters.rappor_scores import bands, demo, discoveries

METHODS = {
    "rappor_listed": "RAPPOR, listed",
    "rappor": "RAPPOR, fit",
    "oracle_median": "FreqOracle, median",
    "oracle_mean": "FreqOracle, mean",
}


@house
def privacy(result: Result[Params]) -> Figure:
    """The exact loss of many reports of one value."""
    settings = rappor(result.params)
    reports = np.unique(np.round(np.geomspace(1, 100, 40)).astype(int))
    one = settings.epsilon_of_reports(1)
    data = pd.DataFrame(
        {
            "reports": reports,
            "rappor": [settings.epsilon_of_reports(int(number)) for number in reports],
            "fresh": reports * one,
            "permanent": settings.epsilon_permanent,
        }
    )
    figure, ax = canvas(6.5, 3.6)
    ax.plot(data.reports, data.fresh, color=PALETTE[1], label="fresh noise at every report")
    ax.plot(data.reports, data.rappor, color=PALETTE[0], label="RAPPOR, exact")
    ax.axhline(settings.epsilon_permanent, label="RAPPOR, any number", **THEORY)
    ax.plot([1], [one], "o", color=TRUTH, label=f"one report: {one:.3f}")
    ax.set(xlabel="reports of one value", ylabel=r"privacy loss $\epsilon$", xscale="log", yscale="log")
    ax.legend(loc="upper left")
    return Figure(
        "hh-rappor-privacy",
        figure,
        data,
        f"The privacy loss of reporting the same value again and again: RAPPOR's is {one:.3f} for one report and never exceeds "
        f"{settings.epsilon_permanent:.3f}, that of its permanent response; with fresh noise at every report the losses add up. Both "
        "curves are exact.",
        "A log-log plot against the number of reports. The line for fresh noise rises without bound; RAPPOR's curve starts at the "
        "same point and bends into a dashed horizontal line.",
    )


@house
def figure_4(result: Result[Params]) -> Figure:
    """Figure 4 of the paper: estimates of both protocols by rank."""
    data = demo(result.table)
    data = data[data.truth > 0]
    figure, axes = canvas(8.5, 4.0, columns=2, sharey=True)
    parts = []
    for ax, method, colour in zip(axes, ("rappor_listed", "oracle_mean"), PALETTE, strict=False):
        grouped = data.groupby("value")[method]
        part = pd.DataFrame({"mean": grouped.mean(), "sd": grouped.std(), "truth": data.groupby("value").truth.mean()})
        part = part.reset_index().assign(method=method, repetition_0=data[data.repetition == 0][method].to_numpy())
        ax.fill_between(
            part.value,
            part["mean"] - part.sd,
            part["mean"] + part.sd,
            color=colour,
            alpha=0.25,
            linewidth=0,
            label="mean ± sd",
        )
        ax.plot(part.value, part.repetition_0, ".", color=colour, label="one data set")
        ax.plot(part.value, part.truth, color=TRUTH, linewidth=1.2, label="truth")
        ax.set(xlabel="value (by rank)", title=METHODS[method])
        ax.legend(loc="upper right")
        parts.append(part)
    axes[0].set_ylabel("frequency (fraction of reports)")
    one = rappor(result.params).epsilon_of_reports(1)
    return Figure(
        "hh-rappor-demo3",
        figure,
        pd.concat(parts, ignore_index=True),
        f"The paper's Figure 4, on Google's Demo 3: estimated frequency of the values that are candidates, by rank. Both protocols "
        f"have a one-report loss of {one:.3f}. Left: what RAPPOR's decoder lists, zero where it lists nothing; right: the mean of "
        f"FreqOracle's rows. Band: one standard deviation over {result.params.repetitions} data sets.",
        "Two panels of estimates against rank around a falling black curve. Left, the estimates follow the curve for high ranks "
        "and drop to zero for most values beyond rank fifty; right, they scatter evenly around the curve at all ranks.",
    )


@house
def finding(result: Result[Params]) -> Figure:
    """Values found against false ones accepted."""
    data = discoveries(result.table)
    data = data[data.false <= 40]
    figure, ax = canvas(6.5, 4.0)
    half = 1.96 * data.found_sd / np.sqrt(result.params.repetitions)
    ax.fill_between(data.false, data.found - half, data.found + half, color=PALETTE[0], alpha=0.3, linewidth=0)
    ax.plot(data.false, data.found, color=PALETTE[0], label="our decoder, 95% band")
    ax.plot(data.false, data.predicted, label="normal errors, known size", **THEORY)
    if is_demo_3(result.params):
        (low, high), (fewest, most) = R_DECODER["found"], R_DECODER["false"]
        ax.fill_between([fewest, most], low, high, color=PALETTE[1], alpha=0.5, label="Google's decoder, ten data sets")
    ax.set(xlabel="false candidates accepted", ylabel="values found")
    ax.legend(loc="lower right")
    return Figure(
        "hh-rappor-finding",
        figure,
        data,
        "What can be found on Demo 3: the number of values that occur among the candidates accepted, against the number of "
        "strangers among them, as the decoder accepts more. Dashed: what normal errors of the known standard error predict. Box: "
        "the range of Google's own decoder over ten data sets.",
        "A rising curve that lies on the dashed prediction and passes above a shaded box that stands for Google's decoder.",
    )


@house
def tail(result: Result[Params]) -> Figure:
    """By rank: zeros and errors."""
    data = bands(result.table, result.params.n_values)
    figure, axes = canvas(8.5, 3.8, columns=2)
    ranks = list(dict.fromkeys(data.ranks))
    for number, (method, label) in enumerate(METHODS.items()):
        part = data[data.method == method]
        look = {"color": PALETTE[number], "marker": MARKERS[number], "label": label}
        place = np.arange(len(ranks)) + 0.06 * (number - 1.5)
        axes[0].plot(place, part.zero, linestyle=":", **look)
        error = np.abs(part[["low", "high"]].to_numpy().T - part.rmse.to_numpy())
        axes[1].errorbar(place, part.rmse, yerr=error, linestyle=":", capsize=2, **look)
    axes[1].axhline(float(result.values["standard_error"]), label="standard error, RAPPOR", **THEORY)
    for ax in axes:
        ax.set_xticks(np.arange(len(ranks)), ranks)
        ax.set_xlabel("rank of the value")
    axes[0].set(ylabel="share of estimates that are zero", ylim=(-0.03, 1.03))
    axes[1].set(ylabel="RMSE (fraction of reports)", ylim=(0, None))
    axes[1].legend(loc="lower left", fontsize="x-small")
    return Figure(
        "hh-rappor-tail",
        figure,
        data,
        "The two sides of Figure 4, by rank. Left: RAPPOR's list reports zero for most rare values, FreqOracle does not. Right: the "
        "root mean square error (95% intervals): for the rarest values zero is the better estimate, in the middle it is not. Dashed: "
        "the standard error that RAPPOR's decoder states.",
        "Two panels by groups of rank. Left, the share of zeros of RAPPOR's list climbs from none to nearly all, that of its fit "
        "to less than one half, and FreqOracle's stays near none. Right, errors of the frequency oracle are flat; that of "
        "RAPPOR's list peaks at middle ranks and is the smallest at the last.",
    )
