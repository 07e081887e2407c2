"""Tables for papers: pandas writes the table, and what is here turns its cells, the book's Markdown, into LaTeX.

Bold, emphasis, code and formulas stay what they are; links keep their text.
"""

from __future__ import annotations

import codecs
import re
import unicodedata

import latexcodec  # noqa: F401  (registers the codec "ulatex")
import pandas as pd
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.myst_role import myst_role_plugin

from evolvingdp.book.labels import Label

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).use(myst_role_plugin)
_MARKDOWN.use(dollarmath_plugin, allow_space=True, allow_digits=True)
_SPECIAL = {
    **{character: f"\\{character}" for character in "{}$&%#_"},
    **{character: f"{{{character}}}" for character in "[]*"},  # after \\ these would be its options
    **{"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "`": r"\textasciigrave{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''", "\N{PRIME}": "$'$"},
    **{"\N{NO-BREAK SPACE}": "~", "\N{NON-BREAKING HYPHEN}": "-", "\N{ZERO WIDTH SPACE}": "{}"},
    **{"\N{PROPORTIONAL TO}": r"$\propto$", "\N{MUCH LESS-THAN}": r"$\ll$", "\N{MUCH GREATER-THAN}": r"$\gg$"},
}
_AROUND = {"strong_open": r"\textbf{", "em_open": r"\emph{", "strong_close": "}", "em_close": "}"}
_NUMBER = re.compile(r"(\$?[-+\N{MINUS SIGN}]?\d[\d.,]*([eE][-+]?\d+)?\$?)(\s*\(.*\)|%)?|")


def table(frame: pd.DataFrame, *, caption: str, label: str, comment: str) -> str:
    """`frame` as a table environment that needs the package booktabs: columns of numbers on the right; cells are Markdown
    or labels, `caption` is Markdown, `comment` stands above."""
    plain = frame.map(lambda value: value.plain if isinstance(value, Label) else str(value).strip())
    sides = ["r" if all(map(_NUMBER.fullmatch, plain.iloc[:, place])) else "l" for place in range(plain.shape[1])]
    cells = frame.map(lambda value: labelled(value.plain) if isinstance(value, Label) else cell(str(value)))
    written = cells.rename(columns=lambda name: cell(str(name))).style.hide(axis="index").to_latex(
        column_format="".join(sides), caption=cell(caption), label=label, hrules=True, position_float="centering"
    )  # fmt: skip
    needs = r"\usepackage{booktabs}" + ("" if written.isascii() else ", LuaLaTeX or XeLaTeX, and a font for each script")
    return "\n".join([*(f"% {line}" for line in comment.splitlines()), f"% needs {needs}", written])


def cell(markdown: str) -> str:
    """One cell of Markdown as LaTeX.  Raises ValueError for what has no form in LaTeX (a role other than cite, an image)."""
    inline = _MARKDOWN.parseInline(markdown)[0].children or []
    return "".join(_latex(token, markdown) for token in inline)


def _latex(token: Token, markdown: str) -> str:
    if token.type == "text":
        return escaped(token.content)
    if token.type == "math_inline":
        letters = (each if each.isascii() else _character(each).strip("$") + " " for each in token.content.strip())
        return "$" + re.sub(r"(?<!\\)([%#&])", r"\\\1", "".join(letters)) + "$"
    if token.type == "code_inline":
        return f"\\texttt{{{escaped(token.content)}}}"
    if token.type in ("softbreak", "hardbreak", "link_open", "link_close"):
        return " " if "break" in token.type else ""
    if token.type == "myst_role" and token.meta["name"].startswith("cite"):
        return f"\\cite{{{token.content}}}"
    if token.type in _AROUND:
        return _AROUND[token.type]
    raise ValueError(f"a table's cell must be text, formula, code, bold, emphasis, link or {{cite}}, got {markdown!r}")


def escaped(text: str) -> str:
    """Plain `text` as LaTeX in ASCII; raises ValueError for a character that LaTeX has no name for."""
    apart = re.sub("-(?=-)", "-\N{ZERO WIDTH SPACE}", text)  # or two hyphens would become a dash
    return "".join(map(_character, apart))


def labelled(text: str) -> str:
    """What a reader brought, which may be of any script: beyond ASCII it stays as it is."""
    return "".join(escaped(part) if part.isascii() else part for part in re.split(r"([\x00-\x7f]+)", text))


def _character(character: str) -> str:
    if character in _SPECIAL or character.isascii():
        return _SPECIAL.get(character, character)
    try:
        encoded = str(codecs.encode(character, "ulatex", "strict"))
    except UnicodeEncodeError:
        plain, kind = unicodedata.normalize("NFKC", character), unicodedata.decomposition(character).split()[:1]
        if plain == character:
            name = unicodedata.name(character, f"U+{ord(character):04X}")
            raise ValueError(f"a table's cell must hold what LaTeX can print, got {character!r} ({name})") from None
        if kind == ["<fraction>"]:
            return "$\\frac{{{}}}{{{}}}$".format(*plain.split("\N{FRACTION SLASH}"))
        raised = {"<sub>": "_", "<super>": "^"}.get(kind[0])
        return f"${raised}{{{plain}}}$" if raised else escaped(plain)
    return encoded if encoded.startswith("$") else f"{{{encoded}}}"
