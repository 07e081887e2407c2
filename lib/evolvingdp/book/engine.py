"""Independent repetitions, one after the other: all randomness comes from named streams, so their order decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Row = dict[str, Any]


def rows(calls: Iterable[tuple[Any, ...]]) -> list[Row]:
    """The rows of every call (function, argument, ...) in order."""
    return [row for call in calls for row in _called(*call)]


def _called(function: Callable[..., Iterable[Row]], *arguments: Any) -> Iterable[Row]:
    return function(*arguments)
