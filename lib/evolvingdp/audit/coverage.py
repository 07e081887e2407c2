"""Which mechanisms the library has, found by looking: the ledger must have an entry for each."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

PARTS = (
    "core", "heavy_hitters", "evolving", "evolving.rivals", "heavy_hitters.sketches", "heavy_hitters.trust",
    "continual_mean", "continual_mean.sums", "sparse_vector", "sparse_vector.streams",
)  # fmt: skip
RANDOMIZES = {"randomize", "report", "report_all_signs", "collect", "step", "release", "draw", "votes_yes", "draw_hashes"}
NO_MECHANISM = {
    "evolvingdp.core.noise.Noise",
    "evolvingdp.core.noise.Exponential",
}  # a protocol; one-sided, of sparse vectors


def modules() -> Iterator[ModuleType]:
    for part in PARTS:
        package = importlib.import_module(f"evolvingdp.{part}")
        for info in pkgutil.iter_modules(package.__path__, f"evolvingdp.{part}."):
            if not info.ispkg:
                yield importlib.import_module(info.name)


def randomizing_classes() -> Iterator[str]:
    """Public classes of the library that draw something, or collect what is drawn."""
    for module in modules():
        for name, kind in vars(module).items():
            if inspect.isclass(kind) and kind.__module__ == module.__name__ and not name.startswith("_"):
                methods = {method for method, value in vars(kind).items() if inspect.isfunction(value)}
                if methods & RANDOMIZES:
                    yield f"{module.__name__}.{name}"


def guaranteeing_modules() -> set[str]:
    """Modules whose opening words state a guarantee."""
    return {module.__name__ for module in modules() if "**Guarantee" in (module.__doc__ or "")}


def without_entry(covered: Iterable[Any]) -> list[str]:
    """Mechanisms, and modules with a guarantee, that none of the classes and functions `covered` stands for."""
    names = {f"{one.__module__}.{one.__qualname__}" for one in covered}
    classes = set(randomizing_classes()) - NO_MECHANISM - names
    return sorted(classes | (guaranteeing_modules() - {name.rsplit(".", 1)[0] for name in names}))
