"""Running notebooks: validated first, cached by what decides the result, written whole or not at all, side by side.

`Job` is one notebook with its parameters; `run` executes it by papermill into the cache; `compute` runs many; `export`
copies a finished one to a folder of the reader's or to the book's results.
"""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import os
import re
import reprlib
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partialmethod
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evolvingdp.book import bytecode, checkout, files
from evolvingdp.book.checkout import Project
from evolvingdp.book.files import MACHINE, NotebookError, scratch
from evolvingdp.book.params import Params
from evolvingdp.core import checks
from evolvingdp.core.checks import ParameterError

if TYPE_CHECKING:  # a refused parameter waits for nothing large
    import nbformat

Say = Callable[[str], None]
MANIFEST = "manifest.json"
OWN_DATA = "own-data"  # tags the cell for a file of the reader's
STALE = "its notebook, the code that it runs, its data, CITATION.cff or a package that it imports"
NOTEBOOKS = "EVOLVINGDP_NOTEBOOKS"  # where evolvingdp.notebooks finds the modules beside them
# They run side by side, a core each: threads of their libraries on top would make them wait for each other, and sums in
# floating point would depend on the machine.
ONE_CORE = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL", "NUMBA")}
# The GNU C library otherwise hands large arrays back to the system, which fills the next ones with zeros: an eighth of the
# time of a notebook that makes many.
KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 25), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
_START = 600  # seconds that a kernel may take to start, on a machine that does much else
_LONGEST_SOCKET = 103  # characters of the name of a socket that is a file, on the system that takes fewest


@dataclass(frozen=True)
class Job:
    """One notebook with validated parameters."""

    project: Project
    notebook: str
    params: Params
    seed: int

    @classmethod
    def make(
        cls, project: Project, notebook: str, preset: str, overrides: Mapping[str, Any] | None = None, seed: Any = 0
    ) -> Job:
        """Validate everything; raises ParameterError with one line before anything runs."""
        notebook = project.notebook(notebook)
        values = dict(overrides or {})
        seed = seed_of(values.pop("seed", seed))
        return cls(project, notebook, project.params(notebook).make(preset, values), seed)

    @property
    def paper(self) -> str:
        return self.notebook.split("/")[0]

    @property
    def name(self) -> str:
        return self.notebook.split("/")[-1]

    @property
    def key(self) -> str:
        return checkout.key(self.project, self.notebook, self.params.as_json(), self.seed)

    @property
    def store(self) -> Path:
        """The folder of this run in the cache; it exists only when the run has finished."""
        return self.project.cache / self.key

    @property
    def cached(self) -> bool:
        """Whether the cache has this run, whole: every file is there and is the one that was computed."""
        store = self.store
        manifest = read_manifest(store / MANIFEST)
        return bool(manifest) and not touched(store, manifest)


