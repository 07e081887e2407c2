"""The rendered book, served on this machine, and one browser for all tests of it."""

from __future__ import annotations

import functools
import http.server
import os
import re
import shutil
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, sync_playwright

from browsing import Quiet, Visit, chromium, visited
from evolvingdp.book.checkout import Project
from evolvingdp.book.rendering.build import STAMP
from evolvingdp.book.rendering.offline import FLAGS, NAME, archive
from fresh import cloned, printed, run


@pytest.fixture(scope="session")
def site(built_book: Project) -> Iterator[str]:
    """The address of the rendered book, served on this machine."""
    handler = functools.partial(Quiet, directory=str(built_book.root / "_build" / "html"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def addresses(built_book: Project) -> list[str]:
    return [f"{file.removesuffix('.ipynb')}.html" for file in built_book.contents()]


@pytest.fixture(scope="session")
def unpacked(built_book: Project) -> Path:
    """What is in the zip that `evolvingdp zip` writes.  Every process of the run reads the same: nobody may change it."""
    folder, whole = (built_book.root.with_name(name) for name in ("unpacking", "unpacked"))
    with FileLock(whole.with_suffix(".lock")):
        if not whole.exists():
            with zipfile.ZipFile(archive(built_book)) as book:
                book.extractall(folder)
            folder.rename(whole)
    assert [path.name for path in whole.iterdir()] == [NAME]
    return whole / NAME


@pytest.fixture(scope="session")
def clone(built_book: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh clone, with the pages that this session rendered."""
    chromium()
    root = cloned(tmp_path_factory.mktemp("fresh") / "evolving-privacy")
    shutil.copytree(built_book.root / "_build" / "html", root / "_build" / "html")  # and no zip that is being written
    shutil.copy(built_book.root / "_build" / STAMP, root / "_build")
    return root


@pytest.fixture(scope="session")
def typed(clone: Path) -> subprocess.CompletedProcess[str]:
    """What all printed commands said, run there one after the other."""
    script = printed(clone)
    if not os.environ.get("NLTK_DATA"):
        script = re.sub(r"evolvingdp data (brown|addresses)", "", script)  # would be downloaded
    return run(clone, f"set -x\n{script}")


@pytest.fixture(scope="session")
def visits(site: str, unpacked: Path, browser: Browser, addresses: list[str]) -> dict[str, Visit]:
    """What two visits to every page show, by day on a desktop from a server and by night on a phone from disk."""
    return visited(browser, site, f"{unpacked.as_uri()}/", addresses)
