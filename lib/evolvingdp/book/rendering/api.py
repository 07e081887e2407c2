"""The library in the book: the directives of autodoc on book/api/*.md, and docstrings as Sphinx reads them.

A docstring is plain words with `code`, **bold** and $formulas$; paragraphs that are indented are code, and rows between bars
a table.  Of a dataclass are shown the comments beside its fields, too, and of a
class the methods that a page names, or all.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.autodoc import ALL

from evolvingdp.book.numerals import readable

_WIDTH = 84  # letters of a line of code
_CODE = re.compile(r"(`[^`]+`|\$[^$]+\$|\*\*[^*]+\*\*)")
_FIELD = re.compile(r"^    ([a-z]\w*): [^#\n]*#\s*(?:type: ignore\S*\s*#\s*)?((?!\s*type: )\S.*)$", re.MULTILINE)


def _read(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Of what a page shows by the way one sentence; of a file its title and the parts that are named in bold."""
    doc, brief = "\n".join(lines), _by_the_way(what, name, options)
    if what == "module":
        title, *more = doc.split("\n\n")
        named = [_summary(part) if part.startswith("**Source") else part for part in more if part.startswith("**")]
        doc = _summary(title) if brief else "\n\n".join([title, *named])
    elif doc.startswith(f"{name.split('.')[-1]}("):  # a dataclass's own
        doc = ""
    if what != "module" and brief:
        doc = _summary(doc) + (f"\n\n{_call(name, thing)}" if what in ("function", "class") else "")
    elif what in ("class", "exception"):
        doc += "\n\n" + "\n".join(f"- `{field}`: {told}" for field, told in _FIELD.findall(inspect.getsource(thing)))
    lines[:] = as_rst(doc).split("\n")


def _call(name: str, thing: Any) -> str:
    """What it takes, names and defaults, as a line of code, which adds no words to a page; a protocol takes nothing."""
    taken = inspect.signature(thing)
    names = [each.replace(annotation=each.empty) for each in taken.parameters.values()]
    call = f"{name.rpartition('.')[2]}{taken.replace(parameters=names, return_annotation=taken.empty)}"
    protocol = getattr(thing, "_is_protocol", False)
    return textwrap.indent(textwrap.fill(call, _WIDTH, subsequent_indent="    "), "    ") if names and not protocol else ""


def _plain(app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returned: str | None) -> Any:
    """Names and defaults; an entry of one sentence has them as code below it."""
    takes = what == "function" and inspect.signature(thing).parameters
    return ("(...)" if takes else "", "") if _by_the_way(what, name, options) else None


def _by_the_way(what: str, name: str, options: Any) -> bool:
    """Whether an automodule asks for it that lists names, or all but those that the page shows whole."""
    listed = options.members and options.members is not ALL
    inside = what in ("method", "property") or (what != "module" and name.split(".")[-1] not in (options.members or ()))
    return bool(options.exclude_members or (listed and not inside))


def _summary(doc: str) -> str:
    """The first sentence of a docstring."""
    first = " ".join(doc.strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.:])(?<!e\.g\.)(?<!i\.e\.) +(?=[A-Z`$\"])", first)[0].rstrip(":")


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
            parts[place] = re.sub(r"([\\*|_])", r"\\\1", readable(part))
    return re.sub(r"\n +", "\n  " if block.startswith("-") else "\n", "".join(parts))


def _skip(app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Without methods of classes that a page shows by the way, and without fields of tuples, which a signature has."""
    listed = options.members is not ALL and name not in (options.members or ())
    hidden = options.exclude_members or listed or type(thing).__name__ == "_tuplegetter"
    return True if what == "class" and hidden else None


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", _read)
    app.connect("autodoc-process-signature", _plain)
    app.connect("autodoc-skip-member", _skip)
