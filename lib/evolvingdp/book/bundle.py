"""The files that go with a figure, for the web, for print and for another plot, and all of them as one zip.

The same result gives the same bytes: files carry no dates, and the zip has a fixed order and time.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure as Canvas

from evolvingdp.book import citing
from evolvingdp.book.files import pack
from evolvingdp.book.labels import spoken
from evolvingdp.book.result import Figure
from evolvingdp.book.style import INCHES, house

FORMATS = ("svg", "pdf", "png")
_DPI = 150  # of a PNG, and of what SVG and PDF keep as pixels
_NO_DATE: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}


def names(figure_id: str, *, column: bool = True) -> dict[str, str]:
    """What each file of a bundle is called on the page, and its name; `column`: whether there is a figure for print."""
    images = {kind.upper(): f"{figure_id}.{kind}" for kind in FORMATS}
    print_ = {f"PDF {INCHES:g} in": f"{figure_id}-column.pdf"} if column else {}
    return images | print_ | {"CSV": f"{figure_id}.csv", "JSON": f"{figure_id}.json", "ZIP": f"{figure_id}.zip"}


def write(folder: Path, figure: Figure, record: Mapping[str, Any], column: Canvas | None = None) -> bytes:
    """Write the bundle of `figure`, drawn for print as `column`, with its provenance `record`: the files of `names`, and in
    the zip BibTeX, too; returns the PNG."""
    words = {"figure": figure.id, "caption": figure.caption, "alt": figure.alt}
    with _laid_out(figure.canvas):
        files = {f"{figure.id}.{kind}": image(figure.canvas, kind) for kind in FORMATS}
    if column is not None:
        with _laid_out(column):
            files |= {f"{figure.id}-column.{kind}": image(column, kind) for kind in ("svg", "pdf")}
    files[f"{figure.id}.csv"] = figure.data.to_csv(index=False, lineterminator="\n").encode()
    files[f"{figure.id}.json"] = (json.dumps(words | dict(record), indent=1, allow_nan=False) + "\n").encode()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    extra = {f"{figure.id}.bib": citing.figure(figure.id, record).encode(), "README.txt": _readme(figure, record).encode()}
    (folder / f"{figure.id}.zip").write_bytes(zipped(files | extra))
    return files[f"{figure.id}.png"]


@contextmanager
def _laid_out(canvas: Canvas) -> Iterator[None]:
    """While it is open, `canvas` keeps the layout that it has now: every format would find the same one again."""
    engine = canvas.get_layout_engine()
    if engine is not None:
        house(engine.execute)(canvas)
    canvas.set_layout_engine("none")
    try:
        yield
    finally:
        canvas.set_layout_engine(engine)


def zipped(files: Mapping[str, bytes]) -> bytes:
    """A zip of `files` in the order of their names, without times."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            pack(archive, name, files[name])
    return buffer.getvalue()


@house
def image(canvas: Canvas, kind: str) -> bytes:
    """`canvas` as a file of the format `kind`."""
    buffer = io.BytesIO()
    canvas.savefig(buffer, format=kind, dpi=_DPI, metadata=_NO_DATE[kind])
    return buffer.getvalue()


def _readme(figure: Figure, record: Mapping[str, Any]) -> str:
    caption, alt = (" ".join(words.split()) for words in (spoken(figure.caption), figure.alt))
    return (
        f"{figure.id}\n\nCaption: {caption}\n\nAlternative text: {alt}\n\n"
        f"Computed by: {record['command']}\nat commit {record['commit']}, version {record['version']}\n\n"
        f"{figure.id}.svg, .pdf, .png: as on the page\n{figure.id}-column.svg, .pdf: drawn again for a phone "
        f"and for print, {INCHES:g} in wide\n"
        ".csv: the data that it shows; .json: all parameters and digests; .bib: how to cite it\n"
    )
