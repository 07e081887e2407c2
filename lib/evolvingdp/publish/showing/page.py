"""What a notebook shows: figures, tables, claims and provenance, and the files that go with them.

Each output carries two forms: one that Jupyter shows (PNG, plain text), and MyST source under the type `MYST`, which
`postprocess.page` turns into a markdown cell of the book's page.  Files are written where `evolvingdp run` says (the
environment variable `RESULTS`); papermill or Jupyter by hand only shows.
"""

from __future__ import annotations

import base64
import json
import os
import time
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
from IPython.display import display

from evolvingdp.experiment import Figure, Params, Result
from evolvingdp.publish.showing import bundle, citing, latex
from evolvingdp.publish.sources import provenance

MYST = "text/x-myst"
RESULTS = "EVOLVINGDP_RESULTS"


class Page:
    """The published face of one `Result`; `close` comes last and writes the machine-readable files."""

    def __init__(self, result: Result[Params]) -> None:
        self.result = result
        self.folder = Path(os.environ[RESULTS]) if RESULTS in os.environ else None
        self.name = result.notebook.split("/")[-1]
        self._tables = 0

    def figure(self, figure: Figure) -> None:
        """Show `figure` with caption and alt text, and write its bundle: SVG, PDFs, PNG, CSV, JSON, and a zip of all."""
        record = self.record
        png = bundle.image(figure.canvas, "png") if self.folder is None else bundle.write(self.folder, figure, record)
        plain = {"image/png": base64.b64encode(png).decode(), "text/plain": figure.caption}
        _show(plain, self._figure_myst(figure, record))

    def table(self, table: pd.DataFrame) -> None:
        """Show a small table and write it as LaTeX; cells are Markdown, numbers are formatted by the caller.

        Its file is <notebook>-table-<k>.tex: the k-th table of the notebook.
        """
        self._tables += 1
        self._table(table, f"{self.name}-table-{self._tables}", f"Table {self._tables} of `{self.result.notebook}`")

    def claims(self) -> None:
        """Show every claim with its value, its bound and its verdict."""
        rows = [
            {
                "claim": claim.claim,
                "measured": f"{claim.value:.4g}",
                "bound": claim.bound_in_words,
                "verdict": "holds" if claim.holds else "**does not hold**",
            }
            for claim in self.result.claims
        ]
        self._table(pd.DataFrame(rows), f"{self.name}-claims", f"The claims of `{self.result.notebook}`")

    def close(self) -> None:
        """Write results.csv, claims.json, values.json and provenance.json; show how to compute this page again."""
        record = self.record | {"run_seconds": round(time.time() - psutil.Process().create_time(), 1)}
        if self.folder is not None:
            self.result.table.to_csv(self.folder / "results.csv", index=False, lineterminator="\n")
            _write_json(self.folder / "claims.json", [claim.as_dict() for claim in self.result.claims])
            _write_json(self.folder / "values.json", self.result.values)
            _write_json(self.folder / "provenance.json", record)
        files = ", ".join(f"[{file}]({self.name}/{file})" for file in ("results.csv", "claims.json", "provenance.json"))
        myst = (
            f"Computed by\n\n```bash\n{record['command']}\n```\n\n"
            f"at commit `{record['commit']}`, version {record['version']}, "
            f"in {record['run_seconds']:.0f} s.  All numbers: {files}."
        )
        _show({"text/plain": record["command"]}, myst)

    @cached_property
    def record(self) -> dict[str, Any]:
        """Where the result comes from."""
        return provenance.record(self.result)

    def _table(self, table: pd.DataFrame, name: str, title: str) -> None:
        markdown = table.replace(r"\|", r"\\|", regex=True).to_markdown(index=False, disable_numparse=True)
        if self.folder is not None:
            record = self.record
            version = f"Evolving Privacy {record['version']}"
            text = latex.table(
                table,
                caption=f"{title} ({version}).",
                label=f"tab:{self.result.notebook.split('/')[0]}-{name}".replace("_", "-"),
                comment=f"{name}: {version}, commit {record['commit']}\n{record['command']}",
            )
            (self.folder / f"{name}.tex").write_text(text)
        _show({"text/plain": markdown}, f"{markdown}\n\n[LaTeX]({self.name}/{name}.tex) (`{name}`)")

    def _figure_myst(self, figure: Figure, record: dict[str, Any]) -> str:
        links = " · ".join(f"[{kind}]({self.name}/{file})" for kind, file in bundle.names(figure.id).items())
        alt = " ".join(figure.alt.split())
        return (
            f"```{{figure}} {self.name}/{figure.id}.svg\n:name: {figure.id}\n:alt: {alt}\n:width: 100%\n\n"
            f"{figure.caption}\n```\n\n"
            f"{links} (`{figure.id}`)\n\n"
            f":::{{dropdown}} Compute this figure again\n```bash\n{record['command']}\n```\n:::\n\n"
            f":::{{dropdown}} Cite this figure\n```bibtex\n{citing.figure(figure.id, record)}```\n:::\n"
        )


def _show(plain: dict[str, str], myst: str) -> None:
    display(plain | {MYST: myst}, raw=True)


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
