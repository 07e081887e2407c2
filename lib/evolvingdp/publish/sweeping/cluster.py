"""Where a sweep runs: processes of this machine, or an existing dask cluster whose workers run the same code."""

from __future__ import annotations

import gc
import json
import logging
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from evolvingdp.experiment import ParameterError, engine
from evolvingdp.publish import stopping
from evolvingdp.publish.running.environment import ONE_CORE, environment

if TYPE_CHECKING:  # distributed is imported where it is used: half a second that the other commands need not wait
    from distributed import Client

_ADDRESS = re.compile(r"([a-z]+://)?[\w.\-\[\]:]+")
ANSWER = 30  # seconds that a scheduler and its first worker may take to answer


@contextmanager
def connected(scheduler: str | None, workers: int | None, notebook: str) -> Iterator[Client]:
    """A client of the cluster at the address `scheduler`, or of `workers` processes (None: one per core) of this machine.

    Raises ParameterError where no scheduler or worker answers, or a worker would not compute what this process would.
    """
    from distributed import LocalCluster

    if scheduler is not None:
        with _existing(scheduler, notebook) as client:
            yield client
        return
    with stopping.starting():
        local = LocalCluster(
            n_workers=workers or os.cpu_count() or 1,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",  # no port that another sweep holds, and not for other machines
            host="127.0.0.1",
            memory_limit=None,  # Params check what a run needs against the machine's memory
            silence_logs=logging.CRITICAL,  # a worker that died is started again; points that fail are reported at the end
            env=ONE_CORE,
        )
    with local, local.get_client() as client:
        yield client


@contextmanager
def shared(scheduler: str | None, workers: int | None, notebook: str) -> Iterator[None]:
    """While it is open, a notebook's repetitions are shared over the cluster (`core.engine`); neither given: one core."""
    check_one_engine(scheduler, workers)
    if scheduler is None and workers is None:
        yield
        return
    with connected(scheduler, workers, notebook) as client, environment({engine.SCHEDULER: client.scheduler.address}):
        yield


def check_one_engine(scheduler: str | None, workers: int | None) -> None:
    if scheduler is not None and workers is not None:
        raise ParameterError(f"workers are those of the scheduler {scheduler}; leave --workers away")


@contextmanager
def _existing(scheduler: str, notebook: str) -> Iterator[Client]:
    from distributed import Client

    for name in ("distributed", "distributed.client", "asyncio", "tornado", "tornado.application"):  # each has its level
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what they would say of a lost scheduler, one line says
    client, reason = None, ""
    try:
        client = Client(address_of(scheduler), timeout=ANSWER)
    except (OSError, ValueError, TypeError, RuntimeError, ImportError) as error:  # TypeError: tls:// without certificates
        reason = str(error) or "no answer"
    if client is None:
        gc.collect()  # what is left of it closes now, and not with a traceback when the interpreter ends
        raise _no_scheduler(scheduler, reason)
    with client:
        try:
            client.wait_for_workers(1, timeout=ANSWER)
            _check(client, notebook)
        except TimeoutError:
            raise ParameterError(f"scheduler {scheduler} has no workers; start some: dask worker {scheduler}") from None
        except OSError as error:
            raise _no_scheduler(scheduler, f"it went away: {error}") from None
        yield client


def address_of(scheduler: str) -> str:
    """`scheduler`, or the address that stands in it where it is a file that `dask scheduler --scheduler-file` writes.

    Waits for the file, as both may have been started by one script.  Raises ParameterError for what is no address or file.
    """
    if not scheduler.endswith(".json"):
        if not _ADDRESS.fullmatch(scheduler):
            raise _no_scheduler(scheduler, "no address")
        return scheduler
    end = time.monotonic() + ANSWER
    while not Path(scheduler).is_file() and Path(scheduler).parent.is_dir() and time.monotonic() < end:
        time.sleep(0.1)
    try:
        return str(json.loads(Path(scheduler).read_text())["address"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _no_scheduler(scheduler, str(error)) from None


def _no_scheduler(scheduler: str, why: str) -> ParameterError:
    return ParameterError(
        "scheduler must be the address or the scheduler file of a running dask scheduler, such as tcp://127.0.0.1:8786, "
        f"got {scheduler!r} ({' '.join(why.split())})"
    )


def _check(client: Client, notebook: str) -> None:
    """Raise ParameterError unless every worker has the sources, data, versions that this process has."""
    from evolvingdp.publish.sweeping import point

    ours = point.sources(notebook)
    for worker, theirs in client.run(point.sources, notebook, on_error="return").items():
        if not isinstance(theirs, dict):
            raise ParameterError(f"worker {worker} cannot run this version of evolvingdp: {' '.join(str(theirs).split())}")
        differing = [f"{part} ({theirs.get(part)}, here {ours[part]})" for part in ours if theirs.get(part) != ours[part]]
        if differing:
            raise ParameterError(f"worker {worker} would compute something else, it differs in {'; '.join(differing)}")
