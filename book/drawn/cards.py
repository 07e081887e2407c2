"""The pictures of the landing page, drawn from the results at the size of a card.

    ```{cards}
    ```

draws book/results/card-<name>.svg for each of `CARDS`, so that what stands below it can show them.  A card has one
message, few marks and letters that are read on a phone; the figures behind it are on the pages that it leads to.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evolvingdp.book.bundle import image
from evolvingdp.book.checkout import Project
from evolvingdp.book.style import PALETTE, TRUTH, canvas, house

OURS, THEIRS = PALETTE[0], "0.62"
SIZE = (3.6, 2.3)  # inches: letters of 11 points are 15 pixels high on a card


def _values(results: Path, notebook: str) -> dict[str, Any]:
    return dict(json.loads((results / notebook / "values.json").read_text()))


def _rows(results: Path, file: str) -> list[dict[str, str]]:
    with (results / f"{file}.csv").open(newline="") as table:
        return list(csv.DictReader(table))


def unpadded(word: str) -> str:
    """A word of the paper's six letters without the copies of its last letter that fill it up: 'theeee' is 'the'."""
    return word[: len(word.rstrip(word[-1])) + 1]


def words(results: Path, ax: Any) -> None:
    """The most frequent words: what was estimated, its interval, the truth."""
    rows = _rows(results, "heavy_hitters/treehist/hh-treehist-words")[:6]
    for place, row in enumerate(rows):
        truth, estimate, low, high = (float(row[name]) / 1000 for name in ("truth", "estimate", "low", "high"))
        ax.plot([low, high], [place, place], color=OURS, linewidth=3)
        ax.plot(estimate, place, "o", color=OURS, label="private" if not place else None)
        ax.plot(truth, place, "|", color=TRUTH, markersize=14, label="true" if not place else None)
    ax.set_yticks(range(len(rows)), [unpadded(row["word"]) for row in rows])
    ax.invert_yaxis()
    ax.set_xlabel("users, in thousands")
    ax.legend(loc="lower right")


def follow(results: Path, ax: Any) -> None:
    """A mean over many epochs: the truth, recomputed at every epoch, and followed at the price of its changes."""
    rows = _rows(results, "evolving/thresh/ev-thresh-time")
    epochs = [int(row["epoch"]) for row in rows]
    ax.plot(epochs, [float(row["optimal"]) for row in rows], ".", color=THEIRS, markersize=2, label="asked every time")
    ax.plot(epochs, [float(row["thresh"]) for row in rows], color=OURS, linewidth=3, label="asked on a change")
    ax.plot(epochs, [float(row["truth"]) for row in rows], "--", color=TRUTH, linewidth=1.2, label="true")
    ax.set(xlabel="epoch", ylabel="mean", ylim=(0, 1.45), yticks=(0, 0.5, 1))
    ax.legend(loc="upper right", ncols=2, columnspacing=0.8, handlelength=1, markerscale=4)


def _ladder(ax: Any, rungs: dict[str, float], form: str, ours: str, label: str, *, log: bool = False) -> None:
    """A number a line, ours in colour: bars from zero, or points where only ratios count."""
    for place, (name, size) in enumerate(rungs.items()):
        colour = OURS if name == ours else THEIRS
        if log:
            ax.axhline(place, color="0.9", linewidth=1, zorder=0)
            ax.plot(size, place, "o", color=colour, markersize=10)
        else:
            ax.barh(place, size, color=colour, height=0.6)
        ax.annotate(format(size, form), (size, place), (8 if log else 3, 1), textcoords="offset points", va="center")
    ax.set_yticks(range(len(rungs)), rungs)
    ax.invert_yaxis()
    ax.grid(visible=False)
    sizes = rungs.values()
    ax.set(xlabel=label, xscale="log" if log else "linear")
    ax.set_xlim(min(sizes) / 3 if log else 0, max(sizes) * (20 if log else 1.25))
    ax.tick_params(axis="x", which="both", bottom=False, labelbottom=False)
    ax.spines["bottom"].set_visible(False)


def found(results: Path, ax: Any) -> None:
    """How good the list of frequent words is, from the protocol as it was run to the best."""
    values = _values(results, "heavy_hitters/treehist")
    ladder = {"as run in the paper": "as_run", "its Algorithm 3": "alg3_cut", "TreeHist, ours": "best", "PEM": "pem"}
    scores = {name: values[f"brown_{key}_f1"] for name, key in ladder.items()}
    _ladder(ax, scores, ".2f", "TreeHist, ours", "F1 of the words listed")


def mean(results: Path, ax: Any) -> None:
    """The error of a running mean, from the paper's algorithm to ours."""
    values = _values(results, "continual_mean/past_the_paper")
    ladder = {"Algorithm 6": "full", "one tree": "naive", "with a cap": "cap", "recommended": "recommended"}
    errors = {name: values[f"random_{key}"] for name, key in ladder.items()}
    _ladder(ax, errors, ".2g", "recommended", "error (log scale)", log=True)


def noise(results: Path, ax: Any) -> None:
    """The noise that one promise takes, by five proofs."""
    values = _values(results, "sparse_vector/threshold_monitor")
    ladder = {"the theorem": "theorem", "its proof": "tight_proof", "Rényi bound": "renyi", "exact": "exact"}
    scales = {name: values[f"{key}_3"] for name, key in ladder.items()}
    _ladder(ax, scales, ",.0f", "exact", "noise (log scale)", log=True)


def audit(results: Path, ax: Any) -> None:
    """Of how many users a wrong and a right client give the value away."""
    values = _values(results, "audit/verified_privacy")
    shares = {"drawn again": values["recovered_redrawn"], "drawn once": values["recovered_kept"]}
    _ladder(ax, shares, ".0%", "drawn once", f"given away by {values['most_reports']:,} reports")


CARDS: dict[str, Callable[[Path, Any], None]] = {
    "words": words,
    "found": found,
    "follow": follow,
    "mean": mean,
    "noise": noise,
    "audit": audit,
}


def written(root: Path, *_: object) -> str:
    """Draw all cards; nothing stands where they are drawn."""
    for name in CARDS:
        (Project(root).results / f"card-{name}.svg").write_bytes(draw(Project(root).results, name))
    return ""


@house
def draw(results: Path, name: str) -> bytes:
    """The card `name` as SVG; raises OSError, KeyError or ValueError where the results lack its numbers."""
    figure, ax = canvas(*SIZE)
    CARDS[name](results, ax)
    return image(figure, "svg")
