"""Moved to evolvingdp.book.engine."""

from evolvingdp.book.engine import *  # noqa: F403
