"""What becomes of an executed notebook: a page of the book, or one that reads alone, in Jupyter and without the book."""

from __future__ import annotations

import copy
import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import nbformat

from evolvingdp.book.labels import Label, fenced, unmarked
from evolvingdp.book.result import DRAWN_BY, MYST

_CODE = r"(?<!`)(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
_ROLE = re.compile(r"\{(?P<kind>value|cite|cite:t|doc|numref|prf:ref)\}`(?P<said>[^`]+)`|" + _CODE, re.DOTALL)
_INSIDE = re.compile(r"\[([^\]]*)\]\(#[\w-]+\)")  # a link within the page, such as an erratum's


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


def read_alone(executed: nbformat.NotebookNode, notebook: str, values: Path) -> nbformat.NotebookNode:
    """`executed` for somebody who has no book beside it: its sentences have the numbers of the run, in the file `values`."""
    numbers = json.loads(values.read_text()) if values.exists() else {}
    read = copy.deepcopy(executed)
    for cell in read.cells:
        if cell.cell_type == "markdown":
            cell.source = resolved(cell.source, notebook, numbers)
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            data.pop(MYST, None)
            if "text/markdown" in data:
                data["text/markdown"] = resolved(data["text/markdown"], notebook, numbers)
    return read


def resolved(text: str, notebook: str, numbers: dict[str, Any]) -> str:
    """MyST `text` of `notebook` as plain Markdown: a paper is its key, a link its words; another notebook's value stays."""

    def role(match: re.Match[str]) -> str:
        kind, said = match["kind"], match["said"]
        if kind == "value":
            with suppress(ValueError):  # one word, or a form that its value does not take
                source, name, *form = said.split()
                if source == notebook and name in numbers:
                    value = numbers[name]
                    return unmarked(Label(value).markdown) if isinstance(value, str) else format(value, *form[:1])
            return match[0]
        if kind and kind.startswith("cite"):
            return re.sub(r"([a-z]+)(\d+)[a-z]*", lambda key: f"{key[1].capitalize()} {key[2]}", said)
        return f"*{said.partition(' <')[0].rpartition('/')[2]}*" if kind else match[0]

    return _INSIDE.sub(r"\1", _ROLE.sub(role, text))
