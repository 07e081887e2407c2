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
from importlib import metadata
from pathlib import Path

from evolvingdp.book.checkout import Project, digest_files
from evolvingdp.book.files import MACHINE, BookError
from evolvingdp.book.rendering.theme import REPOSITORY
from evolvingdp.book.running import MANIFEST, Job, Say, compute, export, problems, read_manifest, touched

UNFINISHED = ".rendering"  # stands in _build until the pages are whole
# the command of this name, which ends when this process does, however that ends
JUPYTER_BOOK = """import gc, sys
gc.set_threshold(50_000, 20, 100)  # pages are trees of many small objects that stay: to look for garbage costs a tenth
from evolvingdp.book import files
files.end_with_parent(int(sys.argv.pop(1)))
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
        if not _shows(job):
            export(job, project.results / job.paper, as_page=True)
    _remove_orphans(project)
    unfinished, repository = project.root / "_build" / UNFINISHED, os.environ.get(REPOSITORY, "")
    sources, (shown, otherwise) = _sources_digest(project), _stamped(project)  # what is edited from here on is not shown
    same_otherwise = otherwise == _otherwise(project, repository)
    if not unfinished.exists() and same_otherwise and shown == sources:
        say(f"nothing has changed: {project.root / '_build' / 'html' / 'index.html'}")
        return
    render(project, say, anew=not same_otherwise)
    (project.root / "_build" / STAMP).write_text(f"{sources} {_otherwise(project, repository)}\n")


def _shows(job: Job) -> bool:
    """Whether the page of this notebook in book/results is what `job` has computed."""
    manifest = read_manifest(job.project.results / job.notebook / MANIFEST)
    wanted = {"key": job.key, "params": job.params.model_dump(mode="json"), "seed": job.seed}
    return wanted.items() <= manifest.items() and not touched(job.project.results / job.paper, manifest)


def render(project: Project, say: Say, *, anew: bool = False) -> None:
    """Strict jupyter-book build of `project`, of all pages if `anew`; a warning is an error.  Raises BookError.

    While it runs, and after it was killed or has failed, a file says so: then all pages are made anew, too.
    """
    started, unfinished = time.perf_counter(), project.root / "_build" / UNFINISHED
    if anew or unfinished.exists():
        for made in (".doctrees", "html/_modules"):  # or it would not warn, nor render, again
            shutil.rmtree(unfinished.parent / made, ignore_errors=True)
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


# Whether the rendered pages are still those of the sources: a book in which nothing has changed is not rendered again.

STAMP = ".rendered"  # in _build: what the pages were made of, and the pages
SOURCES = ("_config.yml", "_toc.yml", "CITATION.cff", "book", "notebooks", "benchmarks", "data", "tests", "lib")


def check_rendered(project: Project) -> None:
    """Raise BookError unless _build/html shows the sources and results as they are now."""
    html, unfinished = project.root / "_build" / "html", project.root / "_build" / UNFINISHED
    pages = [html / f"{source.removesuffix('.ipynb').removesuffix('.md')}.html" for source in project.contents()]
    if unfinished.exists() or not all(page.exists() for page in pages):
        raise BookError("the book is not rendered yet, or not all of it; run make book (or make book PRESET=quick) first")
    stale = [problem for notebook in project.pages() for problem in problems(project, notebook)]
    if stale or _stamped(project)[0] != _sources_digest(project):
        told = "\n".join(stale or ["a source has changed since they were rendered"])
        raise BookError(f"the rendered pages are stale; run make book first:\n{told}")


def _stamped(project: Project) -> tuple[str, str]:
    """Of the last rendering, `_sources_digest` and `_otherwise`."""
    stamped = project.root / "_build" / STAMP
    sources, otherwise = stamped.read_text().split() if stamped.is_file() else ("", "")
    return sources, otherwise


def _sources_digest(project: Project) -> str:
    return digest_files(_sources(project.root), project.root)


def _otherwise(project: Project, repository: str) -> str:
    """The digest of all else that decides what pages are, and of the pages."""
    packages = sorted(f"{found.name} {found.version}" for found in metadata.distributions())
    told = "\n".join([sys.version, repository, *packages, *_pages(project.root / "_build" / "html")])
    return hashlib.sha256(told.encode()).hexdigest()


def _sources(root: Path) -> Iterator[Path]:
    yield from (root / name for name in SOURCES if (root / name).is_file())
    for name in SOURCES:
        for folder, inner, files in os.walk(root / name):
            inner[:] = [name for name in inner if not name.startswith((".", "__")) and not name.endswith(".egg-info")]
            yield from (Path(folder, name) for name in files)


def _pages(html: Path) -> list[str]:
    """Names, sizes and times of what is rendered: nobody has touched it."""
    found = sorted(path for path in html.rglob("*") if path.is_file())
    return [f"{path.relative_to(html)} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in found]
