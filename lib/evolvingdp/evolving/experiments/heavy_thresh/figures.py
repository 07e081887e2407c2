"""HEAVYTHRESH on the Brown corpus: the words over time, and error and recall against recomputation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from evolvingdp.core import brown
from evolvingdp.evolving.experiments.heavy_thresh.params import Params
from evolvingdp.evolving.experiments.heavy_thresh.run import brown_trace
from evolvingdp.evolving.experiments.heavy_thresh.settings import (
    CREWS,
    HINDSIGHT,
    METHODS,
    NAIVE,
    TOP,
    TUNED,
    brown_settings,
    brown_stream,
)
from evolvingdp.experiment import Figure, Result
from evolvingdp.experiment.describe import short, span
from evolvingdp.experiment.style import MARKERS, PALETTE, THEORY, canvas, headline, house, names_beside


@house
def words(result: Result[Params]) -> Figure:
    """One run: some words' true and estimated frequencies, with the updates."""
    params = result.params
    settings, data, trace = brown_settings(params), brown_stream(params), brown_trace(params, result.seed, 0)
    names = brown.words()["whole"].tolist()
    laws = data.distributions[data.which[0]]
    spread = laws[:: params.epochs_each].std(axis=0)
    shown = np.argsort(-spread)[:6]
    epochs = np.arange(1, settings.voting.horizon + 1)
    estimates = np.array([release.estimate[shown] for release in trace.public])
    figure, ax = canvas(8.5, 5.0)
    half = 1.96 * settings.standard_error
    frames = []
    for number, word in enumerate(shown):
        colour, label = PALETTE[number], names[word]
        ax.fill_between(
            epochs, estimates[:, number] - half, estimates[:, number] + half, step="mid", color=colour, alpha=0.2
        )
        mark = {"marker": MARKERS[number], "markersize": 5, "markevery": (number, 10)}  # told apart without colour
        ax.step(epochs, estimates[:, number], where="mid", color=colour, linewidth=2, **mark)
        ax.step(epochs, laws[:, word], where="mid", color=colour, linewidth=1, linestyle=":")
        frames.append(
            pd.DataFrame(
                {
                    "word": label,
                    "epoch": epochs,
                    "truth": laws[:, word],
                    "estimate": estimates[:, number],
                    "half_width": half,
                }
            )
        )
    updates = [release.epoch for release in trace.public if release.updated]
    ax.plot(updates, np.full(len(updates), -0.008), "^", color="black", markersize=5, clip_on=False)
    categories = [name.replace("_", " ") for name in brown.categories().columns]
    ax.set_xticks(1 + params.epochs_each * np.arange(len(categories)), categories, rotation=55, ha="right", fontsize=8)
    ax.set(ylabel="frequency of the word", ylim=(-0.01, None), xlim=(0.5, epochs[-1] + 0.5))
    ends = {frame.word.iloc[0]: float(frame.estimate.iloc[-1]) for frame in frames}
    names_beside(ax, ends, dict(zip(ends, PALETTE, strict=False)))
    held = 100 * float(np.mean([_covered(frame) for frame in frames]))
    headline(figure, f"One budget lasts for {len(updates)} updates, and {short(held)} % of the intervals hold the truth")
    return Figure(
        "ev-heavy-words",
        figure,
        pd.concat(frames, ignore_index=True),
        f"One run on the Brown corpus: {params.n_users:,} users draw {params.epoch_length:,} words an epoch, from one category for "
        f"{params.epochs_each} epochs and then from the next, $\\epsilon$ = {params.epsilon:g} for everything. Solid: estimates with 95% "
        "intervals; dotted: truth; triangles: updates. An estimate stays until the next update, so that there are only "
        f"{len(frames) * len(updates)} intervals, and the share that holds scatters by about {100 * math.sqrt(0.95 * 0.05 / (len(frames) * len(updates))):.0f} points. The six words whose frequencies vary most between the categories, cut to six "
        "letters, and shown as the most frequent word behind each.",
        f"Step lines of the frequencies of six words over {len(epochs)} epochs in {len(categories)} categories: "
        f"{', '.join(frame.word.iloc[0] + ' at ' + span(frame.truth) for frame in frames)}. The true frequency, dotted, is within the "
        f"95 percent band of the estimate in {short(held)} percent of the epochs; "
        f"{len(updates)} triangles below the axis mark the updates.",
    )


