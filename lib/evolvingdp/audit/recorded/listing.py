"""All scenes, and whether they return what is recorded."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator

import pandas as pd

from evolvingdp.audit import recorded
from evolvingdp.audit.recorded import fingerprints
from evolvingdp.audit.recorded.scene import DIGITS, OF_A_SEARCH, Fingerprint, Scene, fingerprint, same

_FRAME = {"scene", "listing", "fingerprints"}
AS_RECORDED, CHANGED, NEW, GONE = "as recorded", "changed", "not recorded", "no such scene"


def chapters() -> tuple[str, ...]:
    """The modules that hold scenes, below this package: "core", "evolving.rivals"."""
    above = f"{recorded.__name__}."
    every = (info.name.removeprefix(above) for info in pkgutil.walk_packages(recorded.__path__, above) if not info.ispkg)
    return tuple(name for name in every if name not in _FRAME)


def scenes(names: Iterable[str] | None = None) -> Iterator[tuple[str, str, Scene]]:
    """Module, name and scene, of all modules or of those of these `names`."""
    for chapter in chapters() if names is None else names:
        for name, scene in importlib.import_module(f"{recorded.__name__}.{chapter}").scenes().items():
            yield chapter, name, scene


def unchanged(name: str, now: Fingerprint) -> bool:
    """Whether a scene returns what is recorded; a search's result has fewer digits."""
    before = fingerprints.FINGERPRINTS.get(name)
    return before is not None and same(before, now, OF_A_SEARCH if name.startswith("searched") else DIGITS)


def table(names: Iterable[str] | None = None, one_in: int = 1) -> pd.DataFrame:
    """A row a scene: id, chapter, outputs (how many), recorded (the verdict); the first of each `one_in` scenes is played.

    Raises what a scene raises.
    """
    rows, known = [], tuple(scenes(names))
    for chapter, name, scene in known[::one_in]:
        now = fingerprint(name, scene)
        verdict = AS_RECORDED if unchanged(name, now) else CHANGED if name in fingerprints.FINGERPRINTS else NEW
        rows.append((name, chapter.partition(".")[0], now.outputs, verdict))
    there = {name for _, name, _ in known}
    rows += [(name, "", 0, GONE) for name in fingerprints.FINGERPRINTS if names is None and name not in there]
    return pd.DataFrame(rows, columns=["id", "chapter", "outputs", "recorded"])


def first_change(names: Iterable[str]) -> str:
    """The first scene of these chapters that does not return what is recorded, or raises; "" if all do."""
    for _, name, scene in scenes(names):
        try:
            if not unchanged(name, fingerprint(name, scene)):
                return name
        except Exception:
            return name
    return ""
