"""What a notebook shows: figures, tables, claims and provenance, and the files that go with them.

Each output carries two forms: one that Jupyter shows (PNG, Markdown), and MyST source under the type `MYST`, which
`executed.page` turns into a markdown cell of the book's page.  Files are written where `evolvingdp run` says (the
environment variable `RESULTS`); papermill or Jupyter by hand only shows.
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import psutil
from IPython.display import display

from evolvingdp.book import bundle, citing, latex, numerals, printed, provenance, style
from evolvingdp.book.labels import Label, fenced, unmarked
from evolvingdp.book.numerals import readable
from evolvingdp.book.params import Params
from evolvingdp.book.result import DRAWN_BY, MYST, RESULTS, Claim, Figure, Result


class Page:
    """The published face of one `Result`; `close` comes last and writes the machine-readable files."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.folder = Path(os.environ[RESULTS]) if RESULTS in os.environ else None
        self.name = result.notebook.split("/")[-1]
        self._tables, self._columns = 0, dict[str, bool]()

    @classmethod
    def of(cls, module: ModuleType, params: Params, seed: int, rows: pd.DataFrame) -> Page:
        """The page of the notebook beside which `module` stands, for the table that its `run` returned."""
        return cls(Result.of(module, params, seed, rows))

    @property
    def values(self) -> dict[str, Any]:
        """What claims and prose read."""
        return self.result.values

    def figure(self, figure_id: str, canvas: Any, data: pd.DataFrame, *, title: str, caption: str, alt: str) -> None:
        """Show what is drawn under its stable id and its `title`, the one thing that it says, with caption and alt text, and
        write its bundle: SVG, PDFs, PNG, `data` as CSV, JSON, and a zip of all."""
        if style.COLUMN.get() not in ("", figure_id):
            return
        style.headline(canvas, " ".join(title.split()))
        if style.COLUMN.get():
            raise printed.DrawnAgainError(canvas)
        figure = Figure(figure_id, canvas, data, readable(" ".join(caption.split())), " ".join(alt.split()))
        record, column = self.record, printed.column(figure.canvas, figure.id) if self.folder is not None else None
        self._columns[figure.id] = column is not None
        if self.folder is None:
            png = bundle.image(figure.canvas, "png")
        else:
            png = bundle.write(self.folder, figure, record, column)
        image = {"image/png": base64.b64encode(png).decode(), "text/plain": figure.alt}
        _show(image, self._figure_myst(figure, record), {"image/png": {"alt": figure.alt}})
        _show(_markdown(f"**Figure `{figure.id}`.** {unmarked(figure.caption)}\n\n{self._files(figure.id)}"))

    def table(self, table: pd.DataFrame, fold: str = "") -> None:
        """Show a table and write it as LaTeX; cells are Markdown, numbers are formatted by the caller; a long one folds.

        Its file is <notebook>-table-<k>.tex: the k-th table of the notebook.
        """
        if style.COLUMN.get():
            return
        self._tables += 1
        name = f"{self.name}-table-{self._tables}"
        shown = self._table(table, name, f"Table {self._tables} of `{self.result.notebook}`")
        _show(_markdown(unmarked(shown)), f"::::{{dropdown}} {fold}\n\n{shown}\n::::\n" if fold else shown)

    def say(self, line: str) -> None:
        """Show a sentence, which holds no label."""
        _show(_markdown(readable(line)), readable(line))

    def claims(self) -> None:
        """Show how many claims hold, and behind it each with its value and its bound, and which of them do not hold."""
        rows = [
            {
                "claim": claim.claim,
                "measured": f"{claim.value:,.0f}" if float(claim.value).is_integer() else f"{claim.value:.4g}",
                "bound": claim.bound_in_words + ("" if claim.holds else ": **does not hold**"),
            }
            for claim in self.result.claims
        ]
        shown = self._table(pd.DataFrame(rows), f"{self.name}-claims", f"The claims of `{self.result.notebook}`")
        said = how_many_hold(self.result.claims)
        unfolded = "" if all(claim.holds for claim in self.result.claims) else ":open:\n"
        _show(_markdown(f"**{said}**\n\n{shown}"), f"::::{{dropdown}} {said}\n{unfolded}\n{shown}\n::::\n")

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
            f"{fenced(record['command'], 'bash')}\n\n"
            f"Commit `{record['commit']}`, version {record['version']}, {record['run_seconds']:.0f} s: {files}."
        )
        _show(_markdown(myst), myst)

    @cached_property
    def record(self) -> dict[str, Any]:
        """Where the result comes from."""
        return provenance.record(self.result)

    def _table(self, table: pd.DataFrame, name: str, title: str) -> str:
        """Write `table` as LaTeX; returns it as Markdown, with a link to that file."""
        markdown = numerals.markdown(table.map(_cell).rename(columns=_cell))
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
        return f"{markdown}\n\n[LaTeX]({self.name}/{name}.tex)"

    def _files(self, figure_id: str) -> str:
        files = bundle.names(figure_id, column=self._columns[figure_id])
        return " ".join(f"[{kind}]({self.name}/{file})" for kind, file in files.items())

    def _figure_myst(self, figure: Figure, record: dict[str, Any]) -> str:
        alt = json.dumps(figure.alt, ensure_ascii=False)
        return (
            f"```{{figure}} {self.name}/{figure.id}.svg\n:name: {figure.id}\n:alt: {alt}\n:width: 100%\n\n"
            f"{figure.caption}\n```\n\n"
            f"::::{{dropdown}} Data, code, citation of `{figure.id}`\n:class-container: figure-menu\n\n"
            f"{self._files(figure.id)}\n\n{DRAWN_BY}\n{fenced(record['command'], 'bash')}\n\n"
            f"```bibtex\n{citing.figure(figure.id, record)}```\n::::\n"
        )


def _cell(value: Any) -> str:
    """A cell of a table as MyST: a label, or Markdown."""
    return value.markdown if isinstance(value, Label) else str(value).replace("|", r"\|")


def how_many_hold(claims: Sequence[Claim]) -> str:
    """ "All 9 claims hold"; where their bounds come from says book/limitations.md."""
    holding = sum(claim.holds for claim in claims)
    return f"{'All' if holding == len(claims) else f'{holding} of'} {len(claims)} claims hold"


def _markdown(text: str) -> dict[str, str]:
    return {"text/markdown": text, "text/plain": text}


def _show(shown: dict[str, str], myst: str = "", metadata: dict[str, Any] | None = None) -> None:
    """Show `shown` in Jupyter, and `myst` instead in the book."""
    display(shown | {MYST: myst}, raw=True, metadata=metadata)


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
