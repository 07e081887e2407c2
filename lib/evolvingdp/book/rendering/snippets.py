"""Code that a page shows with what it gives, and addresses of what has moved to another page.

    ```{snippet}
    1 + 1
    ```

All snippets of a page run in order, in one fresh process, when the page is read; they share their names. Shown below each:
what it prints, and its last expression. One that raises is an error. A changed library has the page read again.

    ```{moved} evolving_in_depth
    ```

leaves an empty anchor for each label of that page which this page lacks: old addresses still lead there, and with a script
(explorers.js) on to the other page.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from evolvingdp.book.files import LIBRARY
from evolvingdp.core.tables import DATA

KERNEL = Path(__file__).with_name("kernel.py")
LOG = logging.getLogger(__name__)


class snippet(nodes.Element):  # noqa: N801 - nodes have small letters
    """A place for code and what it gives."""


class moved(nodes.Element):  # noqa: N801
    """A place for the anchors of what another page has now."""


class Snippet(SphinxDirective):
    has_content = True
    option_spec = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        for path in _library():
            self.env.note_dependency(path)
        made = snippet(code="\n".join(self.content), alt=self.options.get("alt", ""))
        self.set_source_info(made)
        return [made]


class Moved(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return [moved(to=self.env.relfn2path(self.arguments[0])[0], page=self.arguments[0])]


def outputs(codes: Sequence[str]) -> list[dict[str, str]]:
    """What each of `codes` gives, in one process; `error` is what stopped it."""
    program = [sys.executable, "-P", str(KERNEL)]
    done = subprocess.run(program, input=json.dumps(codes), capture_output=True, text=True, cwd=DATA.parent)
    return list(json.loads(done.stdout)) if done.returncode == 0 else [{"error": done.stderr}]


@cache
def _library() -> list[str]:
    """The files that may decide what a snippet gives."""
    code = (path for path in LIBRARY.rglob("*.py") if "book" not in path.relative_to(LIBRARY).parts)
    return [str(path) for path in (KERNEL, *code, *DATA.glob("*.csv*"))]


def _fill(app: Sphinx, doctree: nodes.document) -> None:
    places = list(doctree.findall(snippet))
    if not places:
        return
    given = outputs([place["code"] for place in places])
    for place, output in zip(places, [*given, *[{}] * len(places)], strict=False):
        if "error" in output:
            LOG.warning("a snippet of this page fails:\n%s", output["error"], location=place)
        code, text = place["code"], output.get("text", "").rstrip()
        box: list[nodes.Node] = [nodes.literal_block(code, code, language="python")]
        if text:
            box.append(nodes.literal_block(text, text, language="text", classes=["given"]))
        if html := output.get("html"):
            told = f' role="img" aria-label="{escape(place["alt"])}"' if html.startswith("<svg") else ""
            box.append(
                nodes.raw("", f'<div class="cell_output"><div class="output"{told}>{html}</div></div>', format="html")
            )
        place.replace_self(nodes.container("", *box, classes=["snippet"]))


def _leave_anchors(app: Sphinx, doctree: nodes.document, page: str) -> None:
    for place in list(doctree.findall(moved)):
        left = _names(app.env.get_doctree(place["to"])) - _names(doctree)
        anchors = "".join(f'<span id="{escape(name)}"></span>' for name in sorted(left))
        to = app.builder.get_relative_uri(page, place["to"]) if app.builder.format == "html" else ""
        place.replace_self(nodes.raw("", f'<div class="moved" data-to="{escape(to)}">{anchors}</div>', format="html"))


def _names(tree: nodes.document) -> set[str]:
    """What an address may end with, but for names that are counted."""
    every = {str(name) for node in tree.findall(nodes.Element) for name in node["ids"]}
    return {name for name in every if not re.fullmatch(r"(id|footnote-|equation-)\d+", name)}


def setup(app: Sphinx) -> None:
    for node in (snippet, moved):
        app.add_node(node)
    app.add_directive("snippet", Snippet)
    app.add_directive("moved", Moved)
    app.connect("doctree-read", _fill, priority=400)  # before the theme reads the page's words
    app.connect("doctree-resolved", _leave_anchors)
