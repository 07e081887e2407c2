"""Tables for papers: a small table whose cells are the book's Markdown, as LaTeX that needs only the package booktabs.

Bold, emphasis, code and formulas stay what they are; links keep their text; every character is ASCII.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from typing import Any

import latexcodec  # noqa: F401  (registers the codec "ulatex")
import pandas as pd
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.myst_role import myst_role_plugin

from evolvingdp.book.labels import Label

_MARKDOWN = (
    MarkdownIt("commonmark", {"html": False})
    .use(dollarmath_plugin, allow_space=True, allow_digits=True)
    .use(myst_role_plugin)
)
_SPECIAL = {
    **{character: f"\\{character}" for character in "{}$&%#_"},
    **{character: f"{{{character}}}" for character in "[]*"},  # after \\ these would be its options
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    '"': "''",
    "\N{NO-BREAK SPACE}": "~",
    "\N{NON-BREAKING HYPHEN}": "-",
    "\N{PRIME}": "$'$",
    "\N{PROPORTIONAL TO}": r"$\propto$",
    "\N{MUCH LESS-THAN}": r"$\ll$",
    "\N{MUCH GREATER-THAN}": r"$\gg$",
    "\N{ZERO WIDTH SPACE}": "{}",
}
_AROUND = {"strong_open": r"\textbf{", "em_open": r"\emph{", "strong_close": "}", "em_close": "}"}
_NUMBER = re.compile(r"(\$?[-+\N{MINUS SIGN}]?\d[\d.,]*([eE][-+]?\d+)?\$?)(\s*\(.*\)|%)?|")


def table(frame: pd.DataFrame, *, caption: str, label: str, comment: str) -> str:
    """`frame` as a table environment: columns of numbers on the right; `caption` is Markdown, `comment` stands above."""
    cells = [[_cell(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    columns = [[_plain(value).strip() for value in frame.iloc[:, number]] for number in range(frame.shape[1])]
    numbers = [all(map(_NUMBER.fullmatch, column)) for column in columns]
    rows = [" & ".join(row) + r" \\" for row in cells]
    text = "".join(rows)
    lines = [
        *(f"% {line}" for line in comment.splitlines()),
        r"% needs \usepackage{booktabs}",
        *(["% needs LuaLaTeX or XeLaTeX, and fonts for the scripts of its words"] if not text.isascii() else []),
        r"\begin{table}",
        r"  \centering",
        f"  \\caption{{{cell(caption)}}}",
        f"  \\label{{{label}}}",
        f"  \\begin{{tabular}}{{{''.join('r' if number else 'l' for number in numbers)}}}",
        r"    \toprule",
        "    " + " & ".join(cell(str(name)) for name in frame.columns) + r" \\",
        r"    \midrule",
        *(f"    {row}" for row in rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _plain(value: Any) -> str:
    return value.plain if isinstance(value, Label) else str(value)


def _cell(value: Any) -> str:
    return escaped(value.plain, ascii_only=False) if isinstance(value, Label) else cell(str(value))


def cell(markdown: str) -> str:
    """One cell of Markdown as LaTeX.  Raises ValueError for what has no form in LaTeX (a role other than cite, an image)."""
    inline = _MARKDOWN.parseInline(markdown)[0].children or []
    return "".join(_latex(token, markdown) for token in inline)


def _latex(token: Token, markdown: str) -> str:
    if token.type == "text":
        return escaped(token.content)
    if token.type == "math_inline":
        return f"${_formula(token.content)}$"
    if token.type == "code_inline":
        return f"\\texttt{{{escaped(token.content)}}}"
    if token.type in ("softbreak", "hardbreak"):
        return " "
    if token.type in ("link_open", "link_close"):
        return ""
    if token.type == "myst_role" and token.meta["name"].startswith("cite"):
        return f"\\cite{{{token.content}}}"
    if token.type in _AROUND:
        return _AROUND[token.type]
    raise ValueError(f"a table's cell must be text, formula, code, bold, emphasis, link or {{cite}}, got {markdown!r}")


def escaped(text: str, *, ascii_only: bool = True) -> str:
    """Plain `text` as LaTeX.  A character that LaTeX has no name for raises ValueError, or stays unless `ascii_only`."""
    apart = re.sub("-(?=-)", "-\N{ZERO WIDTH SPACE}", text)  # or two hyphens would become a dash
    known = _SPECIAL if not ascii_only else ()
    return "".join(
        letter if not ascii_only and not letter.isascii() and letter not in known else _character(letter) for letter in apart
    )


def _character(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if character.isascii():
        return character
    try:
        encoded = str(codecs.encode(character, "ulatex", "strict"))
    except UnicodeEncodeError:
        plain = unicodedata.normalize("NFKC", character)
        if plain == character:
            name = unicodedata.name(character, f"U+{ord(character):04X}")
            raise ValueError(f"a table's cell must hold what LaTeX can print, got {character!r} ({name})") from None
        kind = unicodedata.decomposition(character).split()[0]
        if kind == "<fraction>":
            return "$\\frac{{{}}}{{{}}}$".format(*plain.split("\N{FRACTION SLASH}"))
        raised = {"<sub>": "_", "<super>": "^"}.get(kind)
        return f"${raised}{{{plain}}}$" if raised else escaped(plain)
    return encoded if encoded.startswith("$") else f"{{{encoded}}}"


def _formula(formula: str) -> str:
    """A formula with its letters beyond ASCII as commands, and no comment sign."""
    letters = (each if each.isascii() else _character(each).strip("$") + " " for each in formula.strip())
    return re.sub(r"(?<!\\)([%#&])", r"\\\1", "".join(letters))