def seed_of(seed: Any) -> int:
    """The master seed that a person typed; raises ParameterError, one line."""
    try:
        seed = int(str(seed))
        checks.integer_at_least(0, seed=seed)
    except ValueError:
        raise ParameterError(f"seed must be an integer >= 0, got {reprlib.repr(seed)}") from None
    return int(seed)


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest at `path`; empty where there is none or it cannot be read."""
    try:
        manifest = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) and {"key", "params", "seed", "files"} <= set(manifest) else {}


def touched(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """The files of `manifest` that are missing below `folder` or are not what they were."""
    return [
        name
        for name, digest in manifest["files"].items()
        if not (folder / name).is_file() or file_digest(folder / name) != digest
    ]


def file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def problems(project: Project, notebook: str) -> list[str]:
    """Why the page of `notebook` in book/results may not be shown: missing, stale or touched; empty when it may."""
    folder = project.results / notebook
    manifest = read_manifest(folder / MANIFEST)
    if not manifest:
        return [f"{notebook}: not computed yet"]
    if checkout.key(project, notebook, manifest["params"], manifest["seed"]) != manifest["key"]:
        return [f"{notebook}: stale, {STALE} has changed since it was computed"]
    lost = touched(folder.parent, manifest)
    return [f"{notebook}: {', '.join(lost)} is not the file that was computed"] if lost else []


def named(out: str, example: str) -> Path:
    """The folder that a person typed; raises ParameterError for an empty name."""
    if not out.strip():
        raise ParameterError(f"out must name a folder, got {out!r}; try --out {example}")
    return Path(out).absolute()


def check_writable(out: Path, *, name: str | None = None, sources: Path | None = None) -> None:
    """Raise ParameterError unless results called `name` can be written to the folder `out` without losing anything.

    `out` must be writable, not among the `sources` of the repository, and what stands there under `name` must be ours.
    """
    try:
        real = Path(os.path.realpath(out))  # which a loop of links has, too
        if sources is not None and any(real.is_relative_to(sources / part) for part in ("notebooks", "lib", "book")):
            raise ParameterError(f"out must lie outside the book's own sources, got {str(out)!r}; try --out my-run")
        if name is not None and not read_manifest(out / name / MANIFEST):
            for foreign in (out / name, out / f"{name}.ipynb"):
                if foreign.exists():
                    raise ParameterError(
                        f"out holds {str(foreign)!r}, which evolvingdp did not write; choose another folder, such as "
                        f"--out {out.name}-2"
                    )
        nearest = next(parent for parent in (out, *out.absolute().parents) if os.path.lexists(parent))
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        told = f"out must be a folder that can be written, such as --out my-run, got {str(out)!r} ({error.strerror})"
        raise ParameterError(told) from None


def check_same_run(job: Job, out: Path) -> None:
    """Raise ParameterError where `out` holds results of this name with other parameters or another seed than `job`'s."""
    folder = out / job.name
    manifest = read_manifest(folder / MANIFEST)
    if not manifest:
        return
    theirs = _told(manifest.get("notebook", job.notebook), manifest["params"], manifest["seed"])
    ours = _told(job.notebook, job.params.as_json(), job.seed)
    differing = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
    if differing:
        there, here = (", ".join(f"{name} {told.get(name)}" for name in differing) for told in (theirs, ours))
        raise ParameterError(
            f"out holds another run in {str(folder)!r}, with {there} where this one has {here}; "
            f"choose another folder, such as --out {folder.parent.name or 'runs'}-2, or remove that one"
        )


def _told(notebook: str, params: dict[str, Any], seed: int) -> dict[str, Any]:
    return {"notebook": notebook, **params, "seed": seed}


def own_settings(folder: Path) -> dict[str, str]:
    """Settings below `folder` in place of the user's: a matplotlibrc, IPython's start-up files and Jupyter's configuration
    would change figures under the same key."""
    (folder / "matplotlibrc").touch()
    home = {"IPYTHONDIR": "ipython", "JUPYTER_CONFIG_DIR": "jupyter", "MATPLOTLIBRC": "matplotlibrc"}
    return {name: str(folder / place) for name, place in home.items()} | {"JUPYTER_NO_CONFIG": "1", "PYTHONSTARTUP": ""}


