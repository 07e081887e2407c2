"""Moved to evolvingdp.book.result."""

from evolvingdp.book.result import *  # noqa: F403
