"""The summary of a sweep: one HTML file that asks nobody for anything, with the notebook's main metric over the grid."""

from __future__ import annotations

import html
import io
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Canvas
from scipy import special

from evolvingdp.experiment import Metric, Params, style
from evolvingdp.publish.sources.project import metric_of, params_of
from evolvingdp.publish.sweeping.dealing import Failure
from evolvingdp.publish.sweeping.grid import Sweep

CURVES, PANELS = 8, 6  # as many as a reader can tell apart; the table has all
_NOTHING = {"Creator": None, "Date": None, "Format": None, "Type": None}
_STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 1rem auto; padding: 0 1rem;
  overflow-wrap: anywhere; }
figure { margin: 1rem 0; } figure svg { width: 100%; height: auto; background: white; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #8888; padding: .2rem .45rem; text-align: right; vertical-align: bottom; }
th { border-bottom-width: 2px; } th, td { overflow-wrap: normal; } td:first-child, th:first-child { text-align: left; }
div.wide { overflow-x: auto; } pre { white-space: pre-wrap; font-size: .85rem; }
"""


def told(failure: Failure) -> str:
    return f"{failure.command}\n{failure.reason}"


def summary(sweep: Sweep, values: pd.DataFrame) -> pd.DataFrame:
    """A row per point of the grid: mean of the metric over its runs, half the width of the mean's 95% interval, runs."""
    names = [f"param_{name}" for name in sweep.grid]
    grouped = values.groupby(names, sort=False)[metric_of(sweep.notebook).name]
    runs = grouped.count()
    half = special.stdtrit(np.maximum(runs - 1, 1), 0.975) * grouped.std() / np.sqrt(runs)  # nan for a single run
    frame = pd.DataFrame({"mean": grouped.mean(), "half": half, "sd": grouped.std(), "runs": runs}).reset_index()
    return frame.rename(columns=dict(zip(names, sweep.grid, strict=True)))


def verdicts(claims: pd.DataFrame) -> pd.DataFrame:
    """Claims that do not hold at every point, and at how many they do."""
    grouped = claims.groupby("claim", sort=False).holds.agg(["sum", "size"])
    short = grouped[grouped["sum"] < grouped["size"]]
    return pd.DataFrame({"claim": short.index, "holds at": [f"{a} of {b}" for a, b in short.to_numpy()]})


def axes_of(frame: pd.DataFrame, grid: dict[str, list[Any]]) -> list[str]:
    """The parameters in the order x axis, curves, panels: numbers before words, many values before few."""
    return sorted(grid, key=lambda name: (not pd.api.types.is_numeric_dtype(frame[name]), -len(grid[name])))


@style.house
def figure(frame: pd.DataFrame, grid: dict[str, list[Any]], metric: Metric) -> str:
    """The metric over the grid as SVG: x the longest numeric axis, curves the next one, panels the others."""
    x, *others = axes_of(frame, grid)
    panels = list(frame.groupby(others[1:], sort=False))[:PANELS] if others[1:] else [((), frame)]
    canvas = Canvas(figsize=(5.0, 0.6 + 2.8 * len(panels)))
    numeric = pd.api.types.is_numeric_dtype(frame[x])
    for ax, (setting, panel) in zip(canvas.subplots(len(panels), 1, squeeze=False)[:, 0], panels, strict=True):
        curves = list(panel.groupby(others[0], sort=False))[:CURVES] if others else [("", panel)]
        for place, (value, curve) in enumerate(curves):
            curve = curve.sort_values(x) if numeric else curve
            look = {"color": style.PALETTE[place % len(style.PALETTE)], "marker": style.MARKERS[place % len(style.MARKERS)]}
            at = curve[x] if numeric else [_text(entry) for entry in curve[x]]
            label = f"{others[0]} = {_text(value)}" if others else metric.name
            style.band(ax, at, curve["mean"], curve.sd, curve.runs, look, label)
        ax.set_title(", ".join(f"{name} = {_text(value)}" for name, value in zip(others[1:], setting, strict=True)))
        ax.set(xlabel=x, ylabel=metric.unit or metric.name)
        if numeric and _wide(frame[x], 20):
            ax.set_xscale("log")
        if _wide(frame["mean"], 30):
            ax.set_yscale("log")
        if others:
            ax.legend()
    drawn = io.StringIO()
    canvas.savefig(drawn, format="svg", metadata=_NOTHING)
    return drawn.getvalue()[drawn.getvalue().index("<svg") :]


def _wide(values: pd.Series, ratio: float) -> bool:
    return bool(values.min() > 0 and values.max() > ratio * values.min())


def page(sweep: Sweep, values: pd.DataFrame, claims: pd.DataFrame, failures: list[Failure], record: dict[str, str]) -> str:
    """The whole file."""
    metric, frame = metric_of(sweep.notebook), summary(sweep, values)
    points = len(sweep.settings) * len(sweep.seeds)
    unit, runs = f" ({metric.unit})" if metric.unit else "", len(sweep.seeds)
    drawing = figure(frame, sweep.grid, metric).replace("<svg ", f'<svg role="img" aria-label="{_alt(sweep, frame)}" ', 1)
    short, missed = verdicts(claims), "".join(f"<pre>{html.escape(told(failure))}</pre>" for failure in failures)
    parts = [
        f"<h1>Sweep of {html.escape(sweep.notebook)}</h1>",
        f"<p>{html.escape(_sentence(metric.meaning + unit))}; {metric.better} is better.",
        f"{len(values)} of {points} points.</p>",
        f"<figure>{drawing}<figcaption>{html.escape(_caption(sweep, frame, runs))}</figcaption></figure>",
        "<h2>The metric over the grid</h2>" + _html(_shown(frame, sweep.grid)),
        "<h2>Swept parameters</h2>" + _html(_meanings(params_of(sweep.notebook), sweep)),
        "<h2>Claims that do not hold at every point</h2>"
        + (_html(short) if len(short) else "<p>All claims hold at all points.</p>"),
        f"<h2>Points that failed</h2>{missed}<p>The same command tries them again.</p>" if failures else "",
        f"<h2>Where it comes from</h2><pre>{html.escape(sweep.command)}</pre>",
        "<p>" + ", ".join(f"{name} {html.escape(_short(name, value))}" for name, value in record.items()) + "</p>",
        "<p>Files: "
        + ", ".join(f'<a href="{name}">{name}</a>' for name in ("sweep.parquet", "values.parquet", "claims.parquet"))
        + "; each row has its point, seed and parameters, and sweep.parquet the command that computes it again.</p>",
    ]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    title = f"<title>Sweep of {html.escape(sweep.notebook)}</title><style>{_STYLE}</style>"
    body = "\n".join(part for part in parts if part)
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}{title}</head><body><main>\n{body}\n</main></body></html>\n'


