"""Moved to evolvingdp.book.files."""

from evolvingdp.book.files import *  # noqa: F403
