"""What RAPPOR costs, the paper's Figure 4, and what a decoder can find."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evolvingdp.experiment import Figure, Result
from evolvingdp.experiment.describe import ends, short, span
from evolvingdp.experiment.style import MARKERS, PALETTE, THEORY, TRUTH, canvas, headline, house, names_beside
from evolvingdp.heavy_hitters.experiments.rappor.params import Params, is_demo_3
from evolvingdp.heavy_hitters.experiments.rappor.tables import R_DECODER, bands, demo, discoveries, rappor

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
    ax.plot(data.reports, data.fresh, color=PALETTE[1])
    ax.plot(data.reports, data.rappor, color=PALETTE[0])
    ax.axhline(settings.epsilon_permanent, **THEORY)
    ax.plot([1], [one], "o", color=TRUTH)
    ax.set(xlabel="reports of one value", ylabel=r"privacy loss $\epsilon$", xscale="log", yscale="log")
    last = data.iloc[-1]
    names_beside(ax, {"fresh noise": last.fresh, "RAPPOR": last.rappor}, {"fresh noise": PALETTE[1], "RAPPOR": PALETTE[0]})
    headline(
        figure,
        f"After {last.reports:.0f} reports RAPPOR has told {short(last.rappor)}, where fresh noise tells {short(last.fresh)}",
    )
    return Figure(
        "hh-rappor-privacy",
        figure,
        data,
        f"The privacy loss of reporting the same value again and again: RAPPOR's is {one:.3f} for one report and never exceeds "
        f"{settings.epsilon_permanent:.3f}, that of its permanent response (dashed); with fresh noise at every report the losses add up. Both "
        "curves are exact.",
        f"Lines of the privacy loss epsilon against the reports of one value, {span(data.reports)}, on log axes. With fresh noise it goes from "
        f"{ends(data, 'reports', 'fresh')} in a straight line; RAPPOR's starts at the same point, ends at "
        f"{short(data.rappor.iloc[-1])} and never passes the dashed line at {short(settings.epsilon_permanent)}.",
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
        parts.append(part)
    axes[0].legend(loc="upper right")
    axes[0].set_ylabel("frequency (fraction of reports)")
    headline(
        figure,
        f"In one data set RAPPOR's list reports zero for {_zeros(parts[0])}% of the values, FreqOracle for {_zeros(parts[1])}%",
    )
    one = rappor(result.params).epsilon_of_reports(1)
    return Figure(
        "hh-rappor-demo3",
        figure,
        pd.concat(parts, ignore_index=True),
        f"The paper's Figure 4, on Google's Demo 3: estimated frequency of the values that are candidates, by rank. Both protocols "
        f"have a one-report loss of {one:.3f}. Left: what RAPPOR's decoder lists, zero where it lists nothing; right: the mean of "
        f"FreqOracle's rows. Band: one standard deviation over {result.params.repetitions} data sets.",
        f"Two panels of estimated frequencies against the rank of the value, {span(data.value)}, around a black curve of the truth that falls "
        f"from {short(data.truth.max())} to {short(data.truth.min())}. Left, RAPPOR's list drops {_zeros(parts[0])} percent of the dots to "
        f"zero; right, the frequency oracle drops {_zeros(parts[1])} percent, and its dots scatter evenly with a standard deviation of "
        f"{short(parts[1].sd.mean())} at all ranks.",
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
    start, end = data.iloc[0], data.iloc[-1]
    headline(
        figure,
        f"{start.found:.0f} values are found without a false one, {end.found:.0f} if {end.false:.0f} false ones are accepted",
    )
    return Figure(
        "hh-rappor-finding",
        figure,
        data,
        "What can be found on Demo 3: the number of values that occur among the candidates accepted, against the number of "
        "strangers among them, as the decoder accepts more. Dashed: what normal errors of the known standard error predict. Box: "
        "the range of Google's own decoder over ten data sets.",
        f"A rising curve of the values found against the false candidates accepted, {span(data.false)}: from {ends(data, 'false', 'found')}, "
        f"where the dashed prediction goes from {ends(data, 'false', 'predicted')}."
        + (
            f" A shaded box for Google's decoder spans {R_DECODER['found'][0]} to {R_DECODER['found'][1]} found at "
            f"{R_DECODER['false'][0]} to {R_DECODER['false'][1]} false."
            if is_demo_3(result.params)
            else ""
        ),
    )


@house
def tail(result: Result[Params]) -> Figure:
    """By rank: zeros and errors."""
    data = bands(result.table, result.params.n_values)
    figure, axes = canvas(8.5, 3.8, columns=2)
    ranks = list(dict.fromkeys(data.ranks))
    for number, method in enumerate(METHODS):
        part = data[data.method == method]
        look = {"color": PALETTE[number], "marker": MARKERS[number]}
        place = np.arange(len(ranks)) + 0.06 * (number - 1.5)
        axes[0].plot(place, part.zero, linestyle=":", **look)
        error = np.abs(part[["low", "high"]].to_numpy().T - part.rmse.to_numpy())
        axes[1].errorbar(place, part.rmse, yerr=error, linestyle=":", capsize=2, **look)
    axes[1].axhline(float(result.values["standard_error"]), **THEORY)
    for ax in axes:
        ax.set_xticks(np.arange(len(ranks)), ranks)
        ax.set_xlabel("rank of the value")
    axes[0].set(ylabel="share of estimates that are zero", ylim=(-0.03, 1.03))
    axes[1].set(ylabel="RMSE (fraction of reports)", ylim=(0, None))
    last = data[data.ranks == ranks[-1]].set_index("method")
    names_beside(axes[1], last.rmse.rename(METHODS).to_dict(), dict(zip(METHODS.values(), PALETTE, strict=False)))
    headline(
        figure,
        f"RAPPOR's list reports zero for {last.zero['rappor_listed']:.0%} of the rarest values, and errs most at ranks {_worst_ranks(data)}",
    )
    return Figure(
        "hh-rappor-tail",
        figure,
        data,
        "The two sides of the paper's Figure 4, by rank; points of one group stand side by side. Left: RAPPOR's list reports zero for most rare values, FreqOracle for few. *RAPPOR, fit* is the decoder's estimate before a list is made of it. Right: the "
        "root mean square error (95% intervals): for the rarest values zero is the better estimate, in the middle it is not. Dashed: "
        "the standard error that RAPPOR's decoder states.",
        "Two panels of points by groups of rank, from the most frequent values to the rarest. Left, the share of estimates that are zero: "
        f"{_by_rank(data, 'zero')}. Right, the root mean square error: {_by_rank(data, 'rmse')}, with a dashed line at the "
        f"{short(float(result.values['standard_error']))} that RAPPOR states; that of RAPPOR's list is largest at ranks "
        f"{_worst_ranks(data)}.",
    )


def _zeros(part: pd.DataFrame) -> str:
    return short(100 * float((part.repetition_0 == 0).mean()))


def _by_rank(data: pd.DataFrame, column: str) -> str:
    """`column` of every method in the first and in the last group of ranks."""
    lines = ((label, data[data.method == method][column]) for method, label in METHODS.items())
    return ", ".join(f"{label} from {short(line.iloc[0])} to {short(line.iloc[-1])}" for label, line in lines)


def _worst_ranks(data: pd.DataFrame) -> str:
    listed = data[data.method == "rappor_listed"]
    return str(listed.ranks[listed.rmse.idxmax()]).replace("\u2013", " to ")
