"""From an executed notebook to a page: the same bytes for the same results."""

from __future__ import annotations

import copy
from typing import Any

import nbformat

from evolvingdp.publish.showing.forms import MYST


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
    """`executed` as the book shows it: MyST outputs become markdown cells, the default parameters are hidden.

    `banner`, where there is one, follows the first cell, the title.
    """
    notebook = clean(executed)
    cells = []
    if banner:
        notebook.cells.insert(1, _markdown("banner", banner))
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if "parameters" in tags:
            cell.metadata["tags"] = [*tags, "remove-cell"]
        if "injected-parameters" in tags:
            cell.metadata["tags"] = [*tags, "hide-input"]
        cells.append(cell)
        if cell.cell_type == "code":
            sources = [output["data"][MYST] for output in cell.outputs if output.get("data", {}).get(MYST)]
            cell.outputs = [output for output in cell.outputs if MYST not in output.get("data", {})]
            cells += [_markdown(f"{cell.id}-{number}", source) for number, source in enumerate(sources)]
    notebook.cells = cells
    return notebook


def _markdown(cell_id: str, source: str) -> Any:
    return nbformat.v4.new_markdown_cell(source, id=cell_id[-64:])
