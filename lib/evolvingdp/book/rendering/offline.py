"""The zip, which reads from disk; and where chromium is, which prints the PDF."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

from evolvingdp.book.checkout import Project
from evolvingdp.book.files import PublishError, pack, replacing
from evolvingdp.book.rendering.build import check_rendered
from evolvingdp.core.checks import ParameterError

NAME = "evolving-privacy"
_CHROMIUMS = ("chromium-headless-shell", "chromium", "google-chrome")  # the first has no window to lay out and paint
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium() -> str:
    """Where chromium is: CHROMIUM, or the first of its usual names on PATH; raises ParameterError or PublishError."""
    named = os.environ.get("CHROMIUM")
    found = next(filter(None, map(shutil.which, [named] if named else _CHROMIUMS)), None)
    if not found:
        wrong = f"CHROMIUM is {named!r}, which is no program" if named else "chromium was not found"
        told = f"{wrong}; install it (Debian: apt-get install chromium), or set CHROMIUM to its path"
        raise ParameterError(told) if named else PublishError(told)
    return found


def archive(project: Project) -> Path:
    """Write _build/evolving-privacy.zip, the HTML book for reading from disk."""
    check_rendered(project)
    root, target = project.root / "_build" / "html", project.root / "_build" / f"{NAME}.zip"
    files = sorted(path for path in root.rglob("*") if path.is_file() and path.name != ".buildinfo")
    with replacing(target) as partial, zipfile.ZipFile(partial, "w") as book:
        for path in files:
            pack(book, f"{NAME}/{path.relative_to(root).as_posix()}", _for_disk(path))
    return target


def _for_disk(path: Path) -> bytes:
    """The file's content; search shows no excerpts, since from disk a browser lets no page read another."""
    content = path.read_bytes()
    if path.parent.name == "html" and path.name == "index.html" and b"<link" not in content:  # it leads on to the first page
        return b'<link rel="icon" href="favicon.ico">' + content
    if path.name != "documentation_options.js":
        return content
    shown, hidden = b"SHOW_SEARCH_SUMMARY: true", b"SHOW_SEARCH_SUMMARY: false"
    if shown not in content and hidden not in content:
        raise PublishError(f"{path.name} no longer has SHOW_SEARCH_SUMMARY: search would fail from disk")
    return content.replace(shown, hidden)
