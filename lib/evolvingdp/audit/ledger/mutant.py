"""A mutant of the code: a line of a file of the library, changed for as long as a row is measured."""

from __future__ import annotations

import ast
import importlib
import inspect
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import evolvingdp

_OF_NO_MECHANISM = {f"evolvingdp.audit.{name}" for name in ("ledger.listing", "exact.draws", "exact.uncertain")}
LIBRARY = Path(evolvingdp.__path__[0])


@dataclass(frozen=True)
class Mutant:
    """`old`, which stands once in `path` (below the library's folder), becomes `new`."""

    path: str
    old: str
    new: str

    def source(self, library: Path = LIBRARY) -> str:
        """The file with the change.  Raises LookupError unless `old` stands in it once."""
        text = (library / self.path).read_text()
        if text.count(self.old) != 1:
            raise LookupError(f"{self.path} must hold {self.old!r} once, it does {text.count(self.old)} times")
        return text.replace(self.old, self.new)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The library with the change in it, in this process."""
        module = importlib.import_module("evolvingdp." + self.path.removesuffix(".py").replace("/", "."))
        with running(module, self.source()):
            yield


@contextmanager
def running(module: ModuleType, source: str | ast.Module) -> Iterator[None]:
    """`module` as it is in `source`: its functions keep their place and get the code that they have there."""
    changed = dict(_codes(compile(source, str(module.__file__), "exec")))
    swaps = [
        (function, function.__code__, changed[function.__code__.co_qualname])
        for function in _functions(module)
        if changed.get(function.__code__.co_qualname, function.__code__) != function.__code__
    ]
    if not swaps:
        raise LookupError(f"{module.__name__}: the change is in no function")
    try:
        for function, _, code in swaps:
            function.__code__ = code
        forget()
        yield
    finally:
        for function, code, _ in swaps:
            function.__code__ = code
        forget()


def broken(measure: Callable[[], float], path: str, old: str, new: str) -> Callable[[], float]:
    """`measure` of the library with a mutant in it; infinite where what must hold for any measurement does not."""

    def measured() -> float:
        with Mutant(path, old, new).applied():
            try:
                return measure()
            except AssertionError:  # a check of the measurement itself
                return math.inf

    return measured


def _codes(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """All functions of compiled source, by name; of those with one name the last is what it means."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and inner.co_name != "<lambda>":  # which is no name
            yield inner.co_qualname, inner
            yield from _codes(inner)


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Those that are written in it, also methods and properties."""
    for holder in (module, *(kind for kind in vars(module).values() if inspect.isclass(kind))):
        if holder is not module and holder.__module__ != module.__name__:
            continue
        for value in vars(holder).values():
            function = _of(value)
            if isinstance(function, FunctionType) and function.__code__.co_filename == module.__file__:
                yield function


def _of(value: Any) -> Any:
    if isinstance(value, property):
        return value.fget
    if isinstance(value, cached_property):
        return value.func
    while hasattr(value, "__func__") or hasattr(value, "__wrapped__"):
        value = getattr(value, "__func__", None) or value.__wrapped__
    return value


def forget() -> None:
    """Let caches compute again: what they hold may be of other code, but for those of mathematics alone."""
    for name, module in list(sys.modules.items()):
        if name.startswith("evolvingdp.") and name not in _OF_NO_MECHANISM:
            for one in _caches(module, len(vars(module))):
                one.cache_clear()


@cache
def _caches(module: ModuleType, names: int) -> list[Any]:
    """The cached functions of a module that has so many names, and of its classes: looked for once, as it takes longer."""
    own = [kind for kind in vars(module).values() if inspect.isclass(kind) and kind.__module__ == module.__name__]
    held = [getattr(value, "__func__", value) for holder in (module, *own) for value in vars(holder).values()]
    return [value for value in held if hasattr(value, "cache_clear") and value is not _caches]
