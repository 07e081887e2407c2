"""What makes every page easier to read: numbers as people write them, columns of them aligned, proofs that fold.

book/_static/book.js unfolds for print what is folded.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator
from sphinx_proof.nodes import proof_node

from evolvingdp.publish.showing.numerals import numeric, readable

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
    return node is not None and (isinstance(node, _VERBATIM) or _verbatim(node.parent))


def _align(group: nodes.tgroup) -> None:
    """Columns of numbers on the right, their headers too; tables of merged cells have none."""
    rows = [[*row.findall(nodes.entry)] for row in group.findall(nodes.row)]
    body = [[*row.findall(nodes.entry)] for part in group.findall(nodes.tbody) for row in part.findall(nodes.row)]
    if any("morecols" in entry for row in rows for entry in row):
        return
    for place in range(max(map(len, rows))):
        if numeric([row[place].astext() for row in body if len(row) > place]):
            for entry in (row[place] for row in rows if len(row) > place):
                entry["classes"] = [name for name in entry["classes"] if name != "text-left"] + ["text-right"]


def _open_proof(translator: HTML5Translator, node: nodes.Element) -> None:
    translator.body.append('<details class="proof-fold"><summary>Proof</summary>')


def _close_proof(translator: HTML5Translator, node: nodes.Element) -> None:
    translator.body.append("</details>")


def register(app: Sphinx) -> None:
    app.connect("doctree-read", _read)
    app.add_node(proof_node, override=True, html=(_open_proof, _close_proof))
