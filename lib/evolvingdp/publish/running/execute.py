"""Running one notebook: cached by content, written whole or not at all."""

from __future__ import annotations

import copy
import json
import re
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import nbformat
import papermill
from traitlets.config import Config

from evolvingdp.publish.errors import NotebookError
from evolvingdp.publish.files import scratch
from evolvingdp.publish.guards import MACHINE
from evolvingdp.publish.running.environment import KEPT_MEMORY, ONE_CORE, environment, own_settings
from evolvingdp.publish.running.job import MANIFEST, Job, file_digest, read_manifest
from evolvingdp.publish.running.kernels import CHOSEN
from evolvingdp.publish.showing import postprocess
from evolvingdp.publish.showing.forms import RESULTS
from evolvingdp.publish.sources import provenance

NOTEBOOKS = "EVOLVINGDP_NOTEBOOKS"  # where evolvingdp.notebooks finds the modules beside them
_START = 600  # seconds that a kernel may take to start, on a machine that does much else
# A kernel looks for no garbage, not even when it ends: what a notebook leaves are small objects by the million.
_UNCOLLECTED = "import atexit, gc; gc.disable(); atexit.register(gc.freeze)"
_LONGEST_SOCKET = 103  # characters of the name of a socket that is a file, on the system that takes fewest


def run(job: Job) -> float:
    """Execute `job` unless the cache has it; returns the seconds it took.  Raises NotebookError."""
    if job.cached:
        return 0.0
    started, key, store = time.perf_counter(), job.key, job.store
    with scratch(job.project.cache, "running-") as folder:
        work = folder / "whole"
        results = work / job.name
        results.mkdir(parents=True)
        executed = _execute(job, folder, work, results)
        nbformat.write(postprocess.clean(executed), work / f"{job.name}.ipynb")
        files = {file.relative_to(work).as_posix(): file_digest(file) for file in sorted(work.rglob("*")) if file.is_file()}
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
            shutil.rmtree(store, ignore_errors=True)  # an entry that is not whole
            work.rename(store)
    return time.perf_counter() - started


def _execute(job: Job, folder: Path, work: Path, results: Path) -> nbformat.NotebookNode:
    output = folder / "executed.ipynb"
    parameters = job.params.model_dump(mode="json") | {"seed": job.seed}
    try:
        with (
            environment(
                {
                    RESULTS: str(results),
                    NOTEBOOKS: str(job.project.root / "notebooks"),
                    **ONE_CORE,
                    **KEPT_MEMORY,
                    **own_settings(folder),
                    **CHOSEN,
                }
            ),
            tempfile.TemporaryDirectory() as sockets,
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # of papermill's own dependencies; a notebook's warnings stand in its output
            papermill.execute_notebook(
                str(job.project.template(job.notebook)),
                str(output),
                parameters=parameters,
                kernel_name="python3",
                progress_bar=False,
                start_timeout=_START,
                cwd=str(work),
                extra_arguments=["--IPKernelApp.log_level=40", f"--IPKernelApp.exec_lines={_UNCOLLECTED}"],
                config=Config({"ConnectionFileMixin": _by_files(Path(sockets))}),
            )
    except papermill.PapermillExecutionError as error:
        refused = re.match(r"\[Errno (\d+)\]", error.evalue)
        if refused and int(refused[1]) in MACHINE:
            raise NotebookError(f"{job.notebook} stopped in cell {error.exec_count}: {error.evalue}") from None
        raise NotebookError(f"{job.notebook} failed in cell {error.exec_count}:\n{error}") from None
    except Exception as error:  # the kernel died, or papermill could not start it: a failed notebook all the same
        raise NotebookError(f"{job.notebook} could not be executed: {error!r}") from error
    return nbformat.read(output, as_version=4)


def _by_files(folder: Path) -> dict[str, str]:
    """How a kernel is spoken to: by sockets that are files in `folder`.

    A free port may be taken by another process before the kernel binds it; the kernel then dies, and is waited for.
    """
    fits = len(str(folder / "kernel-ipc-5")) <= _LONGEST_SOCKET
    return {"transport": "ipc", "connection_file": str(folder / "kernel.json")} if fits else {}


Finish = Callable[[nbformat.NotebookNode], nbformat.NotebookNode]


def export(job: Job, out: Path, *, as_page: bool = False, finish: Finish = copy.copy) -> None:
    """Copy the finished `job` to `out`: <name>.ipynb and the folder <name>; what stood there is replaced at the end.

    The notebook is a page of the book, or what `finish` makes of it.
    Copies are new files with new times: Sphinx reads a chapter again when the values that it prints are newer.
    """
    with scratch(out, f".{job.name}-") as work:
        shutil.copytree(job.store / job.name, work / "new", copy_function=shutil.copyfile)
        notebook = nbformat.read(job.store / f"{job.name}.ipynb", as_version=4)
        nbformat.write(postprocess.page(notebook, _banner(job)) if as_page else finish(notebook), work / "page.ipynb")
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
    preset, overrides = provenance.preset_of(job.params)
    if preset == "paper" and not overrides:
        return ""
    return (
        f":::{{note}}\nThis page was built with the preset `{preset}`: smaller or with fewer runs than the text says. "
        "`make book` computes it at the paper's.\n:::"
    )
