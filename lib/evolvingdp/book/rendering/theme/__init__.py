"""What the theme's pages get otherwise: formulas, fixes for those who listen or use the keyboard, lists, links, icons."""

from __future__ import annotations

from sphinx.application import Sphinx

from evolvingdp.book.rendering.theme import accessible, forked, formulas, icons, sidebar


def setup(app: Sphinx) -> None:
    for part in (accessible, sidebar, formulas, forked, icons):
        part.setup(app)
