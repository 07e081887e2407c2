"""Figures in print: no label much below `LEAST` points, so a figure may be taller, broader than the text, or continued."""

from __future__ import annotations

import copy
import re

from bs4 import BeautifulSoup, Tag

LEAST = 6.0  # points
TEXT, BROAD = 493.0, 538.0  # width of the text and of a page between its margins (print.css), in points
USUAL, TALLEST = 290.0, 600.0  # a figure's height, in points: that of most, and what a page has beside the caption
SHORTEST = 120.0  # of the parts of a figure: a strip with an axis alone tells nothing

_SIZE = re.compile(r'<svg\b[^>]*?\b(width|height)="([\d.]+)pt"[^>]*?\b(width|height)="([\d.]+)pt"')
_LABEL = re.compile(r"translate\([-\d.]+ ([-\d.]+)\) scale\((0?\.\d+) -")  # matplotlib draws a text as paths of a size 100


def labels(svg: str) -> list[tuple[float, float]]:
    """The base line of each text of matplotlib's `svg`, from the top, and its size, both in points."""
    return [(float(line), 100 * float(scale)) for line, scale in _LABEL.findall(svg)]


def fit(image: Tag, svg: str) -> None:
    """Set the size of `image`, which shows `svg`; one that a page cannot hold becomes several, cut between labels."""
    size, texts = _SIZE.search(svg), labels(svg)
    if size is None or not texts:
        return
    by_name = {size[1]: float(size[2]), size[3]: float(size[4])}
    width, height = by_name["width"], by_name["height"]
    wanted = LEAST / min(points for _, points in texts)
    scale = min(max(wanted, USUAL / height), max(TEXT, min(BROAD, wanted * width)) / width, 1.0)
    image["class"] = "fitted broad" if scale * width > TEXT else "fitted"
    if scale * height <= TALLEST:
        image["style"] = f"width: {scale * width:.1f}pt !important"
        return
    start, parts = 0.0, BeautifulSoup("", "html.parser")
    while start < height:
        end = height
        if scale * (height - start) > TALLEST:
            end = _gap(texts, min(start + TALLEST / scale, height - SHORTEST / scale))
        part = parts.new_tag("div", attrs={"class": "slice", "style": f"height: {scale * (end - start):.1f}pt"})
        shown = copy.copy(image)
        shown["style"] = f"width: {scale * width:.1f}pt !important; margin-top: {-scale * start:.1f}pt"
        part.append(shown)
        image.insert_before(part)
        start = end
    image.decompose()


def _gap(texts: list[tuple[float, float]], end: float) -> float:
    """The lowest place above `end` that cuts no text."""
    taken = sorted((line - points, line + 0.3 * points) for line, points in texts)
    for top, bottom in reversed(taken):
        if top < end < bottom:
            end = top
    return end
