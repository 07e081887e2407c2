"""Tables for papers: pandas writes them and escapes their cells; bold, emphasis, code, links and citations of the book's
Markdown, and letters that LaTeX has a name for, become LaTeX here."""

from __future__ import annotations

import codecs
import re
from typing import Any

import latexcodec  # noqa: F401  (registers the codec "ulatex")
import pandas as pd

from evolvingdp.book.labels import Label
from evolvingdp.book.numerals import numeric

_FORMULA = re.compile(r"((?<!\\)\$.*?(?<!\\)\$)")
_MARKS = (  # of Markdown, in text that is escaped
    (r"\\\{cite(?::t)?\\\}`([^`]+)`", r"\\cite{\1}"),
    (r"`([^`]+)`", r"\\texttt{\1}"),
    (r"\*\*(.+?)\*\*", r"\\textbf{\1}"),
    (r"\*(\S.*?)\*", r"\\emph{\1}"),
    (r"\[([^]]*)\]\([^)]*\)", r"\1"),
)
_SPECIAL = str.maketrans(
    {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''", "[": "{[}", "]": "{]}", "*": "{*}"}
)


def table(frame: pd.DataFrame, *, caption: str, label: str, comment: str) -> str:
    """`frame` as a table environment that needs the package booktabs: columns of numbers on the right; cells are Markdown,
    or a column of them labels; `comment` stands above.  Raises ValueError for a role other than cite."""
    labels = [name for name, column in frame.items() if any(isinstance(cell, Label) for cell in column)]
    text = frame.map(lambda cell: cell.plain if isinstance(cell, Label) else str(cell).strip())
    sides = ["r" if numeric([*column]) else "l" for _, column in text.items()]
    style = text.style.hide(axis="index").format(marked, escape="latex-math").format(plain, escape="latex", subset=labels)
    written = style.format_index(marked, escape="latex-math", axis="columns").to_latex(
        column_format="".join(sides), caption=caption, label=label, hrules=True, position_float="centering"
    )
    needs = r"\usepackage{booktabs}" + ("" if written.isascii() else ", LuaLaTeX or XeLaTeX, and a font for each script")
    return "\n".join([*(f"% {line}" for line in comment.splitlines()), f"% needs {needs}", written])


def marked(escaped: Any) -> str:
    """Markdown that pandas has escaped, as LaTeX."""
    for mark, form in _MARKS:
        escaped = re.sub(mark, form, escaped)
    parts = _FORMULA.split(escaped)
    parts[::2] = [re.sub(r"[^\x00-\x7f]", _named, plain(part)) for part in parts[::2]]
    whole = "".join(parts)
    if re.search(r"\\\{\S+\\\}\\texttt", whole):
        raise ValueError(f"a table's cell must have no role but cite, got {escaped!r}")
    return whole


def plain(escaped: Any) -> str:
    """Text that pandas has escaped, without what is left for LaTeX to read: two hyphens would become a dash."""
    return re.sub("-(?=-)", "-{}", str(escaped).translate(_SPECIAL))


def _named(letter: re.Match[str]) -> str:
    name = str(codecs.encode(letter[0], "ulatex", "keep"))
    return f"{{{name}}}" if name.startswith("\\") else name
