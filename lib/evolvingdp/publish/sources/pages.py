"""Whether the rendered pages are still those of the sources: a book in which nothing has changed is not rendered again."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from evolvingdp.publish.sources.digest import digest_files
from evolvingdp.publish.sources.project import Project

_STAMP = ".rendered"  # in _build: what the pages were made of, and the pages
_MADE = {"_build", "runs", "build", "__pycache__"}  # and what begins with a dot or ends with .egg-info


def stamp(project: Project, *settings: str) -> None:
    """The pages are rendered: remember it."""
    (project.root / "_build" / _STAMP).write_text(_state(project, settings))


def kept(project: Project, *settings: str) -> tuple[bool, bool]:
    """Of the last stamp, whether the sources are the same, and whether `settings`, packages and pages are."""
    stamped = project.root / "_build" / _STAMP
    before, now = stamped.read_text().split() if stamped.is_file() else [""], _state(project, settings).split()
    return before[0] == now[0], before[-1] == now[-1]


def _state(project: Project, settings: tuple[str, ...]) -> str:
    packages = sorted(f"{found.name} {found.version}" for found in metadata.distributions())
    told = "\n".join([sys.version, *settings, *packages, *_pages(project.root / "_build" / "html")])
    sources = digest_files(_sources(project.root), project.root)
    return f"{sources} {hashlib.sha256(told.encode()).hexdigest()}\n"


def _sources(root: Path) -> Iterator[Path]:
    for folder, inner, files in os.walk(root):
        inner[:] = [
            name for name in inner if name not in _MADE and not name.startswith(".") and not name.endswith(".egg-info")
        ]
        yield from (Path(folder, name) for name in files)


def _pages(html: Path) -> list[str]:
    """Names, sizes and times of what is rendered: nobody has touched it."""
    found = sorted(path for path in html.rglob("*") if path.is_file())
    return [f"{path.relative_to(html)} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in found]
