"""Table 2 as a ladder, Figures 5 and 6, and how far the best protocols reach."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from evolvingdp.experiment import Figure, Result
from evolvingdp.experiment.describe import curves, ends, short, span
from evolvingdp.experiment.style import MARKERS, PALETTE, THEORY, TRUTH, band, canvas, headline, house
from evolvingdp.heavy_hitters.experiments.dots import LEAST, dots, told
from evolvingdp.heavy_hitters.experiments.lists import data
from evolvingdp.heavy_hitters.experiments.treehist.ladder import AS_RUN, BEST, LADDER, OLH_PEM, PROJECTIVE
from evolvingdp.heavy_hitters.experiments.treehist.params import PAPER_TABLE_2, Params, threshold
from evolvingdp.heavy_hitters.experiments.treehist.tables import found_words, summary


@house
def distributions(result: Result[Params]) -> Figure:
    """Figures 5 and 6 of the paper: the true distributions, with the threshold."""
    params = result.params
    figure, axes = canvas(8.0, 3.4, columns=2, sharey=True)
    parts = []
    for ax, dataset, colour in zip(axes, PAPER_TABLE_2, PALETTE, strict=False):
        counts = data(params.n_items, dataset, params.n_users, result.seed, 0)
        frequencies = np.sort(counts.to_numpy())[::-1][:100] / params.n_users
        rank = np.arange(1, len(frequencies) + 1)
        ax.bar(rank, frequencies, color=colour, width=1.0)
        ax.axhline(threshold(params, params.n_users) / params.n_users, label="threshold", **THEORY)
        ax.set(xlabel="rank of the word", title=dataset.capitalize())
        parts.append(pd.DataFrame({"dataset": dataset, "rank": rank, "frequency": frequencies}))
    axes[0].set_ylabel("frequency (fraction of users)")
    axes[0].legend()
    heavy = [int((part.frequency * params.n_users >= threshold(params, params.n_users)).sum()) for part in parts]
    headline(
        figure,
        f"{heavy[0]} synthetic words and {heavy[1]} words of Brown are heavy hitters",
    )
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
            f"{many} bars reach the line."
            for part, many in zip(parts, heavy, strict=True)
        ),
    )


@house
def ladder(result: Result[Params]) -> Figure:
    """What each change buys: what the list of every protocol misses."""
    rungs = summary(result.table, "ladder")
    figure, axes = canvas(9.0, 4.6, columns=2, sharey=True)
    place = dots(axes, rungs, list(PAPER_TABLE_2), LADDER, (BEST, PROJECTIVE))
    for ax, dataset in zip(axes, PAPER_TABLE_2, strict=True):
        printed = 2 / sum(1 / score for score in PAPER_TABLE_2[dataset].values())
        ax.plot(max(LEAST, 1 - printed), -0.4, "v", color=TRUTH, markersize=6)
        ax.annotate(
            "printed", (max(LEAST, 1 - printed), -0.4), (6, 0), textcoords="offset points", va="center", fontsize="small"
        )
        for variant in (BEST, PROJECTIVE):
            (f1,) = rungs[(rungs.dataset == dataset) & (rungs.variant == variant)].expected_f1
            ax.plot([1 - f1] * 2, [place[variant] - 0.35, place[variant] + 0.35], **THEORY)
    brown = rungs[rungs.dataset == "brown"].set_index("variant").f1
    best = brown.idxmax()
    headline(
        figure,
        f"On Brown, F1 goes from {brown[AS_RUN]:.2f}, as the paper ran it, to {brown[PROJECTIVE]:.3f} with planned projective reports; best: "
        f"{'these' if best == PROJECTIVE else f'{best}, {brown[best]:.3f}'}",
    )
    return Figure(
        "hh-treehist-ladder",
        figure,
        rungs,
        f"Table 2 as a ladder: one minus F1, the further left the better, of each protocol at the same $\\epsilon$ = {result.params.epsilon:g} and "
        f"$n$ = {result.params.n_users:,} (mean over {result.params.repetitions} runs, bars: 95% interval of the mean). Triangles: from "
        "the precision and recall that the paper prints. Dashed: what normal errors predict. Precision and recall are in the table.",
        f"Dots with error bars for {len(LADDER)} protocols, one panel a data set, against one minus F1 on a log axis; triangles in the first row for "
        "what the paper prints, and dashed marks for what is predicted of two. "
        + " ".join(told(rungs, dataset, [LADDER[0], BEST, PROJECTIVE, OLH_PEM]) for dataset in PAPER_TABLE_2),
    )


@house
def reach(result: Result[Params]) -> Figure:
    """F1, recall and the error of the estimates, against epsilon and against n."""
    figure, axes = canvas(9.0, 6.0, columns=3, rows=2)
    sweeps = {"epsilon": summary(result.table, "epsilon"), "n_users": summary(result.table, "n_users")}
    sweeps = {axis: sweep.assign(error=sweep.rmse / sweep.n_users) for axis, sweep in sweeps.items()}
    for row, (axis, sweep) in zip(axes, sweeps.items(), strict=True):
        for number, variant in enumerate((BEST, OLH_PEM)):
            look = {"color": PALETTE[number], "marker": MARKERS[number], "linestyle": ("-", (0, (5, 2)))[number]}
            line = sweep[sweep.variant == variant]
            for ax, score in zip(row, ("f1", "recall"), strict=False):
                band(ax, line[axis], line[score], line[f"{score}_sd"], line.runs, look, variant)
            band(row[2], line[axis], line.error, line.rmse_sd / line.n_users, line.runs, look, variant)
            row[2].plot(line[axis], line.standard_error / line.n_users, **THEORY)
            if variant == BEST:
                row[0].plot(line[axis], line.expected_f1, label="predicted", **THEORY)
        for ax, label in zip(row, ("F1", "recall", "RMSE (fraction of users)"), strict=True):
            ax.set(xlabel={"epsilon": r"privacy loss $\epsilon$ of a user", "n_users": "users n"}[axis], ylabel=label)
            ax.set_xscale("linear" if axis == "epsilon" else "log")
        row[0].set_ylim(0, 1.03)
        row[1].set_ylim(0, 1.03)
        row[2].set_yscale("log")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize="small")
    best = sweeps["epsilon"][sweeps["epsilon"].epsilon == sweeps["epsilon"].epsilon.max()].set_index("variant").f1
    most = sweeps["epsilon"].epsilon.max()
    headline(figure, f"At epsilon = {most:g} F1 is {best[BEST]:.2f} with one bit a user, {best[OLH_PEM]:.2f} with PEM")
    table, hits = pd.concat(list(sweeps.values()), ignore_index=True), sweeps["n_users"]
    return Figure(
        "hh-treehist-reach",
        figure,
        table,
        f"How far one report goes on Brown: F1, recall and the error of the estimates of clearly heavy words, against $\\epsilon$ at "
        f"$n$ = {result.params.n_users:,} (above) and against $n$ at $\\epsilon$ = {result.params.epsilon:g}, with the threshold falling as "
        "$1/\\sqrt{n}$ (below). Mean over runs with 95% bands; dashed black: predicted.",
        f"Six panels of two lines. Against epsilon, {span(sweeps['epsilon'].epsilon)}: F1, "
        f"{curves(sweeps['epsilon'], 'variant', 'epsilon', 'f1')}; recall, {curves(sweeps['epsilon'], 'variant', 'epsilon', 'recall')}; "
        f"error as a fraction of users, {curves(sweeps['epsilon'], 'variant', 'epsilon', 'error')}. Against users, {span(hits.n_users)} on a log "
        f"axis: F1, {curves(hits, 'variant', 'n_users', 'f1')}; recall, {curves(hits, 'variant', 'n_users', 'recall')}; error, "
        f"{curves(hits, 'variant', 'n_users', 'error')}; the words found go from {curves(hits, 'variant', 'n_users', 'hits')}.",
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
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.legend(loc="lower right")
    light = int((frame.truth <= frame.threshold)[~missed].sum())
    below = f"{light} of them below the threshold, " if light else ""
    headline(figure, f"{int((~missed).sum())} words are found that nobody had listed, {below}{int(missed.sum())} are missed")
    return Figure(
        "hh-treehist-words",
        figure,
        frame,
        f"What the server learns without a dictionary: all words found in one run of {BEST!r} on Brown, and all heavy hitters that it "
        f"missed, $n$ = {result.params.n_users:,}, $\\epsilon$ = {result.params.epsilon:g}. Their first six letters come out of the "
        "protocol, and are shown as the most frequent word behind them.",
        f"A list of {len(frame)} words in order of their frequency, from {short(scaled.truth.max())} to {short(scaled.truth.min())} on a log "
        f"axis, with a dot for the estimate, a bar for its interval and a tick for the truth. {int((~missed).sum())} were found, the bars of "
        f"{int(((scaled.low <= scaled.truth) & (scaled.truth <= scaled.high)).sum())} hold the truth; crosses mark {int(missed.sum())} missed, "
        f"and a dashed line the threshold at {short(scaled.threshold.iloc[0])}.",
    )
