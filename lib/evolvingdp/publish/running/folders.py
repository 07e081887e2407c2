"""Where results may be written: nothing is lost that another run, or something else than evolvingdp, wrote there."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from evolvingdp.experiment import ParameterError
from evolvingdp.publish.running.job import MANIFEST, Job, read_manifest


def named(out: str, example: str) -> Path:
    """The folder that a person typed; raises ParameterError for an empty name."""
    if not out.strip():
        raise ParameterError(f"out must name a folder, got {out!r}; try --out {example}")
    return Path(out).absolute()


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


def check_same_run(job: Job, out: Path) -> None:
    """Raise ParameterError where `out` holds results of this name with other parameters or another seed than `job`'s."""
    folder = out / job.name
    manifest = read_manifest(folder / MANIFEST)
    if not manifest:
        return
    theirs = _told(manifest.get("notebook", job.notebook), manifest["params"], manifest["seed"])
    ours = _told(job.notebook, job.params.model_dump(mode="json"), job.seed)
    differing = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
    if differing:
        there, here = (", ".join(f"{name} {told.get(name)}" for name in differing) for told in (theirs, ours))
        raise ParameterError(
            f"out holds another run in {str(folder)!r}, with {there} where this one has {here}; "
            "choose another folder, or remove that one"
        )


def _told(notebook: str, params: dict[str, Any], seed: int) -> dict[str, Any]:
    return {"notebook": notebook, **params, "seed": seed}
