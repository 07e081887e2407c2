"""The library in the book: the directives of autodoc on book/api/*.md, and docstrings as Sphinx reads them.

A docstring is plain words with `code`, **bold** and $formulas$; paragraphs that are indented are code, and rows between bars
a table.  Of a dataclass are shown the comments beside its fields, too.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.autodoc import ALL

_CODE = re.compile(r"(`[^`]+`|\$[^$]+\$|\*\*[^*]+\*\*)")
_FIELD = re.compile(r"^    ([a-z]\w*): [^#\n]*#\s*(.+)$", re.MULTILINE)


def _read(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    if what == "module":  # what else a file explains is one click away
        title, *more = "\n".join(lines).split("\n\n")
        lines[:] = "\n\n".join([title, *(part for part in more if part.startswith("**"))]).split("\n")
    if what in ("class", "exception"):
        if lines and lines[0].startswith(f"{name.split('.')[-1]}("):  # a dataclass's own
            lines.clear()
        lines += ["", *(f"- `{field}`: {told}" for field, told in _FIELD.findall(inspect.getsource(thing)))]
    lines[:] = as_rst("\n".join(lines)).split("\n")


def as_rst(doc: str) -> str:
    return "\n\n".join(map(_block, re.split(r"\n\s*\n", doc))).strip("\n")


def _block(block: str) -> str:
    if block.startswith("|"):
        rows = [line.strip().strip("|").split("|") for line in block.splitlines() if not re.fullmatch(r"[-|: ]+", line)]
        cells = ["\n     - ".join(_escaped(cell.strip()) for cell in row) for row in rows]
        return ".. list-table::\n   :header-rows: 1\n\n" + "\n".join(f"   * - {row}" for row in cells)
    return f"::\n\n{block}" if block.startswith("    ") else _escaped(block)


def _escaped(block: str) -> str:
    """A paragraph, whose indented lines go on with what stands above them."""
    parts = _CODE.split(block)
    for place, part in enumerate(parts):
        if place % 2:  # a backslash and a blank, which nobody sees, let it stand beside letters
            role = part if part.startswith("**") else f":math:`{part[1:-1]}`" if part[0] == "$" else f"``{part[1:-1]}``"
            parts[place] = f"\\ {role}\\ "
        else:
            parts[place] = re.sub(r"([\\*|_])", r"\\\1", part)
    return re.sub(r"\n +", "\n  " if block.startswith("-") else "\n", "".join(parts))


def _skip(app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Without the methods of classes that a page shows by the way: those of an automodule."""
    return True if what == "class" and (options.exclude_members or options.members is not ALL) else None


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", _read)
    app.connect("autodoc-skip-member", _skip)
