"""Formulas within a line: a comma after one does not begin the next line, and a long one breaks as printers break it.

A browser takes each formula for a picture, before and behind which a line may end and within which it may not.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

_FORMULA = r'<span class="math[^"]*">[^<]*</span>'
_GLUED = re.compile(rf"(?:[^\s<>]*{_FORMULA}(?:</(?:strong|em)>)?)+[^\s<>]*")
_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|.", re.DOTALL)
_RELATIONS = {"=", "<", ">", r"\le", r"\ge", r"\leq", r"\geq", r"\lt", r"\gt", r"\approx", r"\to", r"\gets", r"\leftarrow"}
_SUMS = {"+", "-", r"\cdot"}
_OPEN = {"(", "[", r"\{", r"\lfloor", r"\lceil", r"\lvert"}
_CLOSE = {")", "]", r"\}", r"\rfloor", r"\rceil", r"\rvert"}
_WAYS = ((24, 0, _RELATIONS), (24, 0, _SUMS), (32, 1, _RELATIONS | _SUMS))  # past how many letters, within how many brackets


def joined(body: str) -> str:
    """The HTML `body` with every formula kept on one line with the letters that touch it."""

    def wrap(match: re.Match[str]) -> str:
        touching = re.sub(_FORMULA, "", match[0])
        whole = touching and not re.search(r"</?(?:strong|em)>", touching)
        return f'<span class="joined">{match[0]}</span>' if whole else match[0]

    return _GLUED.sub(wrap, body)


def pieces(formula: str) -> list[str]:
    """What of the TeX `formula` stays on one line: it breaks behind relations, else signs, else in brackets."""
    parts = [formula]
    for letters, within, signs in _WAYS:
        parts = [piece for part in parts for piece in (_broken(part, within, signs) if _length(part) > letters else [part])]
    return parts


def _length(formula: str) -> int:
    """About how many letters wide it is."""
    return len(
        re.sub(
            r"\\(?:left|right|[bB]igg?[lr]?|mathrm|text|sqrt|d?frac|[,;!])|[\s{}^_]",
            "",
            re.sub(r"\\[a-zA-Z]{3,}", "x", formula),
        )
    )


def _broken(formula: str, within: int, signs: set[str]) -> list[str]:
    parts, part, groups, depth, bars, before = [], "", 0, 0, 0, "("
    for token in _TOKEN.findall(formula):
        part += token
        groups += (token in ("{", r"\left", r"\begin")) - (token in ("}", r"\right", r"\end"))
        depth += (token in _OPEN) - (token in _CLOSE)
        bars ^= token == "|"
        binary = before not in _OPEN | _RELATIONS | _SUMS | {"{", "^", "_", ",", "/"}
        if token in signs and binary and groups == 0 and depth + bars <= within:
            parts.append(part + "{}")
            part = ""
        before = token if token.strip() else before
    return [*parts, part] if part.strip() else [formula]


def _read(app: Sphinx, doctree: nodes.document) -> None:
    for math in list(doctree.findall(nodes.math)):
        parts = pieces(math.astext())
        if len(parts) > 1:
            broken = [[nodes.raw("", "<wbr>", format="html"), nodes.math(part, part)] for part in parts]
            math.parent.replace(math, [node for pair in broken for node in pair][1:])


def setup(app: Sphinx) -> None:
    """Break the long formulas of every page; `accessible` joins them to what touches them."""
    app.connect("doctree-read", _read, priority=600)
