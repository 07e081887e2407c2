"""The environment variables under which notebooks and points of a sweep run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# They run side by side, a core each: threads of their libraries on top would make them wait for each other, and sums in
# floating point would depend on the machine.
ONE_CORE = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL", "NUMBA")}
# The GNU C library otherwise hands large arrays back to the system, which fills the next ones with zeros: an eighth of the
# time of a notebook that makes many.
KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 25), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}


def own_settings(folder: Path) -> dict[str, str]:
    """Settings below `folder` in place of the user's: a matplotlibrc, IPython's start-up files and Jupyter's configuration
    would change figures under the same key."""
    (folder / "matplotlibrc").touch()
    home = {"IPYTHONDIR": "ipython", "JUPYTER_CONFIG_DIR": "jupyter", "MATPLOTLIBRC": "matplotlibrc"}
    return {name: str(folder / place) for name, place in home.items()} | {"JUPYTER_NO_CONFIG": "1", "PYTHONSTARTUP": ""}


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
