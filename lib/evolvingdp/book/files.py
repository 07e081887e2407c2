"""What every command rests on: errors in one line, files that are written whole or not at all, folders that one process
holds, and an end at once, with all that was started, when somebody stops it.
"""

from __future__ import annotations

import errno
import glob
import os
import shutil
import signal
import tempfile
import threading
import time
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from multiprocessing import parent_process, resource_tracker
from pathlib import Path
from typing import Any

import click

import evolvingdp

LIBRARY = Path(evolvingdp.__file__).parent
REPOSITORY = LIBRARY.parents[1]  # an editable install: lib/ stands in the repository
REFUSED, FAILED = 2, 3  # exit codes; 1 is a verdict of `audit`, and of nothing else


class PublishError(Exception):
    """A command could not do what it was asked for; the message says why."""


class NotebookError(PublishError):
    """A notebook raised, and the message is its own traceback; or several notebooks failed."""


WRITING = ".writing-"  # how a file is called until it is whole
HELD = ".held"  # whoever writes in a folder has locked this file
DAY = 24 * 3600  # no run takes as long


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write, which becomes `path` at the end unless something was raised."""
    partial = path.with_name(f"{WRITING}{uuid.uuid4().hex[:12]}{path.suffix}")
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
    made = Path(tempfile.mkdtemp(dir=folder, prefix=prefix))
    try:
        yield made
    finally:  # where nothing can be removed any more, a later one does it
        shutil.rmtree(made, ignore_errors=True)


def clear(folder: Path, prefix: str = WRITING, age: float = DAY) -> None:
    """Remove what killed processes left in `folder` so many seconds ago or earlier."""
    for left in folder.glob(f"{glob.escape(prefix)}*"):
        if time.time() - left.lstat().st_mtime >= age:
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)


@contextmanager
def held(folder: Path) -> Iterator[float]:
    """While it is open, no other process may hold `folder`; raises PublishError where one does.

    Gives the age in seconds from which on what stands half written there is nobody's: a day where nothing can be locked.
    """
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    age = 0.0
    with (folder / HELD).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PublishError(f"another process writes in {str(folder)!r}: wait until it ends, or stop it") from None
        except OSError:  # a file system without locks
            age = DAY
        clear(folder)
        yield age


def pack(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add a file that everybody may read, without a time, the same on every system."""
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the first time that a zip can hold
    entry.create_system, entry.external_attr = 3, 0o100644 << 16
    archive.writestr(entry, content, zipfile.ZIP_DEFLATED)


SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
LINE = "Stopped; the same command continues with what is finished.\n"


def listen() -> None:
    """From now on a signal ends this process and its descendants."""
    for number in SIGNALS:
        signal.signal(number, _stop)


def _stop(number: int, frame: Any) -> None:
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    with suppress(OSError):  # nobody may be left to read it, and no file may be free
        os.write(2, LINE.encode())
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what threads and what they still start say of the descendants' end
    end_descendants()
    signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)  # so that make and a shell's loop stop, too


def end_descendants() -> None:
    """Kill every process below this one.  All are halted first, so that none starts another meanwhile."""
    try:
        import psutil
    except ImportError:  # without notebooks there are no descendants
        return
    halted = set[psutil.Process]()
    while found := {process for process in psutil.Process().children(recursive=True) if process not in halted}:
        for process in found:
            with suppress(psutil.Error):
                process.suspend()
        halted |= found
    for process in halted:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(halted, timeout=3)


@contextmanager
def starting() -> Iterator[None]:
    """Processes that are started while it is open leave Ctrl-C, which the terminal sends to all, to this one."""
    resource_tracker.ensure_running()  # multiprocessing's own, which unblocks the signal when it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent(number: int = 0) -> None:
    """Let this process end when its parent does, however that ends: that of a pool's, or the process of this `number`."""
    threading.Thread(target=_watch, args=(number,), daemon=True).start()


def _watch(number: int) -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    elif number:
        while os.getppid() == number:
            time.sleep(0.2)
    else:
        return
    end_descendants()
    os._exit(1)


# what the machine refuses, and no fault of a program
MACHINE = {getattr(errno, f"E{name}") for name in ("NOSPC", "DQUOT", "ROFS", "ACCES", "PERM", "IO", "NAMETOOLONG", "FBIG")}
_FILE = (errno.ENOTDIR, errno.EEXIST)  # where a folder should be


class Command(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """With the command in each error, also where an option lacks its value; what takes one value is given once."""
        with click.core.augment_usage_errors(ctx):
            _, _, typed = self.make_parser(ctx).parse_args([*args])
            for each in typed:
                if isinstance(each, click.Option) and not each.multiple and typed.count(each) > 1:
                    raise click.UsageError(f"{each.opts[0]} may be given once, got it {typed.count(each)} times")
            return super().parse_args(ctx, args)


class Refused(click.ClickException):
    exit_code = REFUSED


class Failed(click.ClickException):
    exit_code = FAILED


@contextmanager
def one_line() -> Iterator[None]:
    """Decorates a command: expected errors become a line on stderr, and the exit code of what was refused or failed."""
    from evolvingdp.core.checks import ParameterError  # and numpy, for which help does not wait

    try:
        yield
    except ParameterError as error:
        raise Refused(str(error)) from None
    except PublishError as error:
        raise Failed(str(error)) from None
    except shutil.Error as error:  # of a copied folder; it names each file with what the machine said
        raise Failed(f"the results could not be copied: {error.args[0][0][2]}") from None
    except OSError as error:
        if error.errno in _FILE:
            raise Refused(f"{error.filename} must be a folder, and a file stands in its way") from None
        if error.errno not in MACHINE:
            raise
        raise Failed(f"{error.strerror}: {error.filename or 'the results could not be written'}") from None
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package == "evolvingdp" or find_spec(package):
            raise
        raise Failed(f"this command needs {package}, which is not installed: make installs it in the checkout") from None


def checkout() -> Path:
    """The repository that this package is installed from; raises ParameterError for a copy, without the notebooks."""
    if os.environ.get("EVOLVINGDP_NOTEBOOKS"):
        return notebooks_folder().parent
    if not (REPOSITORY / "_toc.yml").is_file():
        from evolvingdp.core.checks import ParameterError

        raise ParameterError(
            "this command needs the book's notebooks, which no installed package has: clone the repository, run make there"
        )
    return REPOSITORY


def notebooks_folder() -> Path:
    """Where the notebooks are that this process runs."""
    return Path(os.environ.get("EVOLVINGDP_NOTEBOOKS") or REPOSITORY / "notebooks")


@contextmanager
def in_checkout() -> Iterator[None]:
    """`one_line`, for a command that an installed package cannot run."""
    with one_line():
        checkout()
        yield


@contextmanager
def alone() -> Iterator[None]:
    """`in_checkout`, for a command that writes in _build, as one process at a time may."""
    with in_checkout(), held(checkout() / "_build"):
        yield
