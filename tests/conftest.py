"""What several folders share: the book at the quick preset, built once for all processes; and a book of one notebook."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from filelock import FileLock
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from evolvingdp.book.running import KEPT_MEMORY, ONE_CORE

# before numpy is imported, and before test processes start: they run side by side, a core each, as notebooks do
os.environ.update(ONE_CORE | KEPT_MEMORY)

if TYPE_CHECKING:  # the process that gives tests to others imports this file, too, before any of them starts
    from evolvingdp.book.checkout import Project

MADE = (
    ".venv*",
    ".git",
    ".cache",
    "runs",
    "build",
    "__pycache__",
    "*.egg-info",
    ".*_cache",
    ".hypothesis",
)
hypothesis.settings.register_profile("no clock", deadline=None)  # what an example takes is the machine's, not the code's
hypothesis.settings.load_profile("no clock")
TOGETHER = {  # files whose tests look at the same visit of every page, and at what the same clone has made
    "test_pages.py": "pages",
    "test_accessibility.py": "pages",
    "test_shown_commands.py": "commands",
    "test_offline.py": "commands",
}
LONGEST = (*TOGETHER, "test_labels.py", "test_long_commands.py", "test_planner.py")


class ByFile(LoadFileScheduling):
    """A file's tests run in one process, and so do those `TOGETHER`.

    A class, and not xdist's own groups: xdist 3.8 marks them where pytest 9.2 no longer looks, and says nothing.
    """

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return TOGETHER.get(Path(file).name, file)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than there are cores: tests often wait, for a kernel, a browser or a process that they stop."""
    return (os.cpu_count() or 1) + 1


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest starts at once, with what builds the book; who needs that, and is quick, comes last."""
    of_the_book = {item.path.name for item in items if "built_book" in getattr(item, "fixturenames", ())}
    place = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (place.get(item.path.name, len(place)), item.path.name in of_the_book))


@pytest.fixture(scope="session")
def built_book(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The whole book at the quick preset, built strictly from a copy, so that your own build stays as it is.  Where that
    one is of this preset and of these sources, the copy has its pages: nothing is rendered again.

    Every process of the run reads the same copy: nobody may change it.
    """
    from evolvingdp.book.checkout import Project
    from evolvingdp.book.rendering.build import build
    from support import CACHE, REPOSITORY

    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    project = Project(shared / "book")
    with FileLock(shared / "book.lock"), pytest.MonkeyPatch.context() as environment:
        environment.setenv("EVOLVINGDP_CACHE", CACHE)
        environment.delenv("EVOLVINGDP_NOTEBOOKS", raising=False)  # of a small book that this process reads, too
        if not (project.root / "_build" / "html" / "index.html").exists():
            shutil.copytree(REPOSITORY, project.root, ignore=_made, dirs_exist_ok=True)
            build(project, "quick", print)
    return project


def _made(folder: str, names: list[str]) -> set[str]:
    if Path(folder).name == "_build":
        return {name for name in names if name not in ("html", ".rendered")}
    return set(shutil.ignore_patterns(*MADE)(folder, names))


@pytest.fixture(scope="module")
def small_book(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The book of `toy`."""
    import toy

    with pytest.MonkeyPatch.context() as environment:
        yield toy.enter(toy.book(tmp_path_factory.mktemp("small")), environment)
