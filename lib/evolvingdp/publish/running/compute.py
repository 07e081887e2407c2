"""Running many notebooks side by side."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from evolvingdp.publish import stopping
from evolvingdp.publish.errors import NotebookError
from evolvingdp.publish.running.job import Job

Say = Callable[[str], None]


def compute(jobs: list[Job], say: Say, *, workers: int | None = None) -> None:
    """Run the jobs that the cache lacks, over processes, with a line for each; raises NotebookError after all have ended."""
    started = time.perf_counter()
    waiting = [job for job in jobs if not job.cached]
    for job in jobs:
        if job not in waiting:
            say(f"{job.notebook}: unchanged")
    failures = []
    if waiting:
        from evolvingdp.publish.running.execute import run  # papermill: half a second

        processes = min(workers or os.cpu_count() or 1, len(waiting))
        with ProcessPoolExecutor(processes, get_context("spawn"), stopping.end_with_parent) as pool:
            with stopping.starting():
                futures = {pool.submit(run, job): job for job in sorted(waiting, key=lambda job: not job.params.long)}
            for future in as_completed(futures):
                notebook, elapsed = futures[future].notebook, time.perf_counter() - started
                try:
                    say(f"{notebook}: done in {future.result():.1f} s")
                except NotebookError as error:
                    say(f"{notebook}: failed after {elapsed:.1f} s\n{error}")
                    failures.append(notebook)
                except BrokenExecutor:
                    raise NotebookError(
                        "a process that runs notebooks was killed, perhaps for want of memory (--workers 1 needs least); "
                        "the same command continues with what is finished"
                    ) from None
                except BaseException:  # such as a full disk, which the next notebook would meet, too
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
    say(f"{len(jobs)} notebooks, {len(waiting)} executed, {time.perf_counter() - started:.1f} s in total")
    if failures:
        raise NotebookError(f"{len(failures)} of {len(jobs)} notebooks failed: {', '.join(sorted(failures))}")
