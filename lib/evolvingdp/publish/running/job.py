"""One notebook with validated parameters, the key of its result, and whether a result that stands may be shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evolvingdp.core import checks
from evolvingdp.experiment import ParameterError, Params
from evolvingdp.publish.sources import digest
from evolvingdp.publish.sources.project import Project, cells_of

MANIFEST = "manifest.json"
STALE = "its notebook, the code that it runs, its data, CITATION.cff or a package that it imports"


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
        return key_of(self.project, self.notebook, self.params.model_dump(mode="json"), self.seed)

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
        raise ParameterError(f"seed must be an integer >= 0, got {seed!r}") from None
    return int(seed)


def key_of(project: Project, notebook: str, params: dict[str, Any], seed: int) -> str:
    """The key of the result of `notebook` with the parameters `params`, as JSON has them."""
    cells, code = cells_of(project.template(notebook))
    return digest.key(cells, code, notebook, params, seed, project.root / "notebooks")


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
    if key_of(project, notebook, manifest["params"], manifest["seed"]) != manifest["key"]:
        return [f"{notebook}: stale, {STALE} has changed since it was computed"]
    lost = touched(folder.parent, manifest)
    return [f"{notebook}: {', '.join(lost)} is not the file that was computed"] if lost else []