def _caption(sweep: Sweep, frame: pd.DataFrame, runs: int) -> str:
    _, *others = axes_of(frame, sweep.grid)
    band = f"Mean over {runs} seeds with its 95% band." if runs > 1 else "A single seed: no band."
    sizes = [len(sweep.grid[name]) for name in others]
    cut = (sizes and sizes[0] > CURVES) or np.prod(sizes[1:]) > PANELS
    return band + (" Not all of the grid is drawn; the table has all of it." if cut else "")


def _alt(sweep: Sweep, frame: pd.DataFrame) -> str:
    """What the figure shows, in words: over what, and where the metric is least and largest."""
    low, high = frame.iloc[int(frame["mean"].argmin())], frame.iloc[int(frame["mean"].argmax())]

    def where(row: Any) -> str:
        return ", ".join(f"{name} = {_text(row[name])}" for name in sweep.grid)

    metric = metric_of(sweep.notebook)
    words = (
        f"{_sentence(metric.meaning)} against {' and '.join(sweep.grid)}: least, {low['mean']:.3g}, at {where(low)}; "
        f"largest, {high['mean']:.3g}, at {where(high)}."
    )
    return html.escape(words, quote=True)


def _shown(frame: pd.DataFrame, grid: dict[str, list[Any]]) -> pd.DataFrame:
    band = ["" if np.isnan(half) else f"± {half:.2g}" for half in frame.half]
    columns = {name: [_text(value) for value in frame[name]] for name in grid}
    return pd.DataFrame({**columns, "mean": [f"{mean:.4g}" for mean in frame["mean"]], "95%": band, "runs": frame.runs})


def _meanings(model: type[Params], sweep: Sweep) -> pd.DataFrame:
    rows = [row for row in model.describe() if row["name"] in sweep.grid]
    return pd.DataFrame([{"name": row["name"], "meaning": row["meaning"], "unit": row["unit"]} for row in rows])


def _short(name: str, value: str) -> str:
    return value[:12] if name.endswith("_sha256") else value


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _html(table: pd.DataFrame) -> str:
    drawn: str = table.to_html(index=False, border=0, escape=True)
    return f'<div class="wide" tabindex="0">{drawn}</div>'
