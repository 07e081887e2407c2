"""A fresh clone of this checkout, and what a reader types in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from support import CACHE, REPOSITORY

ENDED = "trap 'code=$?; kill $(jobs -p) 2>/dev/null || true; wait || true; exit $code' EXIT"  # with all that it started
OURS = {"EVOLVINGDP_NOTEBOOKS", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "MAKEFLAGS"}  # what no reader's shell has


def cloned(root: Path) -> Path:
    """A clone at `root` of this checkout as it is now, with this environment for its own."""
    subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(root)], check=True)
    listed = ["git", "-C", str(REPOSITORY), "ls-files", "--modified", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, check=True, capture_output=True, text=True).stdout.splitlines():
        (root / name).unlink(missing_ok=True)
        if (REPOSITORY / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, root / name)
    kept = "git add --all && git -c user.name=x -c user.email=x commit --quiet --allow-empty --message now"
    subprocess.run(kept, shell=True, cwd=root, check=True)
    (root / ".venv").symlink_to(sys.prefix)
    for name in ("requirements.lock", "pyproject.toml"):  # or make would set up anew, which CI does before
        os.utime(root / name, (0, 0))
    return root


def run(root: Path, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`script` in the clone at `root`, in the shell that the README says; what it prints is in `stdout`."""
    root.with_name("typed.sh").write_text(f"set -e\n{ENDED}\n{script}\n")
    here = {"PYTHONPATH": f"{root}/lib", "EVOLVINGDP_CACHE": CACHE, "SHELL": "/bin/bash"} | variables
    environment = {name: value for name, value in (os.environ | here).items() if name not in OURS}
    given = {"cwd": root, "env": environment, "input": "exec bash ../typed.sh", "text": True}
    return subprocess.run(["make", "shell"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **given)
