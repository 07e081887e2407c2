"""Results that stand where new ones are to be written: those of another run are not replaced without a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evolvingdp.experiment import ParameterError
from evolvingdp.publish.running.execute import MANIFEST, Job, read_manifest


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
