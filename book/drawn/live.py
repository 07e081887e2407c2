"""Live pictures: a chapter's opening, a drawing with a slider, each of whose stops is computed when the book is built.

    ```{live} evolving
    ```

A picture is a function that draws one stop and says it in a sentence.  All stops are drawn; marks that differ between them
are parts, and the page holds what each part is at each stop.  `book/_static/explorers.js` puts it in and computes nothing.
Without a script, and on paper, the middle stop stands there, and a folded table says all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path

from drawn import live_pictures
from drawn.svg import Drawing

_MARK = re.compile(r'<(?P<tag>\w+)(?P<attributes>(?: [\w-]+="[^"]*")*)>(?P<text>[^<]*)</')
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')


@dataclass(frozen=True)
class Live:
    """`draw` gets the book's folder and a place among `stops`, which say what the slider says there."""

    label: str
    stops: tuple[str, ...]
    draw: Callable[[Path, int], tuple[Drawing, str]]


LIVE = {
    "evolving": Live("Answers of each user", live_pictures.ANSWERS, live_pictures.answers),
    "heavy_hitters": Live("Users", live_pictures.CROWDS, live_pictures.words),
    "continual_mean": Live("Readings of a user that count", live_pictures.COUNTED, live_pictures.readings),
    "sparse_vector": Live("A user may take part in", live_pictures.TAKEN, live_pictures.alarms),
}


def parts(drawings: list[Drawing]) -> tuple[list[int], list[list[tuple[dict[str, str], str]]]]:
    """Which marks differ between `drawings`, and for each drawing what they are there: attributes and text.

    Raises ValueError unless all have the same marks in the same order.
    """
    marks = [[found for mark in drawing.marks if (found := _MARK.match(mark))] for drawing in drawings]
    if len({tuple(mark["tag"] for mark in each) for each in marks}) > 1:
        raise ValueError("the stops of a live picture must have the same marks")
    differ = [place for place, same in enumerate(zip(*marks, strict=True)) if len({mark[0] for mark in same}) > 1]
    told = [
        [(dict(_ATTRIBUTE.findall(each[place]["attributes"])), unescape(each[place]["text"])) for place in differ]
        for each in marks
    ]
    return differ, told


def page(root: Path, name: str, *_: object) -> str:
    """The live picture as HTML; raises KeyError for a name that is none's."""
    live = LIVE[name]
    drawings, sentences = zip(*(live.draw(root, place) for place in range(len(live.stops))), strict=True)
    differ, told = parts(list(drawings))
    start = len(live.stops) // 2
    shown: Drawing = drawings[start]
    for place in differ:
        shown.marks[place] = shown.marks[place].replace(" ", " data-part ", 1)
    rows = "".join(
        f'<tr><th scope="row">{escape(stop)}</th><td>{escape(said)}</td></tr>'
        for stop, said in zip(live.stops, sentences, strict=True)
    )
    frames = [
        {"stop": stop, "says": said, "parts": part} for stop, said, part in zip(live.stops, sentences, told, strict=True)
    ]
    held = json.dumps(frames, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    label, stop = escape(live.label), escape(live.stops[start])
    return (
        f'<div class="live" id="live-{name}"><label hidden>{label} <input type="range" min="0" max="{len(frames) - 1}" '
        f'step="1" value="{start}" autocomplete="off" aria-valuetext="{stop}"><output>{stop}</output></label>'
        f'{shown.svg(f"live-{name}")}<p class="says" aria-live="polite">{escape(sentences[start])}</p>'
        f'<details><summary>All stops in words</summary><table><thead><tr><th scope="col">{label}</th>'
        f'<th scope="col">what the picture shows</th></tr></thead><tbody>{rows}</tbody></table></details>'
        f'<script type="application/json">{held}</script></div>'
    )
