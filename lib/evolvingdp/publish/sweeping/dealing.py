"""A sweep's points dealt to the workers of a cluster, a few at a time, and what becomes of them."""

from __future__ import annotations

import time
from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError as Cancelled
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from evolvingdp.publish.errors import SweepError
from evolvingdp.publish.sources import digest, provenance
from evolvingdp.publish.sweeping import point
from evolvingdp.publish.sweeping.grid import Point, Sweep
from evolvingdp.publish.sweeping.store import Store

if TYPE_CHECKING:
    from distributed import Client

AHEAD = 4  # points a core under way: no worker waits for its next one, and neither side holds many
PATIENCE = 30.0  # seconds without a worker
LOOK = 2.0  # seconds between two looks at the workers


@dataclass(frozen=True)
class Failure:
    """A point that has no result: its command, and the traceback or what ended its workers."""

    key: str
    command: str
    reason: str


def compute(sweep: Sweep, store: Store, client: Client, left: list[Point], done: Callable[[], None]) -> list[Failure]:
    """Run the points `left` on the workers of `client`; each is kept here as it arrives, since workers may share no disk.

    A point whose worker dies is given to another one, a few times (dask's allowed-failures), then once more with no other
    point beside it, which may have been the reason.  Calls `done` after each point.  Raises SweepError where the scheduler
    or all workers are gone.
    """
    sources, shared = point.sources(sweep.notebook), record(sweep.notebook)

    def submit(each: Point) -> Any:
        values = each.params.model_dump(mode="json")
        wanted = sources | digest.of_files(values)
        return client.submit(point.compute, sweep.notebook, values, each.seed, shared, wanted, pure=False)

    suspects: list[Point] = []
    failures = []
    for most, waiting in ((AHEAD, left), (0, suspects)):
        for each, outcome in _dealt(client, submit, waiting, most):
            if outcome.file:
                store.keep(each.key, outcome.file)
            elif most and outcome.killed:
                suspects.append(each)
                continue
            else:
                command = provenance.command_of(sweep.notebook, each.params, each.seed)
                failures.append(Failure(each.key, command, outcome.traceback))
            done()
    return failures


def _dealt(
    client: Client, submit: Callable[[Point], Any], points: Iterable[Point], most: int
) -> Iterator[tuple[Point, point.Outcome]]:
    """Each of `points` with its outcome, `most` under way for each core (0: one at a time)."""
    waiting, running, workers = deque(points), dict[Any, Point](), _Workers(client)
    try:
        while waiting or running:
            while waiting and len(running) < max(most * workers.cores(), 1):
                each = waiting.popleft()
                running[submit(each)] = each
            for future in _ended(running):
                each = running.pop(future)
                yield each, _outcome(future)
                future.release()
    except (Cancelled, CancelledError, OSError) as error:
        if isinstance(error, OSError) and client.status == "running":
            raise  # it is ours: a full disk
        raise SweepError("the scheduler went away; all finished points are kept, the same command continues") from None


def _ended(running: dict[Any, Point]) -> set[Any]:
    from distributed import wait

    try:
        ended: set[Any] = wait(list(running), timeout=LOOK, return_when="FIRST_COMPLETED").done
    except TimeoutError:
        return set()
    return ended


def _outcome(future: Any) -> point.Outcome:
    from distributed import KilledWorker

    try:
        outcome: point.Outcome = future.result()
    except KilledWorker:
        return point.Outcome(traceback="each worker that ran it died, perhaps for want of memory\n", killed=True)
    except OSError:
        raise
    except Exception as error:
        return point.Outcome(traceback=f"{type(error).__name__}: {error}\n")
    return outcome


class _Workers:
    """Looks now and then how many there are; raises SweepError when there have been none for `PATIENCE` seconds."""

    def __init__(self, client: Client) -> None:
        self.client, self.count = client, 0
        self.looked, self.seen = -LOOK, time.monotonic()

    def cores(self) -> int:
        now = time.monotonic()
        if now - self.looked >= LOOK:
            self.looked, self.count = now, sum(self.client.nthreads().values())
            if self.count:
                self.seen = now
            if now - self.seen > PATIENCE:
                raise SweepError(
                    f"the cluster has had no worker for {PATIENCE:.0f} s; all finished points are kept: start workers, then "
                    "the same command continues"
                )
        return self.count


def record(notebook: str) -> dict[str, str]:
    """Provenance that all points of one go share."""
    packages = dict(point.sources(notebook))
    digests = {f"{part}_sha256": packages.pop(part) for part in ("library", "data", "sweep")}
    python = packages.pop("python")
    told = ", ".join(f"{name} {installed}" for name, installed in packages.items())
    return {"commit": provenance.commit(), "version": version("evolvingdp"), **digests, "python": python, "packages": told}
