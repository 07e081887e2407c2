"""Bitstogram's ladder, its wrong bits against theory, and what buckets and repetitions do."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.patches import Rectangle
from scipy.special import ndtr

from evolvingdp.experiment import Figure, Result
from evolvingdp.experiment.describe import curves, ends, short, span
from evolvingdp.experiment.style import MARKERS, PALETTE, THEORY, band, canvas, headline, house, names_beside
from evolvingdp.heavy_hitters.experiments.bitstogram import where
from evolvingdp.heavy_hitters.experiments.bitstogram.params import Params, threshold
from evolvingdp.heavy_hitters.experiments.bitstogram.tables import summary
from evolvingdp.heavy_hitters.experiments.bitstogram.variants import BEST, DATASETS, LADDER, PRINTED, corrected, method
from evolvingdp.heavy_hitters.experiments.dots import SCORES, dots, told


@house
def ladder(result: Result[Params]) -> Figure:
    """Precision, recall and F1 of each variant."""
    rungs = summary(result.table, "ladder")
    figure, axes = canvas(9.0, 3.6, columns=2, sharey=True)
    dots(axes, rungs, DATASETS, LADDER, (BEST,))
    f1 = rungs[rungs.dataset == "brown"].set_index("variant").f1
    headline(
        figure, f"On Brown, F1 goes from {f1[PRINTED]:.2f}, as printed, to {f1[BEST]:.2f} with users split and bits as signs"
    )
    return Figure(
        "hh-bitstogram-ladder",
        figure,
        rungs,
        f"Bitstogram as printed and its variants: one minus F1, the further left the better, at $\\epsilon$ = {result.params.epsilon:g} and "
        f"$n$ = {result.params.n_users:,} (mean over {result.params.repetitions} runs, bars: 95% interval of the mean).",
        f"Dots with error bars for {len(LADDER)} protocols, one panel a data set, against one minus F1 on a log axis. "
        + " ".join(told(rungs, dataset, LADDER) for dataset in DATASETS),
    )


@house
def bits(result: Result[Params]) -> Figure:
    """Wrong bits of a bucket and the chance that the code corrects them, against the count of its heaviest word."""
    params = result.params
    seen = result.table[result.table.part == "bits"]
    figure, axes = canvas(9.0, 3.8, columns=2)
    grid = np.unique(np.geomspace(max(1, seen["count"].min()), seen["count"].max(), 120).astype(int))
    edges = np.geomspace(seen["count"].min() * 0.999, seen["count"].max() * 1.001, 13)
    parts = []
    for number, variant in enumerate((PRINTED, BEST)):
        settings, part = method(params, variant), seen[seen.variant == variant]
        groups = part.groupby(np.digitize(part["count"], edges))
        counted = groups.agg(
            count=("count", "mean"), wrong=("wrong", "mean"), corrected=("corrected", "mean"), words=("wrong", "size")
        )
        length = settings.code.length
        predicted = np.array([ndtr(-settings.bit_error(int(count), params.n_users)) for count in grid])
        chance = np.array([corrected(settings, int(count), params.n_users) for count in grid])
        look = {"color": PALETTE[number], "marker": MARKERS[number], "linestyle": "none", "capsize": 2, "label": variant}
        x = counted["count"] / params.n_users
        share = counted.wrong / length
        axes[0].errorbar(x, share, yerr=1.96 * np.sqrt(share * (1 - share) / (counted.words * length)), **look)
        half = 1.96 * np.sqrt((counted.corrected * (1 - counted.corrected)).clip(lower=0.25 / counted.words) / counted.words)
        lower, upper = np.minimum(half, counted.corrected), np.minimum(half, 1 - counted.corrected)
        axes[1].errorbar(x, counted.corrected, yerr=np.array([lower, upper]), **look)
        label = "predicted" if number else None
        axes[0].plot(grid / params.n_users, predicted, label=label, **THEORY)
        axes[1].plot(grid / params.n_users, chance, label=label, **THEORY)
        parts.append(counted.reset_index(drop=True).assign(variant=variant))
    reach = settings.code.correctable / settings.code.length
    axes[0].axhline(reach, color="grey", label=f"corrected: {settings.code.correctable} of {settings.code.length}")
    for ax in axes:
        ax.axvline(
            threshold(params) / params.n_users, color="grey", linestyle=":", label="threshold" if ax is axes[0] else None
        )
        ax.set(xscale="log", xlabel="frequency of the bucket's heaviest word")
    axes[0].set(ylabel="share of its bits read wrongly", ylim=(0, None))
    axes[1].set(ylabel="share of such words decoded", ylim=(-0.03, 1.05))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize="small")
    reached = [short(part[part.corrected >= 0.5]["count"].min() / params.n_users) for part in parts]
    headline(
        figure,
        f"With the bit as the sign half of the words are decoded from a frequency of {reached[1]} on, as printed from {reached[0]}",
    )
    return Figure(
        "hh-bitstogram-bits",
        figure,
        pd.concat(parts, ignore_index=True),
        "Why the variants differ: the share of a codeword's bits that the server reads wrongly (left) and the share of words "
        "that the code then recovers (right), against the frequency of the heaviest word of a bucket, both data sets, grouped "
        "by frequency, with 95% intervals. Dashed: what the known noise predicts for a word alone in its bucket.",
        "Two panels of points on dashed predicted curves against the frequency of the heaviest word of a bucket, on a log axis. Left, the "
        f"bits of {length} read wrongly fall for {curves(pd.concat(parts), 'variant', 'count', 'wrong')}, and the code corrects "
        f"{settings.code.correctable}. Right, the share of such words decoded rises for "
        f"{curves(pd.concat(parts), 'variant', 'count', 'corrected')}; half are decoded from a frequency of "
        + " and ".join(reached)
        + f" on, where the threshold is {short(threshold(params) / params.n_users)}.",
    )


@house
def choices(result: Result[Params]) -> Figure:
    """Recall, precision and F1 against the number of buckets and of repetitions."""
    figure, axes = canvas(8.5, 3.6, columns=2, sharey=True)
    parts = []
    for ax, part, label in zip(axes, ("buckets", "repetitions"), ("buckets T", "hash functions R"), strict=True):
        line = summary(result.table, part)
        for number, score in enumerate(SCORES):
            look = {"color": PALETTE[number], "marker": MARKERS[number]}
            band(ax, line[part], line[score], line[f"{score}_sd"], line.runs, look, score)
        ax.set_xscale("log", base=2)
        ax.set_xticks(line[part], [f"{int(value)}" for value in line[part]])
        ax.set(xlabel=label, ylim=(0, 1.05))
        parts.append(line)
    axes[0].set_ylabel("score")
    names = [score.replace("f1", "F1") for score in SCORES]
    last = line[list(SCORES)].iloc[-1].tolist()
    names_beside(axes[1], dict(zip(names, last, strict=True)), dict(zip(names, PALETTE, strict=False)))
    headline(
        figure,
        f"F1 goes from {ends(parts[0], 'buckets', 'f1')} with more buckets, from {ends(parts[1], 'repetitions', 'f1')} with more hash functions",
    )
    return Figure(
        "hh-bitstogram-choices",
        figure,
        pd.concat(parts, ignore_index=True),
        f"Bitstogram's two sizes on Brown ({BEST}): scores against the number of buckets with one hash function (left), and "
        f"against the number of hash functions with {result.params.buckets} buckets (right). Mean over "
        f"{result.params.sweep_repetitions} runs with 95% bands, other runs left and right.",
        "Two panels of three lines, of precision, recall and F1. Left, against the number of buckets, "
        f"{span(parts[0].buckets)}, on a log axis: {_scores(parts[0], 'buckets')}. Right, against the number of hash functions, "
        f"{span(parts[1].repetitions)}, each of which gets fewer users: {_scores(parts[1], 'repetitions')}.",
    )


@house
def where_each_wins(result: Result[Params]) -> Figure:
    """The map: F1 of each method in each setting, the largest in a box."""
    params, means = result.params, where.scores(result.table)
    figure, axes = canvas(9.0, 4.2, columns=len(where.METHODS), sharey=True)
    grid = means.unstack("epsilon")
    for ax, name in zip(axes, where.METHODS, strict=True):
        values = grid[name].to_numpy()
        ax.pcolormesh(values, cmap="Blues", vmin=0, vmax=1.4, edgecolors="white", linewidth=2)
        for (row, column), f1 in np.ndenumerate(values):
            wins = f1 >= max(grid[other].to_numpy()[row, column] for other in where.METHODS) - 1e-9
            ax.text(column + 0.5, row + 0.5, f"{f1:.2f}", ha="center", va="center", weight="bold" if wins else "normal")
            if wins:
                ax.add_patch(Rectangle((column + 0.06, row + 0.06), 0.88, 0.88, fill=False, linewidth=1.6))
        ax.set_xticks(np.arange(len(grid[name].columns)) + 0.5, [f"{epsilon:g}" for epsilon in grid[name].columns])
        ax.set_title(name.replace(", ", ",\n"), fontsize="medium")
        ax.set_xlabel(r"$\epsilon$")
        ax.grid(visible=False)
    axes[0].set_yticks(
        np.arange(len(grid)) + 0.5, [f"{dataset}\n$10^{{{np.log10(n_users):.3g}}}$" for dataset, n_users in grid.index]
    )
    wins_of = means.eq(means.max(axis="columns"), axis="index")[list(where.METHODS)].sum()
    headline(
        figure,
        f"Of {len(means)} settings, best in "
        + ", ".join(f"{count}: {name}" for name, count in wins_of.sort_values(ascending=False).items()),
    )
    table = means.rename_axis(columns="method").stack().rename("f1").reset_index()
    told = "; ".join(f"{name}: {', '.join(f'{f1:.2f}' for f1 in means[name])}" for name in where.METHODS)
    order = ", ".join(f"{dataset} {n_users:,} at {epsilon:g}" for dataset, n_users, epsilon in means.index)
    return Figure(
        "hh-bitstogram-map",
        figure,
        table,
        f"Which method has the best list, without a dictionary: mean F1 over {params.map_runs} runs in {len(means)} settings, words and users against "
        f"$\\epsilon$; boxes: the largest of its setting. The threshold is {params.factor:g} $\\lfloor\\sqrt{{n}}\\rfloor$ users. Both TreeHists are planned from "
        "$\\epsilon$, $n$, the threshold and a public power law.",
        f"Four heat maps of {len(means)} cells, one a method, the numbers of users against epsilon, with F1 in each cell and a box around the largest of a setting. In the order {order}: {told}.",
    )


def _scores(line: pd.DataFrame, x: str) -> str:
    return ", ".join(f"{score} goes from {ends(line, x, score)}" for score in SCORES).replace("f1", "F1")
