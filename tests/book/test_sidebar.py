"""The list of pages beside every page: what Sphinx would make, made less often."""

from __future__ import annotations

import pytest
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from evolvingdp.book.rendering.theme import sidebar

CONTENTS = ".. toctree::\n\n   {}\n"
PAGES = {
    "index": "Book\n====\n\n" + CONTENTS.format("rooms/first") + "\n" + CONTENTS.format("rooms/second"),
    "rooms/first": "First\n=====\n\nIts section\n-----------\n\n" + CONTENTS.format("inner") + "\nAnother\n-------\n",
    "rooms/inner": "Inner\n=====\n\nIts section\n-----------\n\n.. py:function:: something()\n",
    "rooms/second": "Second\n======\n\nIts section\n-----------\n",
}
OPTIONS = {"titles_only": True, "includehidden": True, "collapse": False, "maxdepth": 4}


@pytest.fixture(scope="module")
def lists(tmp_path_factory) -> dict[str, tuple[str, str, str, str]]:
    """By page, what Sphinx makes and what the pages get: of titles, and of sections, too."""
    root, found = tmp_path_factory.mktemp("listed"), {}
    (root / "rooms").mkdir()
    (root / "conf.py").touch()
    for name, text in PAGES.items():
        (root / f"{name}.rst").write_text(text)
    with docutils_namespace():
        app = Sphinx(root, root, root / "html", root / "trees", "html", status=None, warning=None)
        sidebar.setup(app)

        def listed(context) -> tuple[str, str]:
            return context["toctree"](**OPTIONS), context["toctree"](**OPTIONS | {"titles_only": False})

        def before(app, page, template, context, doctree):
            found[page] = listed(context)

        def after(app, page, template, context, doctree):
            found[page] += listed(context)

        def others(app):
            return [(f"_modules/{name}", {"body": ""}, "page.html") for name in ("one", "two", "deep/three")]

        app.connect("html-page-context", before, priority=sidebar.BEFORE - 1)
        app.connect("html-page-context", after)
        app.connect("html-collect-pages", others)
        app.build()
    return found


def test_every_page_gets_what_sphinx_makes_of_whole_tables_of_contents(lists):
    assert {*PAGES, "genindex", "search", "_modules/one", "_modules/two", "_modules/deep/three"} == set(lists)
    for page, (theirs, their_sections, ours, our_sections) in lists.items():
        assert (ours, our_sections) == (theirs, their_sections), page
        assert "Its section" not in ours
        assert all(f"{title}</a>" in ours for title in ("First", "Inner", "Second"))
