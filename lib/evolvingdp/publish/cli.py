"""Moved to evolvingdp.book.cli."""

from evolvingdp.book.cli import main as main
