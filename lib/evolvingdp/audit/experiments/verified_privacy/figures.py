"""Promised against verified loss, how audits converge, two failures caught, and digits that give a count away."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.audit.experiments.verified_privacy.params import (
    DIGITS,
    INTEGER,
    KEPT,
    LESS,
    REDRAWN,
    RIGHT,
    UNCLEARED,
    Params,
)
from evolvingdp.audit.experiments.verified_privacy.tables import CHAPTERS, computed, part, shown
from evolvingdp.experiment import Figure, Result
from evolvingdp.experiment.describe import curves, short, span
from evolvingdp.experiment.style import MARKERS, PALETTE, THEORY, TRUTH, band, canvas, headline, house

LOOKS = {
    case: {"color": PALETTE[number], "marker": MARKERS[number], "markersize": 4}
    for cases in ((KEPT, REDRAWN, UNCLEARED), (RIGHT, LESS, DIGITS, INTEGER))
    for number, case in enumerate(cases)
}
NOTHING = "audit from outside: shows nothing"
_FAR = 10.0  # times the promise: where the axis ends


@house
def chapters(result: Result[Params]) -> Figure:
    """Measured loss and audit over the promise of all rows, those of a chapter one below the other by their loss."""
    rows = computed(result.table).reset_index(drop=True)
    loss, names = rows.measured / rows.promised, list(dict.fromkeys(rows.chapter))
    rank = loss.groupby(rows.chapter).rank(method="first") / rows.groupby("chapter").id.transform("size")  # in (0, 1]
    number = rows.chapter.map(names.index)
    figure, ax = canvas(8.0, 5.6)
    bounds, silent = _losses(ax, rows, result.table, (0.8 * rank - number - 0.4).to_numpy(), size=3)
    ax.set(ylim=(0.6 - len(names), 0.6), xlabel="privacy loss over the promise")
    ax.set_yticks(-np.arange(len(names)), [f"{CHAPTERS[name]}\n({(rows.chapter == name).sum()} rows)" for name in names])
    ax.grid(axis="y", visible=False)
    ax.legend(loc="upper left", fontsize="small", frameon=True)
    reached = (
        f"{int(rows.tight.sum())} lose all that they promise" if rows.tight.any() else "none loses all that it promises"
    )
    headline(figure, f"{int(rows.kept.sum())} of {len(rows)} mechanisms and settings keep their promise; {reached}")
    return Figure(
        "audit-chapters",
        figure,
        pd.DataFrame({"chapter": rows.chapter, "mechanism": rows.mechanism, "verified": loss, "audit": bounds}),
        f"The ledger at a glance, {len(rows)} of its {result.values['n_entries']} rows: what each loses at worst, over what it promises. Within a chapter the rows stand in the order of their loss. A promise is kept where no dot is right of the line; dots on it are tight, and "
        f"those far to the left belong to proofs that give budget away. {_of_audits(result, bounds)}",
        f"Dot plot of {len(rows)} mechanisms and settings in {len(names)} groups, by chapter, against the privacy loss over the promise, on a log "
        f"axis with a dashed line at one. {_spans(rows, loss, bounds, silent)}",
    )


@house
def promised(result: Result[Params]) -> Figure:
    """Measured loss and audit over the promise, a row a mechanism."""
    rows = computed(result.table).reset_index(drop=True)
    figure, ax = canvas(8.0, 0.2 * len(rows) + 1.2)
    place = np.arange(len(rows))[::-1]
    bounds, silent = _losses(ax, rows, result.table, place, size=4)
    ax.set(xlabel="privacy loss over the promise", ylim=(-1, len(rows)))
    ax.set_yticks(place, rows.mechanism, fontsize="xx-small")
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1))
    more = int((~rows.kept).sum())
    headline(figure, f"{more or 'None'} of {len(rows)} mechanisms and settings loses more than it promises")
    return Figure(
        "audit-promised",
        figure,
        shown(result.table),
        "The same, a row for each mechanism and setting: its verified worst case over its promise, at the delta that is promised; and, for some, a lower bound from an audit that only sees outputs. "
        f"{_of_audits(result, bounds)}",
        f"Dot plot with a row for each of {len(rows)} mechanisms against the privacy loss over the promise, on a log axis with a dashed "
        f"line at one. {_spans(rows, rows.measured / rows.promised, bounds, silent)}",
    )


def _losses(ax: Any, rows: pd.DataFrame, table: pd.DataFrame, place: Any, size: float) -> tuple[pd.Series, int]:
    """Draw rows at `place`. Returns what audits prove over the promise (nan without one), and how many prove nothing."""
    bounds = rows.id.map(part(table, "box").set_index("id").bound) / rows.promised
    ax.axvline(1.0, label="promised", **THEORY)
    ax.plot(rows.measured / rows.promised, place, "o", color=TRUTH, markersize=size, label="verified")
    look = {"color": PALETTE[0], "markersize": size + 1}
    ax.plot(bounds[bounds > 0], place[bounds > 0], ">", label="audit from outside: at least", **look)
    ax.set(xscale="log", xlim=(None, _FAR))
    left = ax.get_xlim()[0]  # where a log axis has its 0
    silent = bounds == 0
    if silent.any():  # an empty line that is not clipped would take room below the axis
        edge = np.full(int(silent.sum()), left)
        ax.plot(edge, place[silent], ">", markerfacecolor="white", clip_on=False, label=NOTHING, **look)
    ax.set_xlim(left, _FAR)
    return bounds, int(silent.sum())


def _of_audits(result: Result[Params], bounds: pd.Series) -> str:
    audits, silent = int(bounds.notna().sum()), int((bounds == 0).sum())
    nothing = f" Of these {audits} bounds {silent} are 0, which shows nothing: open triangles at the left edge."
    sure = f"{100 * result.values['box_confidence']:.5g}%"
    return f"Dots are computed, not sampled; the triangles are lower bounds at a confidence of {sure} each." + nothing * (
        silent > 0
    )


def _spans(rows: pd.DataFrame, loss: pd.Series, bounds: pd.Series, silent: int) -> str:
    """Where dots and triangles are, for those who do not see them."""
    return (
        f"The verified losses, dots, are {span(loss)} times the promise, {int((loss > 0.99).sum())} of {len(rows)} on the line to within a "
        f"percent; {int(bounds.notna().sum())} audits from outside, triangles, "
        f"prove {span(bounds.dropna())} of it; {silent} of them, open and at the left edge, prove nothing."
    )


def _repeated(table: pd.DataFrame, name: str, against: str, value: str) -> pd.DataFrame:
    """Mean, deviation and number of the repetitions of a part, for each case."""
    rows = part(table, name).groupby(["case", against], sort=False)
    return rows[value].agg(["mean", "std", "count"]).reset_index()


@house
def convergence(result: Result[Params]) -> Figure:
    """The bound of an audit against the number of its runs."""
    lines = _repeated(result.table, "convergence", "runs", "bound")
    figure, ax = canvas(7.0, 4.2)
    for case in (RIGHT, LESS, DIGITS, INTEGER):
        line = lines[lines.case == case]
        band(ax, line.runs, line["mean"], line["std"], line["count"], LOOKS[case], case)
    runs, integers = np.array(sorted(lines.runs.unique())), lines[lines.case == INTEGER].runs.max()
    ax.plot(runs, np.log(runs / 3.7), color=TRUTH, linestyle=":", label="about all that can be shown")
    ax.axhline(1.0, label="promised", **THEORY)
    ax.set(xscale="log", xlabel="runs of each input", ylabel=r"lower bound on $\epsilon$")
    last = lines.loc[lines.groupby("case").runs.idxmax()].set_index("case")["mean"]
    ax.legend(loc="upper left")
    headline(
        figure,
        f"{runs.max():,.0f} runs prove that the last digits of Laplace noise lose {short(last[DIGITS])}, where 1 is promised",
    )
    return Figure(
        "audit-convergence",
        figure,
        lines,
        "Lower bounds on the epsilon of a noisy count that promises 1, against the runs of each input. From the value alone the bound approaches the truth from below, and a tenth less noise needs some ten "
        "thousand runs to show; from the last binary digits of naive Laplace noise it grows as fast as a bound can. Integer noise has no such digits: all its outputs look alike, and any number of runs shows 0. "
        f"Its line ends at {integers:,.0f} runs, where that is plain. Means of repeated audits with 95% bands.",
        f"Line chart of the lower bound on epsilon against the runs of each input, {span(runs)} on a log axis, with a dashed line at the "
        f"promised 1 and a dotted one for all that so many runs can show, up to {short(np.log(runs.max() / 3.7))}. From the fewest runs to "
        f"the most, the bound goes for {curves(lines, 'case', 'runs', 'mean')}.",
    )


@house
def caught(result: Result[Params]) -> Figure:
    """Two failures: users recovered, and exact loss and audit against the number of reports."""
    told = _repeated(result.table, "recovered", "n_reports", "recovered")
    wrong = part(result.table, "failures")
    figure, axes = canvas(9.0, 4.2, columns=2)
    for case in (KEPT, REDRAWN):
        line = told[told.case == case]
        band(axes[0], line.n_reports, line["mean"], line["std"], line["count"], LOOKS[case], case)
    axes[0].set(xscale="log", xlabel="reports of a user", ylabel="share of users recovered", ylim=(0, 1.05))
    for case in (KEPT, REDRAWN, UNCLEARED):
        line = wrong[wrong.case == case]
        axes[1].plot(line.n_reports, line.loss, color=LOOKS[case]["color"])
        axes[1].plot(line.n_reports, line.bound, linestyle="none", label=case, **LOOKS[case])
    axes[1].axhline(wrong.promised.iloc[0], label="promised", **THEORY)
    axes[1].set(xscale="log", yscale="log", xlabel="reports of a user", ylabel=r"loss $\epsilon$", ylim=(0.3, None))
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize="small")
    most = told[told.n_reports == told.n_reports.max()].set_index("case")["mean"]
    headline(
        figure,
        f"After {wrong.n_reports.max():,.0f} reports {most[REDRAWN]:.0%} of the users are recovered if a client redraws, {most[KEPT]:.0%} if not",
    )
    return Figure(
        "audit-failures",
        figure,
        wrong,
        f"Left: of {result.params.n_users} users who report the same word again and again, the share whose true bit is the one that they show most often; means with 95% bands. Right: the exact loss between two words, as lines, "
        f"what an audit from outside proves, as points, each with a confidence of {result.params.confidence:.0%}, and dashed the promise. A client as stated stays below the promise of its permanent response for ever.",
        f"Two panels against the reports of a user, {span(wrong.n_reports)}, on a log axis. Left, the share of users recovered: "
        f"{curves(told, 'case', 'n_reports', 'mean')}. Right, the loss epsilon on a log axis, exact: "
        f"{curves(wrong, 'case', 'n_reports', 'loss')}; a dashed line marks the promised {short(wrong.promised.iloc[0])}, and the points of "
        "the audits lie at or below their lines.",
    )


@house
def digits(result: Result[Params]) -> Figure:
    """Binary digits after the point of noisy counts between 0 and 1."""
    rows = part(result.table, "digits")
    figure, ax = canvas(7.0, 3.6)
    for number, count in enumerate((0, 1)):
        line = rows[(rows["count"] == count) & (rows.digits >= 45)]
        half = 1.96 * np.sqrt(line.share * (1 - line.share) / line.inside)
        look = {"color": PALETTE[number], "hatch": ("", "///")[number], "capsize": 2, "error_kw": {"linewidth": 0.8}}
        ax.bar(line.digits + 0.4 * (number - 0.5), line.share, 0.4, yerr=half, label=f"count {count}", **look)
    ax.axvline(53.5, **THEORY)
    ax.set_xticks(range(46, 63, 2))
    ax.set(xlabel="binary digits after the point", ylabel="share of outputs in (0, 1)")
    ax.legend(loc="upper right")
    finer = f"{result.values['share_finer']:.0%} have digits that no noisy count of 1 can have"
    headline(figure, f"Of the noisy counts of 0 that fall between 0 and 1, {finer}")
    return Figure(
        "audit-digits",
        figure,
        rows,
        "How many binary digits noisy counts between 0 and 1 have, with textbook Laplace noise of scale 1 in floating point, and 95% intervals. Right of the line only a count of 0 can be: one such output proves it.",
        "Bar chart of the share of outputs between 0 and 1 against the binary digits after the point, for a count of zero and a count of "
        f"one. The bars of a count of one end at {_most_digits(rows, 1)} digits, at the dashed line; those of a count of zero go on to "
        f"{_most_digits(rows, 0)}.",
    )


def _most_digits(rows: pd.DataFrame, count: int) -> int:
    """The most binary digits that any output of `count` has."""
    return int(rows[(rows["count"] == count) & (rows.share > 0)].digits.max())
