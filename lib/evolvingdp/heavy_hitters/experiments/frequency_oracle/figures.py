"""Figures 1 to 3 of Section 4.1, the error behind them, and the words themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import NullLocator

from evolvingdp.experiment import Figure, Result
from evolvingdp.experiment.describe import ends, short, span
from evolvingdp.experiment.style import MARKERS, PALETTE, THEORY, TRUTH, canvas, headline, house, names_beside
from evolvingdp.heavy_hitters.experiments.frequency_oracle.params import Params
from evolvingdp.heavy_hitters.experiments.frequency_oracle.run import BROWN_WORDS
from evolvingdp.heavy_hitters.experiments.frequency_oracle.tables import RANKS, errors, top_words

LABELS = {
    "n_users": "users n",
    "epsilon": r"privacy loss $\epsilon$ of one report",
    "width": "sketch width m (cells a row)",
}
BROWN_RANKS = (1, 2, 5, 10, 50)


@house
def samples_and_epsilon(result: Result[Params]) -> Figure:
    """Figure 1 of the paper: estimate and truth at three ranks, against n and against epsilon."""
    figure, axes = canvas(8.5, 3.8, columns=2, sharey=True)
    data = pd.concat(
        [_dots(ax, result, "power law", sweep, RANKS) for ax, sweep in zip(axes, ("n_users", "epsilon"), strict=True)],
        ignore_index=True,
    )
    axes[0].set_ylabel("frequency (fraction of users)")
    headline(figure, _name(axes[1], data))
    repetitions = result.params.repetitions
    return Figure(
        "hh-oracle-samples-epsilon",
        figure,
        data,
        f"The paper's Figure 1. Estimated frequency of the items of rank {_list(RANKS)} of the power law (points: mean of "
        f"{repetitions} runs, bars: one standard deviation; lines: truth, with a band of one predicted standard "
        f"error), against $n$ at "
        r"$\epsilon$ = "
        f"{result.params.epsilon:g} (left) and against $\\epsilon$ at $n$ = {result.params.n_users:,} (right).",
        f"Two panels of points with error bars around horizontal lines for the true frequencies, {span(data.truth)}, of {len(RANKS)} items. "
        + " ".join(
            f"Against {name}, {span(data[data.sweep == sweep].value)} on a log axis, the bars shrink: {_bars(data[data.sweep == sweep])}."
            for sweep, name in (("n_users", "the number of users"), ("epsilon", "epsilon"))
        )
        + f" No point is further from its line than {short((data['mean'] - data.truth).abs().max())}.",
    )


@house
def width(result: Result[Params]) -> Figure:
    """Figure 2 of the paper: estimate and truth against the sketch width."""
    figure, ax = canvas(6.0, 3.8)
    data = _dots(ax, result, "power law", "width", RANKS)
    ax.set_ylabel("frequency (fraction of users)")
    headline(figure, _name(ax, data))
    return Figure(
        "hh-oracle-width",
        figure,
        data,
        f"The paper's Figure 2. Estimated frequency of the items of rank {_list(RANKS)} against the range $m$ of the hash "
        f"functions, at $n$ = {result.params.n_users:,} and $\\epsilon$ = {result.params.epsilon:g} (points: mean over "
        "runs, bars: one standard deviation; lines: truth, with a band of one predicted standard error).",
        f"Points with error bars around horizontal lines for the true frequencies, {span(data.truth)}, of {len(RANKS)} items, against the width "
        f"of the sketch, {span(data.value)} cells on a log axis. Neither moves much: {_bars(data)}, and no point is further from its line "
        f"than {short((data['mean'] - data.truth).abs().max())}.",
    )


@house
def brown_epsilon(result: Result[Params]) -> Figure:
    """Figure 3 of the paper: Brown words by rank against epsilon."""
    figure, ax = canvas(6.0, 3.8)
    data = _dots(ax, result, "brown", "epsilon", BROWN_RANKS)
    ax.set_ylabel("frequency (fraction of users)")
    headline(figure, _name(ax, data))
    return Figure(
        "hh-oracle-brown-epsilon",
        figure,
        data,
        f"The paper's Figure 3. Estimated frequency of the Brown words of rank {_list(BROWN_RANKS)} against $\\epsilon$, at "
        f"$n$ = {result.params.n_users:,} (points: mean over runs, bars: one standard deviation; lines: truth, with "
        "a band of one predicted standard error).",
        f"Points with error bars around horizontal lines for the true frequencies, {span(data.truth)}, of {len(BROWN_RANKS)} Brown words, "
        f"against epsilon, {span(data.value)} on a log axis. The bars shrink: {_bars(data)}, and no point is further from its line than "
        f"{short((data['mean'] - data.truth).abs().max())}.",
    )


@house
def error(result: Result[Params]) -> Figure:
    """The measured root mean square error against theory, along the three sweeps."""
    figure, axes = canvas(9.0, 3.6, columns=3, sharey=True)
    parts = []
    for ax, sweep, colour in zip(axes, LABELS, PALETTE, strict=False):
        data = errors(result.table, "power law", sweep)
        ax.fill_between(data[sweep], data.low, data.high, color=colour, alpha=0.25, linewidth=0)
        ax.plot(data[sweep], data.rmse, "o", color=colour, label="measured, 95% band")
        ax.plot(data[sweep], data.theory, label="theory", **THEORY)
        ax.set(xscale="log", yscale="log", xlabel=LABELS[sweep])
        _plain_ticks(ax, sweep, data[sweep])
        parts.append(data.rename(columns={sweep: "value"}).assign(sweep=sweep))
    axes[0].set_ylabel("RMSE (fraction of users)")
    axes[0].legend()
    ratios = np.concatenate([part.rmse / part.theory for part in parts])
    headline(figure, f"Along these sweeps the measured error is {span(ratios)} times what theory predicts")
    return Figure(
        "hh-oracle-error",
        figure,
        pd.concat(parts, ignore_index=True),
        "Root mean square error over all items and runs of the power law, as a fraction of $n$, along the three sweeps (log "
        "scales). Dashed: the standard error that theory predicts, averaged over the items: "
        "sampling, privacy noise, the median and hash collisions; nothing is fitted.",
        "Three panels, on log axes, of points of the measured root mean square error on dashed curves of the theory. "
        + " ".join(
            f"Against {name}, {span(part.value)}, the error goes from {ends(part, 'value', 'rmse')}, the theory from "
            f"{ends(part, 'value', 'theory')}."
            for name, part in zip(("the users", "epsilon", "the width of the sketch"), parts, strict=True)
        ),
    )


@house
def words(result: Result[Params]) -> Figure:
    """One run on Brown: the most frequent words with interval and truth."""
    data = top_words(result)
    figure, ax = canvas(7.0, 6.6)
    place = np.arange(len(data))
    fraction = data[["truth", "estimate", "low", "high"]] / result.params.n_users
    ax.hlines(place, fraction.low, fraction.high, color=PALETTE[0], linewidth=3, alpha=0.5, label="95% interval")
    ax.plot(fraction.estimate, place, "o", color=PALETTE[0], markersize=4, label="private estimate")
    ax.plot(fraction.truth, place, "|", color=TRUTH, markersize=9, markeredgewidth=1.5, label="truth")
    ax.set_yticks(place, data.word)
    ax.set_ylim(len(data) - 0.3, -0.7)
    ax.tick_params(axis="y", labelsize=8)
    ax.set_xlabel("frequency (fraction of users)")
    ax.legend(loc="lower right")
    held = int(((data.low <= data.truth) & (data.truth <= data.high)).sum())
    headline(figure, f"{held} of {len(data)} intervals hold the truth, from one bit of each user")
    return Figure(
        "hh-oracle-words",
        figure,
        data,
        f"The {len(data)} most frequent words of the Brown corpus (cut to six letters; shown as the most frequent word behind each), as "
        f"estimated in one run from one private bit of each of {result.params.n_users:,} users at $\\epsilon$ = "
        f"{result.params.epsilon:g}.",
        f"A list of the {len(data)} most frequent words against their frequency, from {short(fraction.truth.max())} down to "
        f"{short(fraction.truth.min())}; each has a dot for the private estimate, a horizontal bar for its 95 percent interval and a tick "
        f"for the truth, and {held} ticks lie within their bars.",
    )


def _dots(ax: Any, result: Result[Params], dataset: str, sweep: str, ranks: tuple[int, ...]) -> pd.DataFrame:
    """Draw mean and deviation over runs at each rank; returns what is drawn, as fractions of n."""
    table = result.table
    part = table[(table.dataset == dataset) & (table.sweep == sweep) & table["rank"].isin(ranks)]
    part = part.assign(
        truth=part.truth / part.n_users,
        estimate=part.estimate / part.n_users,
        theory=part.standard_error / part.n_users,
    )
    data = (
        part.groupby(["rank", sweep])
        .agg(
            truth=("truth", "first"),
            theory=("theory", "first"),
            mean=("estimate", "mean"),
            sd=("estimate", "std"),
            runs=("estimate", "size"),
        )
        .reset_index()
    )
    for number, rank in enumerate(ranks):
        line = data[data["rank"] == rank]
        colour = PALETTE[number]
        aside = 1 + 0.03 * (number - (len(ranks) - 1) / 2)  # so that bars of different ranks do not hide each other
        ax.plot(line[sweep], line.truth, color=colour, linewidth=1.2)
        band = (line.truth - line.theory, line.truth + line.theory)
        ax.fill_between(line[sweep], *band, color=colour, alpha=0.2, linewidth=0)
        ax.errorbar(line[sweep] * aside, line["mean"], line.sd, fmt=MARKERS[number], color=colour, capsize=3)
    ax.set(xscale="log", xlabel=LABELS[sweep])
    _plain_ticks(ax, sweep, data[sweep].unique())
    return data.assign(dataset=dataset, sweep=sweep).rename(columns={sweep: "value"})


def _name(ax: Any, data: pd.DataFrame) -> str:
    """Write the ranks beside the lines of `ax`; returns how far the means of `data` are from the truth."""
    last = data[data["value"] == data["value"].max()].groupby("rank").truth.last()
    names = {rank: f"rank {rank}" for rank in last.index}
    names_beside(ax, last.rename(names).to_dict(), dict(zip(names.values(), PALETTE, strict=False)))
    furthest = ((data["mean"] - data.truth).abs() / data.theory).max()
    return f"No bias shows: every mean is within {short(furthest)} standard errors of a single run"


def _plain_ticks(ax: Any, sweep: str, values: Any) -> None:
    """Ticks at the values of the sweep: epsilon as it is, the width as a power of two."""
    if sweep != "n_users":
        power = sweep == "width"
        ax.set_xticks(
            list(values), [f"$2^{{{int(value).bit_length() - 1}}}$" if power else f"{value:g}" for value in values]
        )
        ax.xaxis.set_minor_locator(NullLocator())


def _list(ranks: tuple[int, ...]) -> str:
    return ", ".join(map(str, ranks[:-1])) + f" and {ranks[-1]}"


assert max(BROWN_RANKS) <= BROWN_WORDS  # what is drawn has been asked for


def _bars(data: pd.DataFrame) -> str:
    """How long the bars are at the left end and at the right end, on average over the items."""
    return f"one standard deviation goes from {ends(data.groupby('value', as_index=False).sd.mean(), 'value', 'sd')}"
