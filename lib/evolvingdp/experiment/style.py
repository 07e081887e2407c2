"""Moved to evolvingdp.book.style."""

from evolvingdp.book.style import *  # noqa: F403
