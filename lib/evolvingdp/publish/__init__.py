"""Running notebooks, caching, provenance, figure bundles, the book and the command line."""

from evolvingdp.publish.page import Page

__all__ = ["Page"]
