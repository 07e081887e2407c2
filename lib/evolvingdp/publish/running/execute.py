"""Running one notebook: validated first, cached by content, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import papermill

from evolvingdp.core import checks
from evolvingdp.experiment import ParameterError, Params
from evolvingdp.publish.showing import page, postprocess
from evolvingdp.publish.sources import provenance
from evolvingdp.publish.sources.project import Project, params_of, template_bytes

MANIFEST = "manifest.json"


# Notebooks run side by side, a core each: threads of their libraries on top would make them wait for each other, and sums in
# floating point would depend on the machine.
ONE_CORE = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL", "NUMBA")}


class NotebookError(Exception):
    """A notebook raised; the message is its own traceback."""


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
        return cls(project, notebook, params_of(notebook).make(preset, values), seed)

    @property
    def name(self) -> str:
        return self.notebook.split("/")[-1]

    @property
    def key(self) -> str:
        template = template_bytes(self.project.template(self.notebook))
        return provenance.cache_key(template, self.notebook, self.params, self.seed)

    @property
    def store(self) -> Path:
        """The folder of this run in the cache; it exists only when the run has finished."""
        return self.project.cache / self.key

    @property
    def cached(self) -> bool:
        """Whether the cache has this run, whole: every file is there and is the one that was computed."""
        return _intact(self.store, read_manifest(self.store / MANIFEST))


def seed_of(seed: Any) -> int:
    """The master seed that a person typed; raises ParameterError, one line."""
    try:
        seed = int(str(seed))
        checks.integer_at_least(0, seed=seed)
    except ValueError:
        raise ParameterError(f"seed must be an integer >= 0, got {seed!r}") from None
    return int(seed)


def run(job: Job) -> float:
    """Execute `job` unless the cache has it; returns the seconds it took.  Raises NotebookError."""
    if job.cached:
        return 0.0
    started, key, store = time.perf_counter(), job.key, job.store
    job.project.cache.mkdir(parents=True, exist_ok=True)
    _sweep(job.project.cache)
    with tempfile.TemporaryDirectory(dir=job.project.cache, prefix="running-") as folder:
        work = Path(folder)
        results = work / job.name
        results.mkdir()
        executed = _execute(job, work, results)
        nbformat.write(postprocess.clean(executed), work / f"{job.name}.ipynb")
        files = {file.relative_to(work).as_posix(): _digest(file) for file in sorted(work.rglob("*")) if file.is_file()}
        manifest = {
            "key": key,
            "notebook": job.notebook,
            "params": job.params.model_dump(mode="json"),
            "seed": job.seed,
            "files": files,
        }
        (work / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        if job.key != key:
            raise NotebookError(
                f"{job.notebook}: its sources changed while it ran, so the result is of neither; run it again"
            )
        if not job.cached:  # another process may have been faster
            whole = Path(tempfile.mkdtemp(dir=job.project.cache, prefix="running-"))
            shutil.copytree(work, whole, dirs_exist_ok=True)
            shutil.rmtree(store, ignore_errors=True)  # an entry that is not whole
            whole.rename(store)
    return time.perf_counter() - started


def _sweep(cache: Path) -> None:
    """Remove what runs that were killed left behind more than a day ago."""
    for left in cache.glob("running-*"):
        if time.time() - left.stat().st_mtime > 24 * 3600:
            shutil.rmtree(left, ignore_errors=True)


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest at `path`; empty where there is none or it cannot be read."""
    try:
        manifest = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) and {"key", "params", "seed", "files"} <= set(manifest) else {}


def _intact(folder: Path, manifest: dict[str, Any]) -> bool:
    return bool(manifest) and not _touched(folder, manifest)


