"""What the theme leaves out for people who listen to a page or read it without a mouse, put into the HTML at build time.

Each fix is a pure function from HTML to HTML; `setup` hangs them into Sphinx.  Colours and focus rings are in
book/_static/book.css, what depends on the size of the window in book/_static/book.js.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

from sphinx.application import Sphinx

_SWITCH = re.compile(r"(<a [^>]*>)(.*?)(</a>\s*<details[^>]*>\s*<summary)>", re.DOTALL)
_EMPTY_HEADER = re.compile(r"<th\b([^>]*)>((?:\s|</?p>)*)</th>")
_TAG = re.compile(r"<[^>]*>")


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


def _fix(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    if "body" in context:
        context["body"] = unique_ids(headed_tables(plain_bibliography(context["body"])))
    toctree: Callable[..., Any] | None = context.get("generate_toctree_html")
    if toctree is not None:
        context["generate_toctree_html"] = lambda *args, **options: named_switches(str(toctree(*args, **options)))


def setup(app: Sphinx) -> None:
    """Fix every page, after the theme has set up its own functions."""
    app.connect("html-page-context", _fix, priority=900)
