"""What is asked of every method, apart from how its notebook is called."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """What every method has to promise, and the domain."""

    epsilon: float
    delta: float
    beta: float
    n_elements: int
