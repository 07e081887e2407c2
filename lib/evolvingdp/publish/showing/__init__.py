"""What a page shows: figures and their bundles, tables, claims, BibTeX; and an executed notebook as a page."""

from typing import TYPE_CHECKING

from evolvingdp.core.public import attach

if TYPE_CHECKING:
    from evolvingdp.publish.showing.page import Page as Page

__all__, __getattr__, __dir__ = attach(__name__, page=["Page"])
