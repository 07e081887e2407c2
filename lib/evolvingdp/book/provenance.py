"""Where a result comes from: parameters, seed, commit, lock, data, library, and the command that makes it again."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from importlib.metadata import version
from typing import Any

from evolvingdp.book import checkout
from evolvingdp.book.checkout import COMPUTE, DRAW
from evolvingdp.book.files import REPOSITORY
from evolvingdp.book.params import Params
from evolvingdp.book.result import Result


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
    ours = params.as_json()
    differences = {}
    for preset in params.preset_names():
        theirs = type(params).make(preset).as_json()
        differences[preset] = {name: value for name, value in ours.items() if value != theirs[name]}
    nearest = min(differences, key=lambda preset: len(differences[preset]))
    return nearest, differences[nearest]


def command(notebook: str, params: Params, seed: int) -> str:
    """The exact command that runs `notebook` with these parameters and this seed."""
    preset, overrides = preset_of(params)
    words = ["evolvingdp", "run", notebook, "--preset", preset, "--seed", str(seed)]
    for name, value in overrides.items():
        words += ["-p", name, str(typed(value))]
    return shlex.join(words)


def typed(value: Any) -> Any:
    """`value` as the command line reads it; a list as one text, words, which may hold commas, as JSON."""
    if not isinstance(value, list):
        return value
    words = any(isinstance(each, str) for each in value)
    return json.dumps(value, ensure_ascii=False) if words else ",".join(map(str, value))


def record(result: Result) -> dict[str, Any]:
    """The provenance that stands beside every result; two runs of one commit have the same."""
    params = result.params.as_json()
    made_of, files = checkout.made_of(result.notebook, packages=COMPUTE + DRAW), checkout.of_files(params)
    return {
        "notebook": result.notebook,
        "command": command(result.notebook, result.params, result.seed),
        "params": params,
        "seed": result.seed,
        "repetitions": getattr(result.params, "repetitions", 1),
        "commit": commit(),
        "version": version("evolvingdp"),
        "library_sha256": made_of["library"],
        "data_sha256": made_of["data"],
        **({"files_sha256": files} if files else {}),
        "lock_sha256": checkout.digest_files([REPOSITORY / "requirements.lock"], REPOSITORY),
        "python": ".".join(map(str, sys.version_info[:3])),
        "packages": made_of["packages"],
    }
