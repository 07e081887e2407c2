"""Moved to evolvingdp.book.planned."""

from evolvingdp.book.planned import plan as plan
