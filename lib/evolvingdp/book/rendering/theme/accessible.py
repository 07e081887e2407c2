"""What the theme leaves out for people who listen to a page or read it without a mouse, put into the HTML at build time.

Each fix is a pure function from HTML to HTML; `setup` hangs them into Sphinx.  Colours and focus rings are in
book/_static/book.css, what depends on the size of the window in book/_static/book.js.

For everybody: numbers as people write them, columns of them aligned, proofs that fold (book.js unfolds them for print).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator
from sphinx_proof.nodes import proof_node

from evolvingdp.book.numerals import grouped, numeric, readable
from evolvingdp.book.rendering.theme.formulas import joined

_SWITCH = re.compile(r"(<a [^>]*>)((?:(?!</a>).)*)(</a>\s*<details[^>]*>\s*<summary)>", re.DOTALL)
_EMPTY_HEADER = re.compile(r"<th\b([^>]*)>((?:\s|</?p>)*)</th>")
_TAG = re.compile(r"<[^>]*>")
_WORD, _BREAKS, _LONG = re.compile(r'<span class="pre">([^<\s]+)</span>'), re.compile(r"[_/]+|(?<=[a-z])\.(?!\d)"), 20
_SEARCHABLE, _TEXT = re.compile(r'<table class="searchable\b.*?</table>', re.DOTALL), re.compile(r"(?<=>)[^<>]+(?=<)")


def named_switches(sidebar: str) -> str:
    """The arrows that open a chapter in the sidebar say which chapter: the theme gives them a picture and no name."""

    def named(match: re.Match[str]) -> str:
        chapter = " ".join(unescape(_TAG.sub("", match[2])).split()).replace("&", "&amp;").replace('"', "&quot;")
        return f'{match[1]}{match[2]}{match[3]} aria-label="Sections of {chapter}">'

    return _SWITCH.sub(named, sidebar)


def plain_bibliography(body: str) -> str:
    """Entries are items of their list; docutils gives them a role that ARIA 1.3 has deprecated and no list allows."""
    return body.replace('role="doc-biblioentry"', 'role="listitem"')


def headed_tables(body: str) -> str:
    """Headers of columns say so, and the empty corner of a table is no header."""
    return re.sub(r'<th class="head\b', '<th scope="col" class="head', _EMPTY_HEADER.sub(r"<td\1>\2</td>", body))


def unique_ids(body: str) -> str:
    """Proofs and the bodies of theorems lose the one id that sphinx-proof gives to all of them; nothing can link to it."""
    return re.sub(r' id="proof(-content)?"', "", body)


def breakable_code(body: str) -> str:
    """An option stays whole, a long name may break behind its dots and underscores, and nowhere else if that is enough.

    In a table that can be searched, whose columns are narrow, every name may.
    """

    def broken(match: re.Match[str]) -> str:
        word = match[1]
        if word.startswith("-"):
            return f'<span class="pre joined">{word}</span>'
        return (
            match[0].replace(word, _BREAKS.sub(r"\g<0><wbr>", word))
            if len(word) >= _LONG or word.endswith(".")
            else match[0]
        )

    def narrow(table: re.Match[str]) -> str:
        return _TEXT.sub(lambda text: _BREAKS.sub(r"\g<0><wbr>", text[0]), table[0])

    return _SEARCHABLE.sub(narrow, _WORD.sub(broken, body))


def _fix(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    if "body" in context:
        context["body"] = joined(breakable_code(unique_ids(headed_tables(plain_bibliography(context["body"])))))
    toctree: Callable[..., Any] | None = context.get("generate_toctree_html")
    if toctree is not None:
        context["generate_toctree_html"] = lambda *args, **options: named_switches(str(toctree(*args, **options)))


_FORMULA = (nodes.math, nodes.math_block)
_VERBATIM = (nodes.literal, nodes.literal_block, nodes.raw, nodes.comment, nodes.Invisible, *_FORMULA)
_BARE = re.compile(r"(?<![\w.,\])}])\.(?=\d)")  # a decimal without its zero, in a formula


def _read(app: Sphinx, doctree: nodes.document) -> None:
    for text in list(doctree.findall(nodes.Text)):
        in_formula = isinstance(text.parent, _FORMULA)
        better = _BARE.sub("0.", text) if in_formula else str(text) if _verbatim(text.parent) else readable(text)
        if better != text:
            text.parent.replace(text, nodes.Text(better))
    for group in doctree.findall(nodes.tgroup):
        _align(group)
    for proof in doctree.findall(proof_node):
        first = next(iter(proof.findall(nodes.Text)))
        first.parent.replace(first, nodes.Text(first.removeprefix("Proof. ")))


def _verbatim(node: nodes.Node | None) -> bool:
    if not isinstance(node, nodes.Element):
        return False
    return isinstance(node, _VERBATIM) or "label" in node.get("classes", ()) or _verbatim(node.parent)


def _align(group: nodes.tgroup) -> None:
    """Columns of numbers on the right, their headers too, unless centred by their author; with commas but for seeds.

    Tables of merged cells have none.
    """
    rows = [[*row.findall(nodes.entry)] for row in group.findall(nodes.row)]
    body = [[*row.findall(nodes.entry)] for part in group.findall(nodes.tbody) for row in part.findall(nodes.row)]
    if any("morecols" in entry for row in rows for entry in row):
        return
    for place in range(max(map(len, rows))):
        cells = [row[place] for row in body if len(row) > place]
        if numeric([cell.astext() for cell in cells]):
            if "seed" not in rows[0][place].astext():
                _group(cells)
            for entry in (row[place] for row in rows if len(row) > place and "text-center" not in row[place]["classes"]):
                entry["classes"] = [name for name in entry["classes"] if name != "text-left"] + ["text-right"]


def _group(cells: list[nodes.entry]) -> None:
    texts = [text for cell in cells for text in cell.findall(nodes.Text) if not _verbatim(text.parent)]
    for text, better in zip(texts, grouped([*map(str, texts)]), strict=True):
        text.parent.replace(text, nodes.Text(better))


def _open_proof(translator: HTML5Translator, node: nodes.Element) -> None:
    translator.body.append('<details class="proof-fold"><summary>Proof</summary>')


def _close_proof(translator: HTML5Translator, node: nodes.Element) -> None:
    translator.body.append("</details>")


def setup(app: Sphinx) -> None:
    """Fix every page, its HTML after the theme has set up its own functions."""
    app.connect("html-page-context", _fix, priority=900)
    app.connect("doctree-read", _read)
    app.add_node(proof_node, override=True, html=(_open_proof, _close_proof))
