"""The whole book: run what is stale, in parallel; put the results beside the prose; render."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from evolvingdp.book.checkout import Project, digest_files
from evolvingdp.book.files import MACHINE, PublishError
from evolvingdp.book.rendering import theme
from evolvingdp.book.running import MANIFEST, Job, Say, compute, export, problems, read_manifest, touched

UNFINISHED = ".rendering"  # stands in _build until the pages are whole
# the command of this name, which ends when this process does, however that ends
JUPYTER_BOOK = """import sys
from evolvingdp.book import files
files.end_with_parent(int(sys.argv.pop(1)))
from jupyter_book.cli.main import main
main()"""


def build(project: Project, preset: str, say: Say, *, workers: int | None = None) -> None:
    """Execute every notebook of the table of contents at `preset` and render the HTML to _build/html.

    Raises NotebookError when a notebook fails, PublishError when the strict rendering does; results of notebooks that
    finished are kept.
    """
    jobs = [Job.make(project, notebook, preset) for notebook in project.pages()]
    compute(jobs, say, workers=workers)
    for job in jobs:
        if not _shows(job):
            export(job, project.results / job.paper, as_page=True)
    stamp, made_of = project.root / "_build" / STAMP, _made_of(project)  # what is edited from here on is not shown
    if _finished(project) and stamp.read_text() == made_of:
        say(f"nothing has changed: {project.root / '_build' / 'html' / 'index.html'}")
        return
    render(project, say)
    stamp.write_text(made_of)


def _shows(job: Job) -> bool:
    """Whether the page of this notebook in book/results is what `job` has computed."""
    manifest = read_manifest(job.project.results / job.notebook / MANIFEST)
    wanted = {"key": job.key, "params": job.params.as_json(), "seed": job.seed}
    return wanted.items() <= manifest.items() and not touched(job.project.results / job.paper, manifest)


def render(project: Project, say: Say) -> None:
    """Strict jupyter-book build of `project`; a warning is an error.  Raises PublishError.

    While it runs, and after it was killed or has failed, a file says so: then all pages are made anew.
    """
    started, unfinished = time.perf_counter(), project.root / "_build" / UNFINISHED
    if unfinished.exists():
        for made in (".doctrees", "html/_modules"):  # or it would not warn, nor render, again
            shutil.rmtree(unfinished.parent / made, ignore_errors=True)
    sources = unfinished.parent / "html" / "_modules"  # viewcode makes a file's page anew only where the file is newer:
    asked = [page.stat().st_mtime for page in (project.root / "book" / "api").glob("*.md")]
    if (sources / "index.html").exists() and max(asked, default=0.0) > (sources / "index.html").stat().st_mtime:
        shutil.rmtree(sources)  # what the library's pages show for the first time would have no place in it
    unfinished.parent.mkdir(exist_ok=True)
    unfinished.touch()
    options = ["build", str(project.root), "-W", "-n", "--keep-going"]
    command = [sys.executable, "-P", "-c", JUPYTER_BOOK, str(os.getpid()), *options]
    finished = subprocess.run(command, cwd=project.root, capture_output=True, text=True)
    if finished.returncode:
        refused = re.search(r"\[Errno (\d+)\] .*", finished.stderr)
        if refused and int(refused[1]) in MACHINE:
            raise PublishError(f"the pages cannot be written: {refused[0]}")
        raise PublishError(f"the book does not render:\n{finished.stdout[-4000:]}\n{finished.stderr[-6000:]}")
    unfinished.unlink()
    say(f"rendered in {time.perf_counter() - started:.1f} s: {project.root / '_build' / 'html' / 'index.html'}")


# Whether the rendered pages are still those of the sources: a book in which nothing has changed is not rendered again.

STAMP = ".rendered"  # in _build: what the pages were made of
SOURCES = ("_config.yml", "_toc.yml", "CITATION.cff", "book", "notebooks", "benchmarks", "data", "tests", "lib")


def check_rendered(project: Project) -> None:
    """Raise PublishError unless _build/html shows the sources and results as they are now."""
    if not _finished(project):
        raise PublishError("the book is not rendered yet, or not all of it; run make book (or make book PRESET=quick) first")
    stale = [problem for notebook in project.pages() for problem in problems(project, notebook)]
    if stale or (project.root / "_build" / STAMP).read_text().split()[0] != _made_of(project).split()[0]:
        told = "\n".join(stale or ["a source has changed since they were rendered"])
        raise PublishError(f"the rendered pages are stale; run make book first:\n{told}")


def _finished(project: Project) -> bool:
    made, pages = project.root / "_build", [source.removesuffix(".ipynb") for source in project.contents()]
    there = all((made / "html" / f"{page.removesuffix('.md')}.html").is_file() for page in pages)
    return there and (made / STAMP).is_file() and not (made / UNFINISHED).exists()


def _made_of(project: Project) -> str:
    """The digest of the sources and results, and that of what the pages are made with."""
    made_with = hashlib.sha256("\n".join(theme.made_with()).encode()).hexdigest()
    return f"{digest_files(_sources(project.root), project.root)} {made_with}"


def _sources(root: Path) -> Iterator[Path]:
    """Without the cards of book/results, which rendering draws."""
    yield from (root / name for name in SOURCES if (root / name).is_file())
    for name in SOURCES:
        for folder, inner, files in os.walk(root / name):
            inner[:] = [name for name in inner if not name.startswith((".", "__")) and not name.endswith(".egg-info")]
            yield from (Path(folder, name) for name in files if not name.startswith("card-"))
