"""Measured figures on dark pages and on phones: which drawing a page shows.

On a dark page an SVG has a twin whose colours keep their hue and change their lightness: what is black becomes nearly white,
and white the page's ground; what stands out from its neighbour by its lightness still does.  On a phone the drawing for a
print column stands in its place, whose letters can be read there.  What is not shown is not loaded.
"""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from docutils import nodes
from sphinx.application import Sphinx

_CONES = np.array(  # of linear RGB; OKLab, https://bottosson.github.io/posts/oklab
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LAB = np.array(  # of the cones' cube roots
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
_PHONE = "screen and (max-width: 36rem)"
_GROUND, _RANGE = 0.18, 0.75  # the lightness of the theme's #121212, and up to what letters have
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
_IMAGE = re.compile(r'<img (?P<before>[^>]*)src="(?P<folder>[^"]*_images/)(?P<name>[^"/]+)\.svg"(?P<after>[^>]*)>')


@cache
def colour(given: str) -> str:
    """#rrggbb on white as #rrggbb on the dark page."""
    rgb = np.array([int(given[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    lab = _LAB @ np.cbrt(_CONES @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4))
    lab[0] = _GROUND + _RANGE * max(1 - lab[0], 0.0) ** 0.6  # names in the colour of a line can be read, too
    linear = np.clip(np.linalg.solve(_CONES, np.linalg.solve(_LAB, lab) ** 3), 0, 1)
    rgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * part):02x}" for part in rgb)


def twin(svg: str) -> str:
    """matplotlib's `svg` for a dark page."""
    return _COLOUR.sub(lambda found: colour(found[0]), svg).replace("<svg ", f'<svg fill="{colour("#000000")}" ', 1)


def _add_twins(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    sources = {name: Path(app.srcdir) / path for path, name in app.builder.images.items()}
    folder = Path(app.outdir) / "_images"

    def drawn(image: re.Match[str]) -> str:
        name = image["name"]
        source = sources.get(f"{name}.svg")
        svg = source.read_text() if source else ""
        if source is None or "Matplotlib" not in svg[:1500]:
            return image[0]
        folder.mkdir(exist_ok=True)
        (folder / f"{name}-dark.svg").write_text(twin(svg))
        column = source.with_name(f"{source.stem}-column.svg")
        if column.exists():
            shutil.copyfile(column, folder / f"{name}-column.svg")
            (folder / f"{name}-column-dark.svg").write_text(twin(column.read_text()))

        def picture(mode: str, more: str = "") -> str:
            at = f"{image['folder']}{name}"
            shown = f'<img {image["before"]}src="{at}{mode}.svg"{more}{image["after"]}>'
            phone = f'<source media="{_PHONE}" srcset="{at}-column{mode}.svg">'
            return f"<picture>{phone}{shown}</picture>" if column.exists() else shown

        night = picture("-dark", ' loading="lazy"')
        return f'<span class="by-day">{picture("")}</span><span class="by-night">{night}</span>'

    if "body" in context:
        context["body"] = _IMAGE.sub(drawn, context["body"])


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", _add_twins)
