"""Files that are written whole or not at all, and zips that have the same bytes for the same content."""

from __future__ import annotations

import uuid
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WRITING = ".writing-"  # how a file is called until it is whole


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write, which becomes `path` at the end unless something was raised."""
    partial = path.with_name(f"{WRITING}{uuid.uuid4().hex}{path.suffix}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def pack(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add a file that everybody may read, without a time, the same on every system."""
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the first time that a zip can hold
    entry.create_system, entry.external_attr = 3, 0o100644 << 16
    archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
