"""What a page shows: figures and their bundles, tables, claims, BibTeX; and an executed notebook as a page."""

from evolvingdp.core.public import attach

__all__, __getattr__, __dir__ = attach(__name__, page=["Page"])
