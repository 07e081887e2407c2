"""What a notebook's cells import: its checked parameters, the page that publishes, and the look of figures."""

from evolvingdp.book.labels import Label
from evolvingdp.book.own import own, release
from evolvingdp.book.page import Page
from evolvingdp.book.params import parameters
from evolvingdp.book.style import INKS, MARKERS, PALETTE, THEORY, TRUTH, canvas, lines, looks, names_beside, use
from evolvingdp.book.words import curves, ends, short, span

__all__ = [
    "INKS",
    "MARKERS",
    "PALETTE",
    "THEORY",
    "TRUTH",
    "Label",
    "Page",
    "canvas",
    "curves",
    "ends",
    "lines",
    "looks",
    "names_beside",
    "own",
    "parameters",
    "release",
    "short",
    "span",
    "use",
]
