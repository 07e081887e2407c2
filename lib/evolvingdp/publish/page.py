"""What a notebook shows: figures, tables, claims and provenance, and the files that go with them.

Each output carries two forms: one that Jupyter shows (PNG, plain text), and MyST source under the type `MYST`, which
`postprocess.page` turns into a markdown cell of the book's page.  Files are written where `evolvingdp run` says (the
environment variable `RESULTS`); papermill or Jupyter by hand only shows.
"""

from __future__ import annotations

import base64
import io
import json
import os
import time
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
from IPython.display import display
from matplotlib.figure import Figure as Canvas

from evolvingdp.core.experiment import Figure, Params, Result
from evolvingdp.core.style import house
from evolvingdp.publish import provenance

MYST = "text/x-myst"
RESULTS = "EVOLVINGDP_RESULTS"
FORMATS = ("svg", "pdf", "png")
_NO_DATE: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}


class Page:
    """The published face of one `Result`; `close` comes last and writes the machine-readable files."""

    def __init__(self, result: Result[Params]) -> None:
        self.result = result
        self.folder = Path(os.environ[RESULTS]) if RESULTS in os.environ else None

    def figure(self, figure: Figure) -> None:
        """Show `figure` with caption and alt text, and write its bundle: SVG, PDF, PNG, CSV, JSON."""
        self._write_bundle(figure)
        plain = {"image/png": base64.b64encode(_image(figure.canvas, "png")).decode(), "text/plain": figure.caption}
        _show(plain, self._figure_myst(figure))

    def table(self, table: pd.DataFrame) -> None:
        """Show a small table; numbers are formatted by the caller."""
        markdown = table.replace(r"\|", r"\\|", regex=True).to_markdown(index=False, disable_numparse=True)
        _show({"text/plain": markdown}, markdown)

    def claims(self) -> None:
        """Show every claim with its value, its bound and its verdict."""
        rows = [
            {
                "claim": claim.claim,
                "measured": f"{claim.value:.4g}",
                "bound": _bound(claim.relation, claim.bound),
                "verdict": "holds" if claim.holds else "**does not hold**",
            }
            for claim in self.result.claims
        ]
        self.table(pd.DataFrame(rows))

    def close(self) -> None:
        """Write results.csv, claims.json, values.json and provenance.json; show how to compute this page again."""
        record = self._record()
        if self.folder is not None:
            self.result.table.to_csv(self.folder / "results.csv", index=False, lineterminator="\n")
            _write_json(self.folder / "claims.json", [claim.as_dict() for claim in self.result.claims])
            _write_json(self.folder / "values.json", self.result.values)
            _write_json(self.folder / "provenance.json", record)
        name = self.result.notebook.split("/")[-1]
        files = ", ".join(f"[{file}]({name}/{file})" for file in ("results.csv", "claims.json", "provenance.json"))
        myst = (
            f"Computed by\n\n```bash\n{record['command']}\n```\n\n"
            f"at commit `{record['commit']}`, version {record['version']}, "
            f"in {record['run_seconds']:.0f} s.  All numbers: {files}."
        )
        _show({"text/plain": record["command"]}, myst)

    def _record(self) -> dict[str, Any]:
        return provenance.record(self.result, time.time() - psutil.Process().create_time())

    def _write_bundle(self, figure: Figure) -> None:
        if self.folder is None:
            return
        for kind in FORMATS:
            (self.folder / f"{figure.id}.{kind}").write_bytes(_image(figure.canvas, kind))
        figure.data.to_csv(self.folder / f"{figure.id}.csv", index=False, lineterminator="\n")
        words = {"figure": figure.id, "caption": figure.caption, "alt": figure.alt}
        _write_json(self.folder / f"{figure.id}.json", words | self._record())

    def _figure_myst(self, figure: Figure) -> str:
        name = self.result.notebook.split("/")[-1]
        links = " · ".join(f"[{kind.upper()}]({name}/{figure.id}.{kind})" for kind in (*FORMATS, "csv", "json"))
        alt = " ".join(figure.alt.split())
        return (
            f"```{{figure}} {name}/{figure.id}.svg\n:name: {figure.id}\n:alt: {alt}\n:width: 100%\n\n"
            f"{figure.caption}\n```\n\n"
            f"{links} (`{figure.id}`)\n\n"
            f":::{{dropdown}} Compute this figure again\n```bash\n{provenance.command(self.result)}\n```\n:::\n"
        )


@house
def _image(canvas: Canvas, kind: str) -> bytes:
    buffer = io.BytesIO()
    canvas.savefig(buffer, format=kind, dpi=150, metadata=_NO_DATE[kind])
    return buffer.getvalue()


def _bound(relation: str, bound: float | tuple[float, float]) -> str:
    if isinstance(bound, tuple):
        return f"{bound[0]:.4g} to {bound[1]:.4g}"
    return f"{'at most' if relation == '<=' else 'at least'} {bound:.4g}"


def _show(plain: dict[str, str], myst: str) -> None:
    display(plain | {MYST: myst}, raw=True)


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
