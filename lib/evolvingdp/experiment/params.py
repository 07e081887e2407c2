"""Moved to evolvingdp.book.params."""

from evolvingdp.book.params import *  # noqa: F403