def _touched(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """The files of `manifest` that are missing below `folder` or are not what they were."""
    return [
        name
        for name, digest in manifest["files"].items()
        if not (folder / name).is_file() or _digest(folder / name) != digest
    ]


def _execute(job: Job, work: Path, results: Path) -> nbformat.NotebookNode:
    output = work / "executed.ipynb"
    parameters = job.params.model_dump(mode="json") | {"seed": job.seed}
    try:
        with environment({page.RESULTS: str(results), **ONE_CORE}), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of papermill's own dependencies; a notebook's warnings stand in its output
            papermill.execute_notebook(
                str(job.project.template(job.notebook)),
                str(output),
                parameters=parameters,
                kernel_name="python3",
                progress_bar=False,
                cwd=str(work),
                extra_arguments=["--IPKernelApp.log_level=40"],
            )
    except papermill.PapermillExecutionError as error:
        raise NotebookError(f"{job.notebook} failed in cell {error.exec_count}:\n{error}") from None
    except Exception as error:  # the kernel died, or papermill could not start it: a failed notebook all the same
        raise NotebookError(f"{job.notebook} could not be executed: {error!r}") from error
    executed = nbformat.read(output, as_version=4)
    output.unlink()
    return executed


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_writable(out: Path, *, name: str | None = None, sources: Path | None = None) -> None:
    """Raise ParameterError unless results called `name` can be written to the folder `out` without losing anything.

    `out` must be writable, not among the `sources` of the repository, and what stands there under `name` must be ours.
    """
    if sources is not None and any(out.resolve().is_relative_to(sources / part) for part in ("notebooks", "lib", "book")):
        raise ParameterError(f"out must lie outside the book's own sources, got {str(out)!r}; try --out my-run")
    if name is not None and not read_manifest(out / name / MANIFEST):
        for foreign in (out / name, out / f"{name}.ipynb"):
            if foreign.exists():
                raise ParameterError(f"out holds {str(foreign)!r}, which evolvingdp did not write; choose another folder")
    nearest = next(parent for parent in (out, *out.absolute().parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise ParameterError(f"out must be a folder that can be written, got {str(out)!r} ({error.strerror})") from None


def export(job: Job, out: Path, *, as_page: bool = False) -> None:
    """Copy the finished `job` to `out`: <name>.ipynb and the folder <name>; what stood there is replaced at the end.

    Copies are new files with new times: Sphinx reads a chapter again when the values that it prints are newer.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=f".{job.name}-") as folder:
        work = Path(folder)
        shutil.copytree(job.store / job.name, work / "new", copy_function=shutil.copyfile)
        notebook = nbformat.read(job.store / f"{job.name}.ipynb", as_version=4)
        nbformat.write(postprocess.page(notebook, _banner(job)) if as_page else notebook, work / "page.ipynb")
        manifest = read_manifest(job.store / MANIFEST)
        manifest["files"][f"{job.name}.ipynb"] = _digest(work / "page.ipynb")
        (work / "new" / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        target = out / job.name
        if target.exists():
            target.rename(work / "old")
        (work / "new").rename(target)
        (work / "page.ipynb").replace(out / f"{job.name}.ipynb")


def _banner(job: Job) -> str:
    """A page that is not at the paper's scale says so at its top."""
    preset, overrides = provenance.preset_of(job.params)
    if preset == "paper" and not overrides:
        return ""
    return (
        f":::{{note}}\nThis page was built with the preset `{preset}`: smaller or with fewer runs than the text says. "
        "`make book` computes it at the paper's.\n:::"
    )


def problems(project: Project, notebook: str) -> list[str]:
    """Why the page of `notebook` in book/results may not be shown: missing, stale or touched; empty when it may."""
    folder = project.results / notebook
    manifest = read_manifest(folder / MANIFEST)
    if not manifest:
        return [f"{notebook}: not computed yet"]
    try:
        job = Job.make(project, notebook, "quick", manifest["params"], manifest["seed"])
    except ParameterError as error:
        return [f"{notebook}: stale, its parameters are no longer valid ({error})"]
    if job.key != manifest["key"]:
        return [f"{notebook}: stale, its notebook, the library, the data or the lock has changed since it was computed"]
    touched = _touched(folder.parent, manifest)
    return [f"{notebook}: {', '.join(touched)} is not the file that was computed"] if touched else []