@house
def compared(result: Result[Params]) -> Figure:
    """Largest error and share of the most frequent words found, epoch by epoch."""
    params, table = result.params, result.table
    rows = table[table.part == "brown"]
    figure, axes = canvas(11.0, 4.6, columns=2)
    parts, shown = [], [method for method in METHODS if method != NAIVE]
    colours = dict(zip(shown, [PALETTE[place] for place in (1, 7, 9, 0, 2, 4, 3)], strict=True))
    for place, method in enumerate(shown):
        mine = rows[rows.method == method]
        runs = mine.groupby("repetition").recall.mean()
        mark = {"marker": MARKERS[place], "markersize": 6}  # the same in both panels
        axes[0].errorbar(runs.mean(), place, xerr=_half(runs), color=colours[method], capsize=3, **mark)
        epochs = mine.groupby("epoch").max_error
        mean, half, look = (
            epochs.mean(),
            _half(epochs),
            {"color": colours[method], "linewidth": 2.8 if method == CREWS else 1},
        )
        axes[1].fill_between(mean.index, mean - half, mean + half, color=look["color"], alpha=0.2, linewidth=0)
        axes[1].plot(mean.index, mean, markevery=(2 * place, 15), **mark, **look)
        for measure in ("recall", "max_error"):
            epochs = mine.groupby("epoch")[measure]
            drawn = {"epoch": epochs.mean().index, "mean": epochs.mean(), "half_width": _half(epochs)}
            parts.append(pd.DataFrame({"method": method, "measure": measure} | drawn))
    axes[0].set_yticks(range(len(shown)), shown)
    for name, label in zip(shown, axes[0].get_yticklabels(), strict=True):
        label.set_color(colours[name])
    axes[0].set(xlabel=f"share of the top {TOP} words found, all epochs", ylim=(len(shown) - 0.5, -0.5), xlim=(None, 1.02))
    settings = brown_settings(params)
    axes[1].axhline(_expected_largest(settings.n_words, settings.standard_error), **THEORY)
    axes[1].set(xlabel="epoch", ylabel="largest error of a word", yscale="log")
    error = rows.groupby("method").max_error.mean() / rows[rows.method == TUNED].max_error.mean()
    headline(
        figure,
        f"HEAVYTHRESH has {short(1 / error[CREWS])} times the largest error of roles by lot, {short(1 / error[HINDSIGHT])} times that of one report a user, averaged",
    )
    return Figure(
        "ev-heavy-compared",
        figure,
        pd.concat(parts, ignore_index=True),
        f"HEAVYTHRESH and its rivals on the same stream at $\\epsilon$ = {params.epsilon:g}, epochs of {params.epoch_length:,} words a user: the share of the {TOP} "
        f"most frequent words found, on average over the epochs (left), and the largest error over all {settings.n_words:,} words (right; dashed: about the largest of as many normal errors "
        "with HEAVYTHRESH's standard error). Users who are split over the categories report in the first epoch of each: these periods are given the "
        f"times of the changes. Mean over {params.repetitions} runs with 95% bands.",
        f"Two panels. Left, a row of dots for each method against the share of the top {TOP} words found on average over the epochs: {_means(parts, 'recall')}. "
        f"Right, lines against the epoch on a log axis of the largest error of a word, on average {_means(parts, 'max_error')}, with a dashed "
        f"line at {short(_expected_largest(settings.n_words, settings.standard_error))}.",
    )


def _covered(frame: pd.DataFrame) -> float:
    """The share of the epochs in which the truth is in the interval."""
    return float(((frame.estimate - frame.truth).abs() <= frame.half_width).mean())


def _means(parts: list[pd.DataFrame], measure: str) -> str:
    """The mean of `measure` over the epochs, by method."""
    return "; ".join(
        f"{short(part['mean'].mean())} for {part.method.iloc[0]}" for part in parts if part.measure.iloc[0] == measure
    )


def _half(runs: Any) -> Any:
    """Half of the 95% interval of a mean of runs, of one series or of each group."""
    return stats.t.ppf(0.975, runs.count() - 1) * runs.std() / np.sqrt(runs.count())


def _expected_largest(n_words: int, standard_error: float) -> float:
    """About the largest of n_words normal errors, where estimates below zero are clipped: sqrt(2 ln d) standard errors."""
    return standard_error * math.sqrt(2 * math.log(n_words))
