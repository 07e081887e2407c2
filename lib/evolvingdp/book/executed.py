"""What becomes of an executed notebook: a page of the book, or one that reads by itself, in Jupyter and without the book.

`clean` leaves the same bytes for the same results.  What reads by itself has its own numbers in its sentences.

The book's roles become what they print: {value} the result of this very run, {cite} author and year with the address of
the paper, the others words.  Captions and tables become HTML.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

import nbformat
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pybtex.database import Entry, parse_file

from evolvingdp.book.citing import address
from evolvingdp.book.labels import Label, fenced, unmarked
from evolvingdp.book.numerals import readable
from evolvingdp.book.result import DRAWN_BY, MYST

_CODE = r"(?<!`)(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
_ROLE = re.compile(r"\{(?P<kind>value|cite|cite:t|doc|numref|prf:ref)\}`(?P<said>[^`]+)`|" + _CODE, re.DOTALL)
_INSIDE = re.compile(r"\[([^\]]*)\]\(#[\w-]+\)")  # a link within the page, such as an erratum's
_VERBATIM = re.compile(rf"\$\$?.+?\$\$?|{_CODE}|\]\([^)]*\)", re.DOTALL)  # formulas, code, addresses
_NAMED = re.compile(r"(?P<words>.*?)\s*<(?P<target>[^<>]+)>", re.DOTALL)
_HTML = MarkdownIt("commonmark", {"html": False}).enable("table")
_HTML.use(dollarmath_plugin, renderer=lambda formula, options: f"${escape(formula)}$")  # which Jupyter typesets


def clean(executed: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """`executed` without times, machine paths and papermill's metadata; the injected cell gets a fixed id."""
    notebook = copy.deepcopy(executed)
    notebook.metadata = nbformat.from_dict({"kernelspec": notebook.metadata.get("kernelspec", {})})
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        cell.metadata = nbformat.from_dict({"tags": [*tags]} if tags else {})
        if "injected-parameters" in tags:
            cell.id = "injected-parameters"
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def page(executed: nbformat.NotebookNode, banner: str = "") -> nbformat.NotebookNode:
    """`executed` as the book shows it: MyST outputs become markdown cells, and no code stands before its picture.

    The folded cells that draw a figure go into the menu below it; parameters and imports fold at the page's end.
    `banner`, where there is one, follows the first cell, the title.
    """
    notebook = clean(executed)
    cells, setup, drawing = [], [], []
    if banner:
        notebook.cells.insert(1, _markdown("banner", banner))
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if "parameters" in tags:
            cell.metadata["tags"] = [*tags, "remove-cell"]
        if "injected-parameters" in tags or _imports(cell):
            setup.append(cell.source)
            continue
        if cell.cell_type != "code":
            cells.append(cell)
            continue
        sources = [output["data"][MYST] for output in cell.outputs if output.get("data", {}).get(MYST)]
        cell.outputs = [output for output in cell.outputs if MYST not in output.get("data", {})]
        if "hide-input" in tags and not sources and not cell.outputs:
            drawing.append(cell)
            continue
        if drawing and any(DRAWN_BY in source for source in sources):
            code = fenced("\n\n".join(each.source for each in drawing), "python")
            sources = [source.replace(DRAWN_BY, f"Drawn by\n\n{code}\n", 1) for source in sources]
            drawing = []
        cells.append(cell)
        cells += [_markdown(f"{cell.id}-{number}", source) for number, source in enumerate(sources)]
    if setup:
        told = fenced("\n\n".join(setup), "python")
        drawing.append(_markdown("setup", f"::::{{dropdown}} Parameters and imports\n{told}\n::::"))
    notebook.cells = [*cells, *drawing]
    return notebook


def _imports(cell: nbformat.NotebookNode) -> bool:
    """Whether `cell` only prepares what others do."""
    return cell.cell_type == "code" and not cell.outputs and cell.source.startswith(("import ", "from "))


def _markdown(cell_id: str, source: str) -> Any:
    return nbformat.v4.new_markdown_cell(source, id=cell_id[-64:])


@dataclass(frozen=True)
class Reader:
    """Reads <paper>/<name> of the repository at `root` for somebody who has no book beside it."""

    root: Path
    notebook: str
    values: Path  # the file of the run's numbers

    def read(self, executed: nbformat.NotebookNode) -> nbformat.NotebookNode:
        """`executed` with its roles resolved by the run's own results, and its captions and tables as HTML."""
        notebook = copy.deepcopy(executed)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = self.resolved(cell.source)
            for output in cell.get("outputs", []):
                data = output.get("data", {})
                data.pop(MYST, None)
                if "text/markdown" in data:
                    data["text/html"] = _HTML.render(self.resolved(data.pop("text/markdown")))
        return notebook

    @cached_property
    def _numbers(self) -> dict[str, Any]:
        return dict(json.loads(self.values.read_text())) if self.values.exists() else {}

    def resolved(self, text: str) -> str:
        """MyST `text` as plain Markdown; what it names and nobody knows stays as it is."""

        def role(match: re.Match[str]) -> str:
            try:
                return str(_PRINTED[match["kind"]](self, match["said"]))
            except (KeyError, OSError, ValueError):
                return match[0]

        linked = _INSIDE.sub(r"\1", _ROLE.sub(role, text))
        ends = [0, *(end for match in _VERBATIM.finditer(linked) for end in match.span()), len(linked)]
        parts = [linked[start:end] for start, end in pairwise(ends)]
        return "".join(part if place % 2 else readable(part) for place, part in enumerate(parts))

    def _value(self, said: str) -> str:
        notebook, name, *form = said.split()
        if notebook != self.notebook:
            raise KeyError(notebook)
        value = self._numbers[name]
        return unmarked(Label(value).markdown) if isinstance(value, str) else format(value, form[0] if form else "")

    def _cited(self, keys: str, between: str) -> str:
        works = [(_authors(entry), entry) for entry in (self._bibliography[key.strip()] for key in keys.split(","))]
        said = (between.format(who=who, year=work.fields["year"], url=address(work.fields)) for who, work in works)
        return "; ".join(said)

    @cached_property
    def _bibliography(self) -> dict[str, Entry]:
        return dict(parse_file(self.root / "book" / "references.bib").entries)


_PRINTED: dict[str, Callable[..., Any]] = {
    "value": Reader._value,
    "cite": lambda reader, keys: f"({reader._cited(keys, '[{who}, {year}]({url})')})",
    "cite:t": lambda reader, keys: reader._cited(keys, "[{who} ({year})]({url})"),
    "doc": lambda _, said: _named(said),
    "numref": lambda _, label: f"figure `{label}`",
    "prf:ref": lambda _, label: f"`{label}`",
}


def _authors(entry: Entry) -> str:
    """One, two, or the first of several."""
    names = [" ".join([*person.prelast_names, *person.last_names]).strip("{}") for person in entry.persons["author"]]
    return " and ".join(names) if len(names) < 3 else f"{names[0]} et al."


def _named(said: str) -> str:
    """The words of a link, or what its page is called: a notebook that is read alone has no way there."""
    named = _NAMED.fullmatch(said)
    return f"*{named['words'] if named else said.rpartition('/')[2].replace('_', ' ')}*"
