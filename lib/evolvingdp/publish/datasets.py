"""Moved to evolvingdp.book.data."""

from evolvingdp.book.data import *  # noqa: F403
