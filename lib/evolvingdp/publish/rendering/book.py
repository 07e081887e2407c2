"""The whole book: run what is stale, in parallel; put the results beside the prose; render."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from evolvingdp.publish.running.execute import MANIFEST, Job, NotebookError, export, problems, read_manifest, run
from evolvingdp.publish.sources.project import Project

Say = Callable[[str], None]


class BookError(Exception):
    """The book was not built; the message says why."""


def build(project: Project, preset: str, say: Say, *, workers: int | None = None) -> None:
    """Execute every notebook of the table of contents at `preset` and render the HTML to _build/html.

    Raises BookError when a notebook or the strict rendering fails; results of notebooks that finished are kept.
    """
    jobs = [Job.make(project, notebook, preset) for notebook in project.pages()]
    compute(jobs, say, workers=workers)
    for job in jobs:
        if problems(project, job.notebook) or not _shows(job):
            export(job, project.results / job.notebook.split("/")[0], as_page=True)
    _remove_orphans(project)
    render(project, say)


def _shows(job: Job) -> bool:
    return read_manifest(job.project.results / job.notebook / MANIFEST).get("key") == job.key


def compute(jobs: list[Job], say: Say, *, workers: int | None = None) -> None:
    """Run the jobs that the cache lacks, over processes, with a line for each; raises BookError after all have ended."""
    started = time.perf_counter()
    waiting = [job for job in jobs if not job.cached]
    for job in jobs:
        if job not in waiting:
            say(f"{job.notebook}: unchanged")
    failures = []
    if waiting:
        processes = min(workers or os.cpu_count() or 1, len(waiting))
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            futures = {pool.submit(run, job): job for job in waiting}
            for future in as_completed(futures):
                notebook, elapsed = futures[future].notebook, time.perf_counter() - started
                try:
                    say(f"{notebook}: done in {future.result():.1f} s")
                except NotebookError as error:
                    say(f"{notebook}: failed after {elapsed:.1f} s\n{error}")
                    failures.append(notebook)
    say(f"{len(jobs)} notebooks, {len(waiting)} executed, {time.perf_counter() - started:.1f} s in total")
    if failures:
        raise BookError(f"{len(failures)} of {len(jobs)} notebooks failed: {', '.join(sorted(failures))}")


def render(project: Project, say: Say) -> None:
    """Strict jupyter-book build of `project`; a warning is an error.  Raises BookError."""
    started = time.perf_counter()
    jupyter_book = str(Path(sys.executable).with_name("jupyter-book"))
    command = [jupyter_book, "build", str(project.root), "-W", "-n", "--keep-going"]
    finished = subprocess.run(command, cwd=project.root, capture_output=True, text=True)
    if finished.returncode:
        shutil.rmtree(project.root / "_build" / ".doctrees", ignore_errors=True)  # or the next build would not warn again
        raise BookError(f"the book does not render:\n{finished.stdout[-4000:]}\n{finished.stderr[-6000:]}")
    say(f"rendered in {time.perf_counter() - started:.1f} s: {project.root / '_build' / 'html' / 'index.html'}")


def _remove_orphans(project: Project) -> None:
    """Results of notebooks that no longer exist."""
    kept = {project.results / notebook for notebook in project.notebooks()}
    for path in project.results.glob("*/*"):
        if path.with_suffix("") not in kept:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
