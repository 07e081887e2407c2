"""Links to the repository, in a book that is published from one: report an error, open or download a page's notebook.

Whoever publishes names the repository, EVOLVINGDP_REPOSITORY=https://github.com/OWNER/NAME (the workflow `pages` does). The
book that `make book` renders has none of these links: nothing in it is dead, and nobody is asked.
"""

from __future__ import annotations

import html
import os
import re
from typing import Any
from urllib.parse import quote

from sphinx.application import Sphinx

from evolvingdp.book.checkout import RESULTS
from evolvingdp.book.files import BookError

REPOSITORY = "EVOLVINGDP_REPOSITORY"
_GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)")


def links(repository: str, page: str) -> str:
    """The links below `page` (a file without ending) as HTML; raises BookError for another kind of address."""
    found = _GITHUB.fullmatch(repository)
    if not found:
        raise BookError(f"{REPOSITORY} must be https://github.com/OWNER/NAME, got {repository!r}")
    shown = {"Report an error on this page": f"{repository}/issues/new?title={quote(page)}"}
    if page.startswith(RESULTS):
        source = f"notebooks/{page.removeprefix(RESULTS)}.ipynb"
        shown["Open the notebook in Binder"] = f"https://mybinder.org/v2/gh/{found[1]}/HEAD?urlpath=lab/tree/{source}"
        shown["Download it"] = f"{repository}/raw/HEAD/{source}"
    each = (f'<a href="{html.escape(address)}">{words}</a>' for words, address in shown.items())
    return f'<p class="forked">{" · ".join(each)}</p>'


def _add(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    if os.environ.get(REPOSITORY) and doctree is not None:
        context["body"] += links(os.environ[REPOSITORY], page)


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", _add)
