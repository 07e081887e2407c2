"""The picture of the landing page and of the README, drawn from the results at the size of a card.

    ```{cards}
    ```

draws book/results/card-<name>.svg for each of `CARDS`, so that what stands below it can show them.  A card has one
message, few marks and letters that are read on a phone; the figures behind it are on the pages that it leads to.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evolvingdp.book.bundle import image
from evolvingdp.book.checkout import Project
from evolvingdp.book.style import PALETTE, TRUTH, canvas, house

OURS = PALETTE[0]
SIZE = (3.6, 2.3)  # inches: letters of 11 points are 15 pixels high on a card


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


CARDS: dict[str, Callable[[Path, Any], None]] = {"words": words}


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
