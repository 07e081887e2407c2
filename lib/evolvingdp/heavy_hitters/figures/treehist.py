"""Table 2 as a ladder, Figures 5 and 6, and how far the best protocols reach."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evolvingdp.core.describe import curves, ends, short, span
from evolvingdp.core.experiment import Figure, Result
from evolvingdp.core.style import MARKERS, PALETTE, THEORY, TRUTH, band, canvas, house
from evolvingdp.heavy_hitters.experiments.treehist import (
    BEST,
    LADDER,
    OLH_PEM,
    PAPER_TABLE_2,
    Params,
    data,
    found_words,
    summary,
    threshold,
)
from evolvingdp.heavy_hitters.figures import scores


@house
def distributions(result: Result[Params]) -> Figure:
    """Figures 5 and 6 of the paper: the true distributions, with the threshold."""
    params = result.params
    figure, axes = canvas(8.0, 3.4, columns=2, sharey=True)
    parts = []
    for ax, dataset, colour in zip(axes, PAPER_TABLE_2, PALETTE, strict=False):
        _, counts = data(params.n_items, dataset, params.n_users, result.seed, 0)
        frequencies = np.sort(counts)[::-1][:100] / params.n_users
        rank = np.arange(1, len(frequencies) + 1)
        ax.bar(rank, frequencies, color=colour, width=1.0)
        ax.axhline(threshold(params, params.n_users) / params.n_users, label="threshold", **THEORY)
        ax.set(xlabel="rank of the word", title=dataset)
        parts.append(pd.DataFrame({"dataset": dataset, "rank": rank, "frequency": frequencies}))
    axes[0].set_ylabel("frequency (fraction of users)")
    axes[0].legend()
    return Figure(
        "hh-treehist-data",
        figure,
        pd.concat(parts, ignore_index=True),
        f"The paper's Figures 5 and 6. True frequencies of the 100 most frequent words of both data sets in the first run, "
        f"$n$ = {params.n_users:,}; dashed: the threshold {params.factor:g} $\\lfloor\\sqrt{{n}}\\rfloor$ = "
        f"{threshold(params, params.n_users):,.0f} users above which a word is a heavy hitter.",
        "Two bar charts of the frequency of a word against its rank, 1 to 100, with a dashed line at the threshold. "
        + " ".join(
            f"{part.dataset.iloc[0].capitalize()} words fall from {ends(part, 'rank', 'frequency')}, and "
            f"{int((part.frequency * params.n_users >= threshold(params, params.n_users)).sum())} bars reach the line."
            for part in parts
        ),
    )


@house
def ladder(result: Result[Params]) -> Figure:
    """What each change buys: precision, recall and F1 of every protocol."""
    rungs = summary(result.table, "ladder")
    figure, axes = canvas(9.0, 4.6, columns=2, sharey=True)
    place = scores.dots(axes, rungs, list(PAPER_TABLE_2), LADDER)
    for ax, dataset in zip(axes, PAPER_TABLE_2, strict=True):
        for name, value in PAPER_TABLE_2[dataset].items():
            marker = MARKERS[("precision", "recall").index(name)]
            colour = TRUTH
            ax.plot(value, -0.42, marker, color=colour, markersize=6, fillstyle="none", clip_on=False)
        (best,) = rungs[(rungs.dataset == dataset) & (rungs.variant == BEST)].expected_f1
        ax.plot([best, best], [place[BEST] - 0.4, place[BEST] + 0.45], label="F1 predicted", **THEORY)
    axes[1].legend(loc="lower left")
    return Figure(
        "hh-treehist-ladder",
        figure,
        rungs,
        f"Table 2 as a ladder: precision, recall and F1 of each protocol at the same $\\epsilon$ = {result.params.epsilon:g} and "
        f"$n$ = {result.params.n_users:,} (mean over {result.params.repetitions} runs, bars: 95% interval of the mean). Black "
        "outlines in the first row: what the paper prints. Dashed: the F1 that normal errors predict.",
        "Dots with error bars for nine protocols, one panel a data set, against the score from 0 to 1; black outlines in the first row for "
        "what the paper prints, and a dashed mark for the F1 predicted in the last. "
        + " ".join(scores.told(rungs, dataset, [LADDER[0], BEST, OLH_PEM]) for dataset in PAPER_TABLE_2),
    )


@house
def reach(result: Result[Params]) -> Figure:
    """F1 and the number of words found against epsilon and n, and the error against its prediction."""
    figure, axes = canvas(9.0, 3.6, columns=3)
    by_epsilon, by_n = summary(result.table, "epsilon"), summary(result.table, "n_users")
    for number, variant in enumerate((BEST, OLH_PEM)):
        look = {"color": PALETTE[number], "marker": MARKERS[number]}
        line = by_epsilon[by_epsilon.variant == variant]
        band(axes[0], line.epsilon, line.f1, line.f1_sd, line.runs, look, variant)
        band(axes[2], line.epsilon, line.rmse / line.n_users, line.rmse_sd / line.n_users, line.runs, look, variant)
        axes[2].plot(line.epsilon, line.standard_error / line.n_users, **THEORY)
        if variant == BEST:
            axes[0].plot(line.epsilon, line.expected_f1, label="predicted", **THEORY)
        line = by_n[by_n.variant == variant]
        band(axes[1], line.n_users, line.hits, line.hits_sd, line.runs, look, variant)
    axes[0].set(xlabel=r"privacy loss $\epsilon$ of a user", ylabel="F1", ylim=(0, 1.03))
    axes[0].legend(loc="lower right")
    axes[1].set(xlabel="users n", ylabel="heavy hitters found", xscale="log", yscale="log")
    axes[2].set(xlabel=r"privacy loss $\epsilon$ of a user", ylabel="RMSE (fraction of users)", yscale="log")
    return Figure(
        "hh-treehist-reach",
        figure,
        pd.concat([by_epsilon, by_n], ignore_index=True),
        f"How far one report goes on Brown: F1 against $\\epsilon$ at $n$ = {result.params.n_users:,} (left), heavy hitters found "
        f"against $n$ at $\\epsilon$ = {result.params.epsilon:g} with the threshold falling as $1/\\sqrt{{n}}$ (middle), and the error of "
        "the estimates of clearly heavy words against $\\epsilon$ (right). Mean over runs with 95% bands; dashed: predicted.",
        f"Three panels of two lines. Left, F1 against epsilon, {span(by_epsilon.epsilon)}: {curves(by_epsilon, 'variant', 'epsilon', 'f1')}. "
        f"Middle, heavy hitters found against users, {span(by_n.n_users)}, on log axes: {curves(by_n, 'variant', 'n_users', 'hits')}. Right, "
        "the error as a fraction of users against epsilon, on dashed predictions: "
        f"{curves(by_epsilon.assign(error=by_epsilon.rmse / by_epsilon.n_users), 'variant', 'epsilon', 'error')}.",
    )


@house
def words(result: Result[Params]) -> Figure:
    """The list that one run finds, with interval and truth."""
    frame = found_words(result)
    figure, ax = canvas(7.0, 6.0)
    scaled = frame.drop(columns="word") / result.params.n_users
    place = np.arange(len(frame))
    ax.hlines(place, scaled.low, scaled.high, color=PALETTE[0], linewidth=3, alpha=0.5, label="95% interval")
    ax.plot(scaled.estimate, place, "o", color=PALETTE[0], markersize=4, label="found, estimate")
    ax.plot(scaled.truth, place, "|", color=TRUTH, markersize=9, markeredgewidth=1.5, label="truth")
    missed = scaled.estimate.isna()
    if missed.any():
        ax.plot(scaled.truth[missed], place[missed], "x", color=PALETTE[3], markersize=7, label="missed")
    ax.axvline(scaled.threshold.iloc[0], label="threshold", **THEORY)
    ax.set_yticks(place, frame.word)
    ax.set_ylim(len(frame) - 0.3, -0.7)
    ax.tick_params(axis="y", labelsize=8)
    ax.set(xlabel="frequency (fraction of users)", xscale="log")
    ax.legend(loc="lower right")
    return Figure(
        "hh-treehist-words",
        figure,
        frame,
        f"What the server learns without a dictionary: all words found in one run of {BEST!r} on Brown, and all heavy hitters that it "
        f"missed, $n$ = {result.params.n_users:,}, $\\epsilon$ = {result.params.epsilon:g}. The words themselves come out of the protocol.",
        f"A list of {len(frame)} words in order of their frequency, from {short(scaled.truth.max())} to {short(scaled.truth.min())} on a log "
        f"axis, with a dot for the estimate, a bar for its interval and a tick for the truth. {int((~missed).sum())} were found, the bars of "
        f"{int(((scaled.low <= scaled.truth) & (scaled.truth <= scaled.high)).sum())} hold the truth; crosses mark {int(missed.sum())} missed, "
        f"and a dashed line the threshold at {short(scaled.threshold.iloc[0])}.",
    )
