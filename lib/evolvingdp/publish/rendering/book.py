"""The whole book: run what is stale, in parallel; put the results beside the prose; render."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from evolvingdp.publish.comparing import beside, preset
from evolvingdp.publish.errors import BookError
from evolvingdp.publish.files import scratch
from evolvingdp.publish.guards import MACHINE
from evolvingdp.publish.rendering.copies.offline import UNFINISHED
from evolvingdp.publish.rendering.forked import REPOSITORY
from evolvingdp.publish.running.compute import Say, compute
from evolvingdp.publish.running.execute import export
from evolvingdp.publish.running.job import MANIFEST, Job, problems, read_manifest
from evolvingdp.publish.sources import pages
from evolvingdp.publish.sources.project import Project

# the command of this name, which ends when this process does, however that ends
JUPYTER_BOOK = """import sys
from evolvingdp.publish import stopping
stopping.end_with_parent(int(sys.argv.pop(1)))
from jupyter_book.cli.main import main
main()"""


def build(project: Project, preset: str, say: Say, *, workers: int | None = None) -> None:
    """Execute every notebook of the table of contents at `preset` and render the HTML to _build/html.

    Raises NotebookError when a notebook fails, BookError when the strict rendering does; results of notebooks that
    finished are kept.
    """
    jobs = [Job.make(project, notebook, preset) for notebook in project.pages()]
    compute(jobs, say, workers=workers)
    for job in jobs:
        if problems(project, job.notebook) or not _shows(job):
            export(job, project.results / job.notebook.split("/")[0], as_page=True)
    _remove_orphans(project)
    unfinished, repository = project.root / "_build" / UNFINISHED, os.environ.get(REPOSITORY, "")
    if not unfinished.exists() and pages.current(project, repository):
        say(f"nothing has changed: {project.root / '_build' / 'html' / 'index.html'}")
        return
    render(project, say)
    pages.stamp(project, repository)


def _shows(job: Job) -> bool:
    return read_manifest(job.project.results / job.notebook / MANIFEST).get("key") == job.key


def build_yours(project: Project, path: Path, say: Say, *, workers: int | None = None) -> Path:
    """Compute what the preset at `path` changes and what it is compared with, render both; returns the first page.

    Raises ParameterError before anything runs where the file is wrong, NotebookError or BookError as `build` does.
    """
    chosen = preset.read(project, path)
    home = preset.home(project, chosen, path)
    others = [Job.make(project, notebook, chosen.base) for notebook in project.pages()]
    say(f"ours: preset {chosen.base}, seed 0")
    compute(others, say, workers=workers)
    say(f"yours: {chosen.file}")
    compute(list(chosen.yours.values()), say, workers=workers)
    copy = beside.stage(project, chosen, others, home / "source")
    shutil.rmtree(home / "html", ignore_errors=True)
    render(copy, say)
    with scratch(home, ".html-") as folder:
        shutil.copytree(copy.root / "_build" / "html", folder / "html")
        (folder / "html").rename(home / "html")
    return home / "html" / f"{beside.YOURS}/index.html"


def render(project: Project, say: Say) -> None:
    """Strict jupyter-book build of `project`; a warning is an error.  Raises BookError.

    While it runs, and after it was killed or has failed, a file says so: then all pages are made anew.
    """
    started, unfinished = time.perf_counter(), project.root / "_build" / UNFINISHED
    if unfinished.exists():
        shutil.rmtree(unfinished.parent / ".doctrees", ignore_errors=True)  # or it would not warn, nor render, again
    unfinished.parent.mkdir(exist_ok=True)
    unfinished.touch()
    command = [
        sys.executable,
        "-P",
        "-c",
        JUPYTER_BOOK,
        str(os.getpid()),
        "build",
        str(project.root),
        "-W",
        "-n",
        "--keep-going",
    ]
    finished = subprocess.run(command, cwd=project.root, capture_output=True, text=True)
    if finished.returncode:
        refused = re.search(r"\[Errno (\d+)\] .*", finished.stderr)
        if refused and int(refused[1]) in MACHINE:
            raise BookError(f"the pages cannot be written: {refused[0]}")
        raise BookError(f"the book does not render:\n{finished.stdout[-4000:]}\n{finished.stderr[-6000:]}")
    unfinished.unlink()
    say(f"rendered in {time.perf_counter() - started:.1f} s: {project.root / '_build' / 'html' / 'index.html'}")


def _remove_orphans(project: Project) -> None:
    """Results of notebooks that no longer exist."""
    kept = {project.results / notebook for notebook in project.notebooks()}
    for path in project.results.glob("*/*"):
        if path.with_suffix("") not in kept:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
