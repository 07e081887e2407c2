"""The list of pages beside every page, made as often as it differs.

For every page Sphinx copies the sections of all pages, and every name of the reference among them, only to drop what is no
title. Here the template's function `toctree` starts from the titles, and the pages that the list does not name, those of the
library's files, share one with their folder.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from functools import cache
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

BEFORE = 400  # the theme's own functions, which call `toctree`


def titles(contents: nodes.bullet_list) -> nodes.bullet_list:
    """A page's table of contents without its sections: its title and the list of pages below it, as `titles_only` asks."""
    short = contents.deepcopy()
    for entry in short.children:
        if isinstance(entry, nodes.Element) and len(entry) > 1:
            below = list(entry.findall(addnodes.toctree))
            entry[1:] = [nodes.bullet_list("", *below)] if below else []
    return short


def setup(app: Sphinx) -> None:
    made: dict[tuple[object, ...], str] = {}

    @cache
    def short() -> dict[str, nodes.bullet_list]:
        return {page: titles(contents) for page, contents in app.env.tocs.items()}

    def give(app: Sphinx, page: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
        toctree: Callable[..., str] = context["toctree"]

        def shared(**options: Any) -> str:
            whole = app.env.tocs
            if not options.get("titles_only"):
                return toctree(**options)
            place = (page if page in whole else posixpath.dirname(page), page in whole, *options.items())
            if place not in made:
                app.env.tocs = short()
                try:
                    made[place] = toctree(**options)
                finally:
                    app.env.tocs = whole
            return made[place]

        context["toctree"] = shared

    app.connect("html-page-context", give, priority=BEFORE)
