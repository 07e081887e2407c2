"""Independent repetitions, one after the other: all randomness comes from named streams, so their order decides nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]


def rows(calls: Iterable[tuple[Any, ...]]) -> list[Row]:
    """The rows of every call (function, argument, ...) in order."""
    return [row for function, *arguments in calls for row in function(*arguments)]
