"""Running sums: error over the stream, and how it grows with length and branching."""

from __future__ import annotations

from typing import Any

import pandas as pd

from evolvingdp.continual_mean.experiments.binary_tree.params import Params
from evolvingdp.continual_mean.experiments.binary_tree.tables import (
    ANYTIME,
    APPROXIMATE,
    BALANCED,
    BANDED,
    BANDED_BEST,
    BINARY,
    BOUND,
    BUFFERED,
    FAR,
    GAUSSIAN,
    GAUSSIAN_HONAKER,
    HONAKER,
    PER_STEP,
    PURE,
    ROOT,
    WIDE,
    branchings,
    growth,
    over_time,
    separated,
)
from evolvingdp.experiment import Figure, Result
from evolvingdp.experiment.describe import curves, short, span
from evolvingdp.experiment.style import MARKERS, PALETTE, THEORY, canvas, headline, house

LOOKS: dict[str, Any] = {name: {"color": PALETTE[place % 10]} for place, name in enumerate((*PURE, *APPROXIMATE))}
LOOKS |= {
    FAR: {"color": PALETTE[4]},
    ANYTIME: {"color": "0.35"},
    BANDED: {"color": PALETTE[2]},
    BANDED_BEST: {"color": "black"},
}
LOOKS |= {"plain, pure": LOOKS[BINARY], "plain, Gaussian": LOOKS[GAUSSIAN]}
LOOKS |= {"Honaker, pure": LOOKS[HONAKER], "Honaker, Gaussian": LOOKS[GAUSSIAN_HONAKER]}


@house
def errors(result: Result[Params]) -> Figure:
    """Root mean square error of the running sum against the step, pure and approximate, on the exact curves."""
    frame = over_time(result.table)
    frame_per_step = f"{frame[frame.mechanism == PER_STEP].exact.iloc[0]:,.0f}"
    frame = frame[frame.mechanism != PER_STEP]  # orders of magnitude above; it is in the table
    figure, axes = canvas(9.5, 5.2, 2, sharey=True)
    for ax, names, title in zip(axes, (PURE[1:], APPROXIMATE), ("pure", r"$(\epsilon, \delta)$"), strict=True):
        for name in names:
            mine = frame[frame.mechanism == name]
            marker = MARKERS[names.index(name)]
            ax.fill_between(mine.step, mine.low, mine.high, alpha=0.25, linewidth=0, **LOOKS[name])
            ax.plot(mine.step, mine.exact, **THEORY)
            ax.plot(mine.step, mine.rmse, marker, markersize=4, label=name, **LOOKS[name])
        ax.set(xscale="log", yscale="log", xlabel="step $t$", title=title)
    axes[0].set_ylim(frame.exact.min() / 2.5, frame.exact.max() * 1.5)
    last = frame[frame.step == frame.step.max()].set_index("mechanism").exact
    for ax in axes:
        ax.plot([], [], label="exact", **THEORY)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize="x-small")
    headline(
        figure,
        f"At the end “{last.idxmin()}” has the least error, {short(last.min() / last[BINARY])} times pure Algorithm 1's",
    )
    axes[0].set_ylabel("error of the running sum (RMSE)")
    params = result.params
    return Figure(
        "cm-tree-error",
        figure,
        frame,
        f"Error of all running sums of {params.horizon:,} bits at $\\epsilon$ = {params.epsilon:g} (right: $\\delta$ = {params.delta:g}), each "
        f"element one person's. Noise at every step, {frame_per_step} at all of them, is not drawn. Points: {params.repetitions} runs, in bins of steps, with 95% bands; dashed: the exact error.",
        "Two panels of the error of the running sum against the step, on log axes; points lie on dashed curves of the exact error. From the "
        f"first steps to the last, the exact error goes for {curves(frame, 'mechanism', 'step', 'exact')}: the first "
        f"{len(PURE) - 1}, left, are pure, the others, right, approximate.",
    )


