"""Files that are written whole or not at all, folders that one process holds, zips whose bytes depend on nothing else."""

from __future__ import annotations

import glob
import os
import platform
import shutil
import sys
import tempfile
import time
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evolvingdp.publish.errors import PublishError

WRITING = ".writing-"  # how a file is called until it is whole
HELD = ".held"  # the file that says who writes in a folder
DAY = 24 * 3600


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write, which becomes `path` at the end unless something was raised."""
    partial = path.with_name(f"{WRITING}{_owner()}{uuid.uuid4().hex[:12]}{path.suffix}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def scratch(folder: Path, prefix: str) -> Iterator[Path]:
    """A new folder in `folder`, removed at the end; first those that killed processes left there."""
    folder.mkdir(parents=True, exist_ok=True)
    clear(folder, prefix)
    made = Path(tempfile.mkdtemp(dir=folder, prefix=f"{prefix}{_owner()}"))
    try:
        yield made
    finally:  # where nothing can be removed any more, the next one does it
        shutil.rmtree(made, ignore_errors=True)


def clear(folder: Path, prefix: str = WRITING) -> None:
    """Remove what processes that have ended left in `folder`; of other machines' what is older than a day."""
    for left in folder.glob(f"{glob.escape(prefix)}*"):
        machine, process = f"{left.name.removeprefix(prefix)}--".split("-")[:2]
        here = machine == _machine() and process.isdigit()
        if not _runs(int(process)) if here else time.time() - left.lstat().st_mtime > DAY:
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)


def _owner() -> str:
    return f"{_machine()}-{os.getpid()}-"


def _machine() -> str:
    return platform.node().replace("-", "_")[:60]


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    return True


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """While it is open, no other process may hold `folder`; raises PublishError, which says who does."""
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / HELD).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            who = file.read() or "another process"
            raise PublishError(f"{str(folder)!r} is being written by {who}; wait until it ends, or stop it") from None
        except OSError:  # a file system without locks
            yield
            return
        file.truncate(0)
        command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200]
        file.write(f"process {os.getpid()} on {platform.node()} since {time.strftime('%H:%M:%S')} ({command})")
        file.flush()
        clear(folder)
        yield
        file.truncate(0)


def pack(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add a file that everybody may read, without a time, the same on every system."""
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the first time that a zip can hold
    entry.create_system, entry.external_attr = 3, 0o100644 << 16
    archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
