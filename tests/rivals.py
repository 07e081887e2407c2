"""A gate for recommendations: no trivial transformation of what is recommended must be better by a tenth.

A chapter gives the stated error of what it recommends, and of each transformation (batch, drop, subsample, another noise
law, filter or cap) as a call; one that refuses its settings is no rival.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

BY = 0.1  # relative: what a choice on a grid, from another stream, may lose


def better(own: float, rivals: Mapping[str, Callable[[], float]], by: float = BY) -> dict[str, float]:
    """The rivals whose error is below `own` by more than a tenth of it; raises LookupError where all refuse."""
    errors = {}
    for name, error in rivals.items():
        try:
            errors[name] = float(error())
        except ValueError:
            continue
    if not errors:
        raise LookupError("a recommendation must have a rival that can be tried")
    return {name: error for name, error in errors.items() if not error >= (1 - by) * own}
