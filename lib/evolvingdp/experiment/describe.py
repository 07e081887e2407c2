"""Moved to evolvingdp.book.words."""

from evolvingdp.book.words import *  # noqa: F403
