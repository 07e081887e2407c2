"""A sweep from its command to its summary: validate all, run what is left, show how far it is, write the tables."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evolvingdp.publish.errors import SweepError
from evolvingdp.publish.files import held
from evolvingdp.publish.sources.project import Project, metric_of
from evolvingdp.publish.sweeping import dealing
from evolvingdp.publish.sweeping import grid as sweeps
from evolvingdp.publish.sweeping.cluster import address_of, check_one_engine, connected
from evolvingdp.publish.sweeping.dealing import Failure
from evolvingdp.publish.sweeping.grid import Sweep
from evolvingdp.publish.sweeping.store import Store

Say = Callable[[str], None]
EVERY = 5.0  # seconds between two lines of progress
SURE = 10  # points whose time says something about the others


@dataclass
class Progress:
    """Says how many points are done, at most every `EVERY` seconds, and about how long the rest takes.

    The first point of each worker waits for the worker's start and imports: the clock of the estimate starts after the
    `warm`-th point, and nothing is said of the rest until `SURE` more have ended.
    """

    total: int
    done: int
    say: Say
    warm: int = 1
    clock: Callable[[], float] = time.monotonic
    said: float = field(init=False)
    started: float = field(init=False)
    before: int = field(init=False)
    warmed: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.said = self.started = self.clock()
        self.before = self.done

    def __call__(self) -> None:
        self.done += 1
        now, here = self.clock(), self.done - self.before - self.warm
        if not here:
            self.warmed = now
        if now - self.said >= EVERY or self.done == self.total:
            rest = ""
            if here >= SURE and self.done < self.total:
                rest = f", about {_duration((now - self.warmed) / here * (self.total - self.done))} left"
            self.say(f"{self.done} of {self.total} points, {_duration(now - self.started)}{rest}")
            self.said = now


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def run(
    project: Project, out: Path, *, say: Say, scheduler: str | None = None, workers: int | None = None, **what: Any
) -> None:
    """Compute the points that `out` lacks and write its tables; `what` goes to `sweep.make`.

    Raises ParameterError before anything runs, SweepError at the end where points failed.
    """
    check_one_engine(scheduler, workers)
    sweep, store = sweeps.make(project, **what), Store(out)
    store.check(sweep.manifest, project.root)
    points = sweep.points
    left = [point for point in points if not store.has(point.key)]
    before, failures = len(points) - len(left), list[Failure]()
    with ExitStack() as opened:
        if left:
            if scheduler is not None:
                address_of(scheduler)  # before anything is said or written
            count = None if scheduler is not None else min(workers or os.cpu_count() or 1, len(left))
            say(f"{sweep.notebook}: {len(points)} points, {before} finished before; {_where(scheduler, count)}")
            client = opened.enter_context(connected(scheduler, count, sweep.notebook))
        else:
            say(f"{sweep.notebook}: {len(points)} points, all finished before")
        opened.enter_context(held(out))
        store.open(sweep.manifest)
        if left:
            failures = dealing.compute(sweep, store, client, left, Progress(len(points), before, say, count or 1))
        failed = {failure.key for failure in failures}
        keys = [point.key for point in points if point.key not in failed]
        if keys:
            _write(sweep, store, keys, failures)
    if failures:
        from evolvingdp.publish.sweeping import report

        told = "\n".join(map(report.told, failures))
        raise SweepError(
            f"{len(failures)} of {len(points)} points failed, the others are in {out}; the same command tries again\n{told}"
        )


def _where(scheduler: str | None, count: int | None) -> str:
    return f"running on {scheduler}" if scheduler is not None else f"running on {count} worker{'s' if count != 1 else ''}"


def _write(sweep: Sweep, store: Store, keys: list[str], failures: list[Failure]) -> None:
    import pandas as pd  # a refused parameter need not wait for tables and figures

    from evolvingdp.publish.showing import crate
    from evolvingdp.publish.sweeping import report

    values = store.tabulate(keys)
    claims = pd.read_parquet(store.folder / "claims.parquet")
    page = report.page(sweep, values, claims, failures, dealing.record(sweep.notebook))
    store.write("index.html", page.encode())
    described = crate.metadata(
        f"Sweep of {sweep.notebook}",
        metric_of(sweep.notebook).meaning,
        sweep.command,
        dealing.record(sweep.notebook) | {"params": sweep.grid, "seed": list(sweep.seeds)},
        ("index.html", "sweep.parquet", "values.parquet", "claims.parquet", "timing.csv", "sweep.json"),
    )
    store.write(crate.NAME, described)
