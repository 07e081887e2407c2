"""Where a result comes from: parameters, seed, commit, lock, data, library, and the command that makes it again."""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import evolvingdp
from evolvingdp.experiment import Params, Result

LIBRARY = Path(evolvingdp.__file__).parent
REPOSITORY = LIBRARY.parents[1]  # an editable install: lib/ stands in the repository
AUDIT = "audit"  # its notebooks use every paper's mechanisms
# what of publish a result passes through
WRITERS = ("bundle", "citing", "execute", "latex", "page", "postprocess", "printed", "project", "provenance")


def digest_files(paths: Iterable[Path], relative_to: Path) -> str:
    """SHA-256 over the names and contents of `paths`, in order of name."""
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(f"{path.relative_to(relative_to).as_posix()}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def library_digest(paper: str) -> str:
    """Digest of the library's source that a notebook of `paper` can use: core, the paper's own folder, publish's writers.

    The rest of `publish` reads finished results: a change there runs no notebook again.
    """
    names = {folder.name for folder in LIBRARY.iterdir()} - {"publish"} if paper == AUDIT else {"core", paper}
    sources = [source for name in names for source in (LIBRARY / name).rglob("*.py")]
    writers = [LIBRARY / "publish" / f"{name}.py" for name in WRITERS]
    return digest_files([LIBRARY / "__init__.py", *writers, *sources], LIBRARY)


def data_digest() -> str:
    return digest_files((REPOSITORY / "data").glob("*.csv*"), REPOSITORY)


def lock_digest() -> str:
    return digest_files([REPOSITORY / "requirements.lock"], REPOSITORY)


def cache_key(template: bytes, notebook: str, params: Params, seed: int) -> str:
    """What decides a notebook's output: template, parameters, seed, library, data, lock, Python's minor version."""
    parts = {
        "template": hashlib.sha256(template).hexdigest(),
        "notebook": notebook,
        "params": params.model_dump(mode="json"),
        "seed": seed,
        "library": library_digest(notebook.split("/")[0]),
        "data": data_digest(),
        "lock": lock_digest(),
        "python": list(sys.version_info[:2]),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def commit() -> str:
    """The repository's commit, with "+changes" where the working tree differs from it; "unknown" outside git."""
    try:
        head = _git("rev-parse", "HEAD")
        return f"{head}+changes" if _git("status", "--porcelain", "--untracked-files=no") else head
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout.strip()


def preset_of(params: Params) -> tuple[str, dict[str, Any]]:
    """The preset nearest to `params` and the parameters that differ from it."""
    ours = params.model_dump(mode="json")
    differences = {}
    for preset in params.preset_names():
        theirs = type(params).make(preset).model_dump(mode="json")
        differences[preset] = {name: value for name, value in ours.items() if value != theirs[name]}
    nearest = min(differences, key=lambda preset: len(differences[preset]))
    return nearest, differences[nearest]


def command(result: Result[Params]) -> str:
    """The exact command that computes `result` again."""
    return command_of(result.notebook, result.params, result.seed)


def command_of(notebook: str, params: Params, seed: int) -> str:
    """The exact command that runs `notebook` with these parameters and this seed."""
    preset, overrides = preset_of(params)
    words = ["evolvingdp", "run", notebook, "--preset", preset, "--seed", str(seed)]
    for name, value in overrides.items():
        words += ["-p", name, ",".join(map(str, value)) if isinstance(value, list) else str(value)]
    return shlex.join(words)


def record(result: Result[Params], run_seconds: float) -> dict[str, Any]:
    """The provenance that stands beside every result; only `run_seconds` differs between two runs of one commit."""
    return {
        "notebook": result.notebook,
        "command": command(result),
        "params": result.params.model_dump(mode="json"),
        "seed": result.seed,
        "repetitions": getattr(result.params, "repetitions", 1),
        "commit": commit(),
        "version": version("evolvingdp"),
        "library_sha256": library_digest(result.notebook.split("/")[0]),
        "data_sha256": data_digest(),
        "lock_sha256": lock_digest(),
        "python": ".".join(map(str, sys.version_info[:3])),
        "run_seconds": round(run_seconds, 1),
    }