def run(job: Job) -> float:
    """Execute `job` unless the cache has it; returns the seconds it took.  Raises NotebookError."""
    if job.cached:
        return 0.0
    import nbformat

    from evolvingdp.book.executed import clean

    started, key, store = time.perf_counter(), job.key, job.store
    with scratch(job.project.cache, "running-") as folder:
        work = folder / "whole"
        results = work / job.name
        results.mkdir(parents=True)
        executed = _execute(job, folder, work, results)
        nbformat.write(clean(executed), work / f"{job.name}.ipynb")
        files = {file.relative_to(work).as_posix(): file_digest(file) for file in sorted(work.rglob("*")) if file.is_file()}
        manifest = {
            "key": key,
            "notebook": job.notebook,
            "params": job.params.as_json(),
            "seed": job.seed,
            "files": files,
        }
        (work / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        if job.key != key:
            raise NotebookError(
                f"{job.notebook}: its sources changed while it ran, so the result is of neither; run it again"
            )
        if not job.cached:  # another process may have been faster
            shutil.rmtree(store, ignore_errors=True)  # an entry that is not whole
            work.rename(store)
    return time.perf_counter() - started


def _execute(job: Job, folder: Path, work: Path, results: Path) -> nbformat.NotebookNode:
    import nbformat
    import papermill
    from jupyter_client.manager import AsyncKernelManager
    from traitlets.config import Config

    from evolvingdp.book.result import RESULTS

    logging.getLogger("papermill").setLevel(logging.CRITICAL)  # of a kernel that dies the error tells, once
    output, said = folder / "executed.ipynb", folder / "stderr"
    parameters = job.params.as_json() | {"seed": job.seed}
    places = {RESULTS: str(results), NOTEBOOKS: str(job.project.root / "notebooks")}
    environment = os.environ | places | ONE_CORE | KEPT_MEMORY | own_settings(folder)
    try:
        with said.open("wb") as errors, tempfile.TemporaryDirectory() as sockets, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of papermill's own dependencies; a notebook's warnings stand in its output
            start = partialmethod(AsyncKernelManager.start_kernel, stderr=errors, env=environment)
            papermill.execute_notebook(
                str(_template(job, folder)),
                str(output),
                parameters=parameters,
                kernel_name="python3",
                progress_bar=False,
                start_timeout=_START,
                cwd=str(work),
                extra_arguments=["--IPKernelApp.log_level=50"],
                config=Config({"ConnectionFileMixin": _by_files(Path(sockets))}),
                kernel_manager_class=type("Quiet", (AsyncKernelManager,), {"start_kernel": start}),
            )
    except papermill.PapermillExecutionError as error:
        if error.ename == "TableError":  # which says all in a line
            raise NotebookError(f"{job.notebook} stopped: {error.evalue}") from None
        if error.ename == "EOFError" and (line := bytecode.mended()):
            raise NotebookError(f"{job.notebook} stopped: {line}") from None
        refused = re.match(r"\[Errno (\d+)\]", error.evalue)
        if refused and int(refused[1]) in MACHINE:
            raise NotebookError(f"{job.notebook} stopped in cell {error.exec_count}: {error.evalue}") from None
        raise NotebookError(f"{job.notebook} failed in cell {error.exec_count}:\n{error}") from None
    except Exception as error:  # the kernel died, or papermill could not start it: a failed notebook all the same
        told = _unstarted(said) if "Kernel died before" in str(error) else getattr(error, "strerror", None) or repr(error)
        raise NotebookError(f"{job.notebook} could not be executed: {bytecode.mended() or told}") from error
    return nbformat.read(output, as_version=4)


def _unstarted(stderr: Path) -> str:
    """That a kernel did not start, with the last line that it wrote to `stderr`."""
    last = stderr.read_text(errors="replace").strip().rpartition("\n")[2] or "it said nothing, as where memory is short"
    return f"its kernel did not start ({last}); where that is mended, the same command goes on"


def _template(job: Job, folder: Path) -> Path:
    """The notebook, without the cell for the reader's data; or with a file of the reader's, of its cells only the title, the
    parameters, the imports and that one."""
    import nbformat

    notebook = nbformat.read(job.project.template(job.notebook), as_version=4)
    own = [OWN_DATA in cell.metadata.get("tags", []) for cell in notebook.cells]
    if not any(own):
        return job.project.template(job.notebook)
    if getattr(job.params, "data", ""):
        code = [place for place, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
        own = [place in (0, *code[:2]) or mine for place, mine in enumerate(own)]
        notebook.cells[0].source = notebook.cells[0].source.splitlines()[0]
    else:
        own = [not mine for mine in own]
    notebook.cells = [cell for cell, kept in zip(notebook.cells, own, strict=True) if kept]
    nbformat.write(notebook, folder / "template.ipynb")
    return folder / "template.ipynb"


def _by_files(folder: Path) -> dict[str, str]:
    """How a kernel is spoken to: by sockets that are files in `folder`.

    A free port may be taken by another process before the kernel binds it; the kernel then dies, and is waited for.
    """
    fits = len(str(folder / "kernel-ipc-5")) <= _LONGEST_SOCKET
    return {"transport": "ipc", "connection_file": str(folder / "kernel.json")} if fits else {}


def export(job: Job, out: Path, *, as_page: bool = False, finish: Callable[[Any], Any] = copy.copy) -> None:
    """Copy the finished `job` to `out`: <name>.ipynb and the folder <name>; what stood there is replaced at the end.

    The notebook is a page of the book, or what `finish` makes of it.
    Copies are new files with new times: Sphinx reads a chapter again when the values that it prints are newer.
    """
    import nbformat

    from evolvingdp.book.executed import page as page_of

    with scratch(out, f".{job.name}-") as work:
        shutil.copytree(job.store / job.name, work / "new", copy_function=shutil.copyfile)
        notebook = nbformat.read(job.store / f"{job.name}.ipynb", as_version=4)
        nbformat.write(page_of(notebook, _banner(job)) if as_page else finish(notebook), work / "page.ipynb")
        manifest = read_manifest(job.store / MANIFEST)
        manifest["files"][f"{job.name}.ipynb"] = file_digest(work / "page.ipynb")
        (work / "new" / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        target, page = out / job.name, out / f"{job.name}.ipynb"
        page.unlink(missing_ok=True)  # whoever is killed from here on leaves no page beside another run's results
        if target.exists():
            target.rename(work / "old")
        (work / "new").rename(target)
        (work / "page.ipynb").replace(page)


def _banner(job: Job) -> str:
    """A page that is not at the paper's scale says so at its top."""
    from evolvingdp.book.provenance import preset_of

    preset, overrides = preset_of(job.params)
    if preset == "paper" and not overrides:
        return ""
    return f":::{{note}}\nBuilt with the preset `{preset}`: smaller than the text says; `make book` has all.\n:::"


def compute(jobs: list[Job], say: Say, *, workers: int | None = None) -> None:
    """Run the jobs that the cache lacks, side by side, with a line for each; raises NotebookError after all have ended."""
    started = time.perf_counter()
    waiting = [job for job in jobs if not job.cached]
    for job in jobs:
        if job not in waiting:
            say(f"{job.notebook}: unchanged")
    failures = []
    processes = max(1, min(workers or os.cpu_count() or 1, len(waiting)))
    pool = ProcessPoolExecutor(processes, get_context("spawn"), files.end_with_parent)
    try:
        with files.starting():
            futures = {pool.submit(run, job): job for job in waiting}
        for future in as_completed(futures):
            job = futures[future]
            try:
                say(f"{job.notebook}: done in {future.result():.1f} s")
            except NotebookError as error:
                say(f"{job.notebook}: failed after {time.perf_counter() - started:.1f} s\n{error}")
                failures.append(job.notebook)
            except BrokenExecutor:
                raise NotebookError(
                    "a process that runs notebooks was killed, perhaps for want of memory (--workers 1 needs least); "
                    "the same command continues with what is finished"
                ) from None
    finally:  # after an error such as a full disk, which the next notebook would meet, too, none is begun
        pool.shutdown(cancel_futures=True)
    say(f"{len(jobs)} notebooks, {len(waiting)} executed, {time.perf_counter() - started:.1f} s in total")
    if failures:
        raise NotebookError(f"{len(failures)} of {len(jobs)} notebooks failed: {', '.join(sorted(failures))}")