@house
def designs(result: Result[Params]) -> Figure:
    """Exact errors: against the length of the stream, against a person's elements, and against the branching of the tree."""
    lengths, wide, apart = growth(result.params), branchings(result.params), separated(result.params)
    figure, (left, middle, right) = canvas(10.0, 5.6, 3)
    for place, name in enumerate((BINARY, WIDE, HONAKER, BALANCED, GAUSSIAN, ROOT, BUFFERED, FAR, ANYTIME)):
        mine = lengths[lengths.mechanism == name]
        left.plot(mine.horizon, mine.error, marker=MARKERS[place % len(MARKERS)], markersize=4, label=name, **LOOKS[name])
    left.get_lines()[-3].set_linewidth(2.8)  # the eight buffers, which the book recommends
    bound = lengths[lengths.mechanism == BOUND]
    left.plot(bound.horizon, bound.error, label="lower bound for Gaussian noise", **THEORY)
    left.set(xscale="log", xlabel="length of the stream $T$", ylabel="error over the stream (RMSE), exact")
    left.set_title("longer streams")
    for place, (kind, mine) in enumerate(apart.groupby("mechanism", sort=False)):
        middle.plot(mine.uses, mine.error, marker=MARKERS[place], markersize=4, label=kind, **LOOKS[kind])
    middle.get_lines()[2].set(linewidth=4, alpha=0.5, zorder=1)  # the buffers lie under the square root
    middle.set(
        xscale="log", yscale="log", xlabel="elements of a person", ylabel="the same (log scale)", title="elements far apart"
    )
    for place, (kind, mine) in enumerate(wide.groupby("kind", sort=False)):
        right.plot(mine.branching, mine.error, marker=MARKERS[place], markersize=4, label=kind, **LOOKS[kind])
    ticks = list(result.params.branching_sweep)
    right.set(xscale="log", xlabel="branching $b$", title="wider trees")
    right.set_xticks(ticks, [str(tick) for tick in ticks])
    right.minorticks_off()
    for ax in (left, middle, right):
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), fontsize="x-small")
    last = lengths[lengths.horizon == lengths.horizon.max()].set_index("mechanism").error
    headline(
        figure,
        f"Eight buffers have {last[BUFFERED] / last[BOUND]:.2f} times the error that no factorization with Gaussian noise can go below",
    )
    panels = {"length": lengths, "apart": apart, "branching": wide}
    data = pd.concat([panel.assign(panel=name) for name, panel in panels.items()], ignore_index=True)
    params = result.params
    return Figure(
        "cm-tree-designs",
        figure,
        data,
        "Exact root mean square error over all steps (no simulation, hence no band). Left: against the length of the stream; dashed: what "
        "no factorization with Gaussian noise of this guarantee can fall below. Middle: "
        f"several elements of a person in {apart.horizon.iloc[0]:,} steps, as far apart as so many can be, all covered by the guarantee; Gaussian noise. Right: "
        f"against the branching of the tree, at $T$ = {params.horizon:,}. $\\epsilon$ = {params.epsilon:g}, $\\delta$ = {params.delta:g}.",
        f"Three panels of the exact error. Left, lines against the length of the stream, {span(lengths.horizon)} steps on a log axis: "
        f"{curves(lengths, 'mechanism', 'horizon', 'error')}. Middle, lines against "
        f"the elements of a person, {span(apart.uses)}: {curves(apart, 'mechanism', 'uses', 'error')}. Right, lines against the branching, {span(wide.branching)}: "
        f"{curves(wide, 'kind', 'branching', 'error')}, with the least error at a branching of {_best_branchings(wide)}.",
    )


def _best_branchings(wide: pd.DataFrame) -> str:
    """For every kind of tree the branching of least error."""
    best = wide.loc[wide.groupby("kind", sort=False).error.idxmin()]
    return ", ".join(f"{branching} ({kind})" for branching, kind in zip(best.branching, best.kind, strict=True)).replace(
        "$", ""
    )
