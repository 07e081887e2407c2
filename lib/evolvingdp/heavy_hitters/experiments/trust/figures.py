"""The ladder of trust as one figure."""

from __future__ import annotations

from evolvingdp.experiment import Figure, Result
from evolvingdp.experiment.describe import curves, span
from evolvingdp.experiment.style import MARKERS, PALETTE, THEORY, band, canvas, headline, house, names_beside
from evolvingdp.heavy_hitters.experiments.trust.params import Params
from evolvingdp.heavy_hitters.experiments.trust.rungs import RUNGS
from evolvingdp.heavy_hitters.experiments.trust.tables import summary


@house
def ladder(result: Result[Params]) -> Figure:
    """Words found against the central epsilon, a line for each rung."""
    rows, params = summary(result.table), result.params
    figure, ax = canvas(8.0, 4.4)
    colours, ends = dict(zip(RUNGS, PALETTE, strict=False)), {}
    for number, rung in enumerate(RUNGS):
        line = rows[rows.rung == rung]
        look = {"color": colours[rung], "marker": MARKERS[number]}
        band(ax, line.epsilon, line.words, line.words_sd, line.runs, look, rung)
        ends[rung] = float(line.words.iloc[-1])
    distinct = float(result.table.distinct.mean())
    ax.axhline(distinct, **THEORY)
    ax.set(xlabel=r"central $\epsilon$", ylabel="words found", xscale="log", yscale="log", ylim=(1, 2 * distinct))
    names_beside(ax, ends, colours)
    least, *_, most = ends
    headline(figure, f"At the largest epsilon {most} finds {ends[most]:,.0f} words where {least} finds {ends[least]:,.0f}")
    return Figure(
        "hh-trust-ladder",
        figure,
        rows.assign(rung=rows.rung.astype(str)),
        f"What each step of trust buys: words found on Brown, $n$ = {params.n_users:,}, at the same central guarantee "
        f"($\\epsilon$, {params.delta:g}); nobody, servers and curator need no $\\delta$. A shuffled report has an $\\epsilon$ of 10 at most. Thresholds let one word that nobody holds pass. Mean over "
        f"{params.repetitions} runs with 95% bands; dashed: all words that are held.",
        f"Five lines on logarithmic axes, words found against epsilon, {span(rows.epsilon)}: {curves(rows, 'rung', 'epsilon', 'words')}. "
        f"A dashed line stands at all {distinct:,.0f} words.",
    )
