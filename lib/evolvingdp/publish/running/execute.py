"""Moved to evolvingdp.book.running."""

from evolvingdp.book.running import *  # noqa: F403
