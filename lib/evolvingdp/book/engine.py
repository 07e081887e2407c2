"""Independent repetitions on all cores: one after the other, unless the runner has named a dask scheduler.

All randomness comes from named streams, so a repetition has the same rows wherever it runs; they come back in order.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable
from typing import Any

SCHEDULER = "EVOLVINGDP_SCHEDULER"  # the address that `evolvingdp run --workers N` or `--scheduler ADDRESS` sets

Row = dict[str, Any]


def rows(calls: Iterable[tuple[Any, ...]]) -> list[Row]:
    """The rows of every call (function, argument, ...) in order; the functions are a module's own and share nothing."""
    address = os.environ.get(SCHEDULER)
    if address is None:
        return [row for call in calls for row in _called(*call)]
    from distributed import Client

    with Client(address) as client:
        found = client.gather([client.submit(_unpacked, pickle.dumps(call), pure=False) for call in calls])
    return [row for part in found for row in part]


def _unpacked(call: bytes) -> list[Row]:
    """Bytes, since a scheduler would unpack the call itself, and has none of the notebooks' modules."""
    return _called(*pickle.loads(call))


def _called(function: Callable[..., Iterable[Row]], *arguments: Any) -> list[Row]:
    return list(function(*arguments))
