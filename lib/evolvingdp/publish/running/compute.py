"""Running many notebooks side by side."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from contextlib import closing
from functools import partial
from multiprocessing import get_context

from evolvingdp.publish import stopping
from evolvingdp.publish.errors import NotebookError
from evolvingdp.publish.running.job import Job

Say = Callable[[str], None]


def compute(jobs: list[Job], say: Say, *, workers: int | None = None) -> None:
    """Run the jobs that the cache lacks, side by side, with a line for each; raises NotebookError after all have ended."""
    started = time.perf_counter()
    waiting = [job for job in jobs if not job.cached]
    for job in jobs:
        if job not in waiting:
            say(f"{job.notebook}: unchanged")
    failures = []
    with closing(_results(waiting, min(workers or os.cpu_count() or 1, len(waiting)))) as results:
        for job, result in results:
            try:
                say(f"{job.notebook}: done in {result():.1f} s")
            except NotebookError as error:
                say(f"{job.notebook}: failed after {time.perf_counter() - started:.1f} s\n{error}")
                failures.append(job.notebook)
            except BrokenExecutor:
                raise NotebookError(
                    "a process that runs notebooks was killed, perhaps for want of memory (--workers 1 needs least); "
                    "the same command continues with what is finished"
                ) from None
    say(f"{len(jobs)} notebooks, {len(waiting)} executed, {time.perf_counter() - started:.1f} s in total")
    if failures:
        raise NotebookError(f"{len(failures)} of {len(jobs)} notebooks failed: {', '.join(sorted(failures))}")


def _results(waiting: list[Job], processes: int) -> Generator[tuple[Job, Callable[[], float]]]:
    """Each job as it ends, with what gives the seconds that it took, or raises; one at a time is run by this process."""
    if not waiting:
        return
    from evolvingdp.publish.running.execute import run  # papermill: half a second

    in_order = sorted(waiting, key=lambda job: not job.params.long)
    if processes == 1:
        yield from ((job, partial(run, job)) for job in in_order)
        return
    with ProcessPoolExecutor(processes, get_context("spawn"), stopping.end_with_parent) as pool:
        with stopping.starting():
            futures = {pool.submit(run, job): job for job in in_order}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result
        except BaseException:  # nobody asks further: an error such as a full disk, which the next notebook would meet, too
            pool.shutdown(wait=False, cancel_futures=True)
            raise
