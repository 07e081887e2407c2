"""What the generators of tests share: how many settings they try, and calls that are watched.

`PRIVACY_SETTINGS` times as many settings as here, from the master seed `PRIVACY_SEED`; both are printed with what fails.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from evolvingdp.audit.registry.listing import mechanisms
from evolvingdp.core.seeds import stream

TIMES, SEED = int(os.environ.get("PRIVACY_SETTINGS", "1")), int(os.environ.get("PRIVACY_SEED", "0"))
MECHANISMS = {one.id: one for one in mechanisms()}
REFUSALS = (TypeError, ValueError)


def settings(name: str, count: int) -> list[tuple[int, np.random.Generator]]:
    """So many numbered generators, one for each setting that is tried of what has this name."""
    return [(number, stream(SEED, "privacy", name, number)) for number in range(count * TIMES)]


class Watched:
    """A generator that counts the calls of it."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng, self.calls, self._children = rng, 0, []

    @property
    def drawn(self) -> int:
        return self.calls + sum(child.drawn for child in self._children)

    def spawn(self, count: int) -> list[Watched]:
        children = [Watched(child) for child in self._rng.spawn(count)]
        self._children += children
        return children

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._rng, name)

        def called(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            return method(*args, **kwargs)

        return called


def refusal(call: Callable[[], Any]) -> str:
    """What `call` is refused with; empty where it returns."""
    try:
        call()
    except REFUSALS as refused:
        return str(refused)
    return ""
