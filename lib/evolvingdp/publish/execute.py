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
from evolvingdp.core.experiment import ParameterError, Params
from evolvingdp.publish import page, postprocess, provenance
from evolvingdp.publish.project import Project, params_of, template_bytes

MANIFEST = "manifest.json"


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
        seed = values.pop("seed", seed)
        try:
            seed = int(str(seed))
            checks.integer_at_least(0, seed=seed)
        except ValueError:
            raise ParameterError(f"seed must be an integer >= 0, got {seed!r}") from None
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
        return (self.store / MANIFEST).is_file()


def run(job: Job) -> float:
    """Execute `job` unless the cache has it; returns the seconds it took.  Raises NotebookError."""
    if job.cached:
        return 0.0
    started = time.perf_counter()
    job.project.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=job.project.cache, prefix="running-") as folder:
        work = Path(folder)
        results = work / job.name
        results.mkdir()
        executed = _execute(job, work, results)
        nbformat.write(postprocess.clean(executed), work / f"{job.name}.ipynb")
        files = {file.relative_to(work).as_posix(): _digest(file) for file in sorted(work.rglob("*")) if file.is_file()}
        manifest = {
            "key": job.key,
            "notebook": job.notebook,
            "params": job.params.model_dump(mode="json"),
            "seed": job.seed,
            "files": files,
        }
        (work / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        if not job.cached:  # another process may have been faster
            shutil.copytree(work, job.store.with_suffix(".partial"), dirs_exist_ok=True)
            job.store.with_suffix(".partial").rename(job.store)
    return time.perf_counter() - started


def _execute(job: Job, work: Path, results: Path) -> nbformat.NotebookNode:
    output = work / "executed.ipynb"
    parameters = job.params.model_dump(mode="json") | {"seed": job.seed}
    try:
        with _environment({page.RESULTS: str(results)}), warnings.catch_warnings():
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
def _environment(values: Mapping[str, str]) -> Iterator[None]:
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


def check_writable(out: Path) -> None:
    """Raise ParameterError unless `out` is, or can become, a folder that can be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise ParameterError(f"out must be a folder that can be written, got {str(out)!r} ({error.strerror})") from None


def export(job: Job, out: Path, *, as_page: bool = False) -> None:
    """Copy the finished `job` to `out`: <name>.ipynb and the folder <name>; what stood there is replaced at the end."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=f".{job.name}-") as folder:
        work = Path(folder)
        shutil.copytree(job.store / job.name, work / "new")
        notebook = nbformat.read(job.store / f"{job.name}.ipynb", as_version=4)
        nbformat.write(postprocess.page(notebook) if as_page else notebook, work / "page.ipynb")
        manifest = json.loads((job.store / MANIFEST).read_text())
        manifest["files"][f"{job.name}.ipynb"] = _digest(work / "page.ipynb")
        (work / "new" / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        target = out / job.name
        if target.exists():
            target.rename(work / "old")
        (work / "new").rename(target)
        (work / "page.ipynb").replace(out / f"{job.name}.ipynb")


def problems(project: Project, notebook: str) -> list[str]:
    """Why the page of `notebook` in book/results may not be shown: missing, stale or touched; empty when it may."""
    folder = project.results / notebook
    if not (folder / MANIFEST).is_file() or not folder.with_suffix(".ipynb").is_file():
        return [f"{notebook}: not computed yet"]
    manifest = json.loads((folder / MANIFEST).read_text())
    try:
        job = Job.make(project, notebook, "quick", manifest["params"], manifest["seed"])
    except ParameterError as error:
        return [f"{notebook}: stale, its parameters are no longer valid ({error})"]
    if job.key != manifest["key"]:
        return [f"{notebook}: stale, its notebook, the library, the data or the lock has changed since it was computed"]
    touched = [
        name
        for name, digest in manifest["files"].items()
        if not (folder.parent / name).is_file() or _digest(folder.parent / name) != digest
    ]
    return [f"{notebook}: {', '.join(touched)} is not the file that was computed"] if touched else []
