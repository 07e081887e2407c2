"""The environment variables under which notebooks and points of a sweep run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

# They run side by side, a core each: threads of their libraries on top would make them wait for each other, and sums in
# floating point would depend on the machine.
ONE_CORE = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL", "NUMBA")}


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
