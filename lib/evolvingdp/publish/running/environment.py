"""Moved to evolvingdp.book.running."""

from evolvingdp.book.files import environment as environment
from evolvingdp.book.running import *  # noqa: F403
