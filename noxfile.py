"""`make matrix`: unit and privacy tests on each supported Python that is here, with the oldest and the newest packages.

.venv/bin/nox -s "tests-3.12(newest)" -- tests/unit/test_thresh.py
"""

from __future__ import annotations

import shutil
import subprocess

import nox

nox.options.default_venv_backend = "uv"
nox.options.envdir = "_build/nox"
TOOLS = (  # packaging: setuptools takes the one that is installed, and needs this
    *("pytest>=8.3", "pytest-xdist>=3.6", "hypothesis>=6.100", "filelock>=3", "pytest-cov>=6", "dp-accounting>=0.6"),
    *("setuptools>=77", "pip>=25", "packaging>=24.2"),
)


def works(version: str) -> bool:
    """Whether this Python is here; pyenv has names for all that it knows, of which those that are not chosen fail."""
    program = shutil.which(f"python{version}")
    return bool(program) and not subprocess.run([program or "", "-V"], capture_output=True).returncode


@nox.session(python=[version for version in ("3.11", "3.12", "3.13") if works(version)])
@nox.parametrize("resolution", [nox.param("lowest-direct", id="oldest"), nox.param("highest", id="newest")])
def tests(session: nox.Session, resolution: str) -> None:
    wheels = ("--only-binary", ":all:", "--no-binary", "evolvingdp")
    session.install("--resolution", resolution, *wheels, "-e", ".[run]", *TOOLS)
    session.run("uv", "pip", "list", external=True)
    asked = session.posargs or ["tests/unit", "tests/privacy"]
    session.run("python", "-m", "pytest", "-rfE", "-W", "default", *asked, env={"OPENBLAS_NUM_THREADS": "1"})
