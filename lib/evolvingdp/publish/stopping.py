"""Stopping: Ctrl-C, SIGTERM or a closed terminal ends a command and all that it started at once, with one line.

What is finished is kept, what is half done was not yet where anybody looks for it; the same command continues.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import parent_process, resource_tracker
from typing import Any

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
LINE = "Stopped; the same command continues with what is finished.\n"


def listen() -> None:
    """From now on a signal ends this process and its descendants."""
    for number in SIGNALS:
        signal.signal(number, _stop)


def _stop(number: int, frame: Any) -> None:
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    end_descendants()
    with suppress(OSError):  # nobody may be left to read it
        os.write(2, LINE.encode())
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
    """Let this process end when its parent does, however that ends: it would start further work for nobody.

    The parent is that of a pool's process, or the process of this `number`, which has started this one.
    """
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
