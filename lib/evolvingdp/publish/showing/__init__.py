"""What a page shows: figures and their bundles, tables, claims, BibTeX; and an executed notebook as a page."""

from evolvingdp.publish.showing.page import Page

__all__ = ["Page"]
