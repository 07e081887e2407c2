"""What the theme's pages get otherwise, at build time: names for those who listen, formulas that stay on a line,
links to a published repository, and nothing that no page needs.

Colours and focus rings are in book/_static/book.css, what depends on the size of the window in book/_static/book.js.
"""

from __future__ import annotations

import html
import os
import re
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

from docutils import nodes
from sphinx.application import Sphinx
from sphinx_proof.nodes import proof_node

from evolvingdp.book.checkout import RESULTS
from evolvingdp.book.files import PublishError

# The HTML of a page

_MENDED = (
    (r'role="doc-biblioentry"', 'role="listitem"'),  # which ARIA 1.3 has deprecated and no list allows
    (r"<th\b([^>]*)>((?:\s|</?p>)*)</th>", r"<td\1>\2</td>"),  # the empty corner of a table is no header
    (r'<th class="head\b', '<th scope="col" class="head'),
    (r' id="proof(-content)?"', ""),  # the one id that sphinx-proof gives to all proofs
    (r'<span class="pre">(-[^<\s]+)</span>', r'<span class="pre joined">\1</span>'),  # an option stays whole
)
_LONG = re.compile(r'(?<=<span class="pre">)([^<\s-][^<\s]{19,}|[^<\s-][^<\s]*\.)(?=</span>)')
_BREAKS = re.compile(r"[_/]+|(?<=[a-z])\.(?!\d)")
_SEARCHABLE, _TEXT = re.compile(r'<table class="searchable\b.*?</table>', re.DOTALL), re.compile(r"(?<=>)[^<>]+(?=<)")
_FORMULA = r'<span class="math[^"]*">[^<]*</span>'
_GLUED = re.compile(rf"(?:[^\s<>]*{_FORMULA}(?:</(?:strong|em)>)?)+[^\s<>]*")
_SWITCH = re.compile(r"(<a [^>]*>)((?:(?!</a>).)*)(</a>\s*<details[^>]*>\s*<summary)>", re.DOTALL)


def mended(body: str) -> str:
    """The HTML of a page without what trips readers: a long name may break behind its dots and underscores, in a table that
    can be searched every name; a formula stays on one line with the letters that touch it."""
    for wrong, better in _MENDED:
        body = re.sub(wrong, better, body)
    body = _LONG.sub(lambda name: _breakable(name[0]), body)
    body = _SEARCHABLE.sub(lambda table: _TEXT.sub(lambda text: _breakable(text[0]), table[0]), body)
    return _GLUED.sub(_joined, body)


def _breakable(name: str) -> str:
    return _BREAKS.sub(r"\g<0><wbr>", name)


def _joined(match: re.Match[str]) -> str:
    touching = re.sub(_FORMULA, "", match[0])
    whole = touching and not re.search(r"</?(?:strong|em)>", touching)
    return f'<span class="joined">{match[0]}</span>' if whole else match[0]


def named_switches(sidebar: str) -> str:
    """The arrows that open a chapter in the sidebar say which chapter: the theme gives them a picture and no name."""

    def named(match: re.Match[str]) -> str:
        chapter = html.escape(" ".join(html.unescape(re.sub(r"<[^>]*>", "", match[2])).split()))
        return f'{match[1]}{match[2]}{match[3]} aria-label="Sections of {chapter}">'

    return _SWITCH.sub(named, sidebar)


def _fix(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    if "body" in context:
        context["body"] = mended(context["body"])
        if os.environ.get(REPOSITORY) and doctree is not None:
            context["body"] += links(os.environ[REPOSITORY], page)
    toctree: Callable[..., Any] | None = context.get("generate_toctree_html")
    if toctree is not None:
        context["generate_toctree_html"] = lambda *args, **options: named_switches(str(toctree(*args, **options)))


# Whoever publishes the book names its repository (the workflow `pages` does); the book that `make book` renders has no links
# to any: nothing in it is dead, and nobody is asked.

REPOSITORY = "EVOLVINGDP_REPOSITORY"


def made_with() -> list[str]:
    """What pages are made with besides their sources: Python, all packages, and the fork whose address they have."""
    packages = sorted({f"{found.name} {found.version}" for found in metadata.distributions()})
    return [sys.version, os.environ.get(REPOSITORY, ""), *packages]


def links(repository: str, page: str) -> str:
    """Below `page`: report an error, open or download its notebook; raises PublishError for another kind of address."""
    found = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+)", repository)
    if not found:
        raise PublishError(f"{REPOSITORY} must be https://github.com/OWNER/NAME, got {repository!r}")
    shown = {"Report an error on this page": f"{repository}/issues/new?title={quote(page)}"}
    if page.startswith(RESULTS):
        source = f"notebooks/{page.removeprefix(RESULTS)}.ipynb"
        shown["Open the notebook in Binder"] = f"https://mybinder.org/v2/gh/{found[1]}/HEAD?urlpath=lab/tree/{source}"
        shown["Download it"] = f"{repository}/raw/HEAD/{source}"
    each = (f'<a href="{html.escape(address)}">{words}</a>' for words, address in shown.items())
    return f'<p class="forked">{" · ".join(each)}</p>'


def _read(app: Sphinx, doctree: nodes.document) -> None:
    """Proofs fold: their first word is on the fold."""
    for proof in doctree.findall(proof_node):
        first = next(iter(proof.findall(nodes.Text)))
        first.parent.replace(first, nodes.Text(first.removeprefix("Proof. ")))


# What no page needs: the theme sends the drawings of two thousand icons, 1.5 MB.

_ICON = re.compile(  # name:[width,height,[other names],"code",drawing]
    r"""(?<=[{,])(?:"([\w-]+)"|(\w+)):\[\d+,\d+,\[([^\]]*)\],"[0-9a-f]+",(?:"[^"]*"|\["[^"]*","[^"]*"\])\],?"""
)


def kept(drawings: str, shown: set[str]) -> str:
    """The script `drawings` with those icons alone whose name, or another name of theirs, is among `shown`."""
    return _ICON.sub(
        lambda icon: icon[0] if {icon[1] or icon[2], *re.findall(r'"([^"]+)"', icon[3])} & shown else "", drawings
    )


def _cut_icons(app: Sphinx, exception: Exception | None) -> None:
    drawings = Path(app.outdir) / "_static" / "scripts" / "fontawesome.js"
    if exception or not drawings.exists():
        return
    sources = [path for kind in ("html", "js") for path in Path(app.outdir).rglob(f"*.{kind}") if path != drawings]
    shown = {name.decode() for path in sources for name in re.findall(rb"""["' ]fa-([a-z0-9-]+)""", path.read_bytes())}
    drawings.write_text(kept(drawings.read_text(), shown))


def setup(app: Sphinx) -> None:
    """Fix every page, its HTML after the theme has set up its own functions."""
    app.connect("html-page-context", _fix, priority=900)
    app.connect("doctree-read", _read)
    app.connect("build-finished", _cut_icons)
    fold = '<details class="proof-fold"><summary>Proof</summary>', "</details>"
    opened, closed = (lambda translator, _, text=text: translator.body.append(text) for text in fold)
    app.add_node(proof_node, override=True, html=(opened, closed))
