"""A package's public names, each imported when it is first used, so that asking for one does not import them all."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def attach(package: str, **names_of: list[str]) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of `package`, whose module `m` holds the public names `names_of["m"]`."""
    module_of = {name: module for module, names in names_of.items() for name in names}

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{module_of[name]}"), name)

    return sorted(module_of), get, lambda: sorted(module_of)
