"""Fixtures that several folders share: a copy of the book's sources, built once at the quick preset."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from evolvingdp.publish.rendering.book import build
from evolvingdp.publish.sources.project import Project
from support import REPOSITORY

MADE = (".venv", ".git", ".cache", "_build", "results", "runs", "__pycache__", "*.egg-info", ".*_cache", ".hypothesis")


@pytest.fixture(scope="session")
def built_book(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The whole book at the quick preset, built strictly from a copy, so that your own build stays as it is."""
    copy = tmp_path_factory.mktemp("book") / "repository"
    shutil.copytree(REPOSITORY, copy, ignore=_made)
    os.environ.setdefault("EVOLVINGDP_CACHE", str(REPOSITORY / ".cache"))  # runs are shared with `make book PRESET=quick`
    project = Project(copy)
    build(project, "quick", print)
    return project


def _made(folder: str, names: list[str]) -> set[str]:
    ignored = shutil.ignore_patterns(*MADE)(folder, names)
    if Path(folder).name == "benchmarks":
        ignored.discard("results")  # those are sources: measured once, shown in the book
    return ignored
