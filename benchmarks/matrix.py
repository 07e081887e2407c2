"""`make matrix`: unit and privacy tests on each supported Python of this machine, with the oldest and the newest packages.

    python benchmarks/matrix.py                      (or: make matrix)
    python benchmarks/matrix.py --only 3.12-newest

For each Python that is installed an environment is made in _build/matrix with the oldest or the newest versions that
pyproject.toml allows, from whatever index pip and uv are set up for.  Writes benchmarks/results/matrix.csv, a row an
environment, also for those that this machine cannot have.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

from evolvingdp.audit.ledger import listing  # imports every mechanism: a changed one makes the result an old one
from evolvingdp.publish.rendering.dated import stamp

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
UV = str(Path(sys.executable).with_name("uv"))
PYTHONS, RESOLUTIONS = ("3.11", "3.12", "3.13"), {"oldest": "lowest-direct", "newest": "highest"}
TOOLS = (  # packaging: setuptools takes the one that is installed, and needs this
    *("pytest>=8.3", "pytest-xdist>=3.6", "hypothesis>=6.100", "filelock>=3", "dp-accounting>=0.6"),
    *("setuptools>=77", "pip>=25", "packaging>=24.2"),
)
SHOWN = ("numpy", "scipy", "pandas")
VERSIONS = f"from importlib.metadata import version; print(*map(version, {SHOWN}))"
COLUMNS = ["Python", "packages", *SHOWN, "tests", "result", "tested on"]


def interpreter(version: str) -> str | None:
    """A Python of this minor version that pyproject.toml allows: one that uv finds, or one of pyenv's."""
    home = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    known = sorted(map(str, home.glob(f"{version}.*/bin/python")))
    wanted = f">={version}{'.5' if version == '3.11' else ''},<{version}.999"
    asked = [UV, "python", "find", "--no-python-downloads", "--system", wanted]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return next(iter([*known, *done.stdout.split()]), None)


def environment(version: str, packages: str, *, reuse: bool) -> tuple[str, str]:
    """The Python of an environment that has everything, made anew unless it may be that of before; or "" and why not."""
    found, place = interpreter(version), ROOT / "_build" / "matrix" / f"{version}-{packages}"
    if found is None:
        return "", "no such Python here"
    if reuse and (place / "bin" / "pytest").is_file():
        return str(place / "bin" / "python"), ""
    python = place / "bin" / "python"
    install = [
        UV,
        "pip",
        "install",
        "--quiet",
        "--python",
        str(python),
        "--only-binary",
        ":all:",
        "--no-binary",
        "evolvingdp",
    ]
    for command in (
        [UV, "venv", "--quiet", "--clear", "--python", found, str(place)],
        [*install, "--resolution", RESOLUTIONS[packages], "--editable", f"{ROOT}[run]", *TOOLS],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return "", f"cannot be installed: {' '.join(done.stderr.split())[:200]}"
    return str(python), ""


def tested(python: str, tests: list[str]) -> dict[str, str]:
    """How the tests end there, in words; the names of those that fail go to the terminal."""
    shown = subprocess.run([python, "-W", "ignore", "-c", VERSIONS], capture_output=True, text=True, check=True)
    command = [python, "-m", "pytest", "-rfE", "-p", "no:cacheprovider", "-W", "default", *tests]
    variables = os.environ | {"PYTHONPATH": str(ROOT / "lib"), "OPENBLAS_NUM_THREADS": "1"}
    ran = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    print("\n".join(line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))), file=sys.stderr)
    counts = re.search(r"((\d+ \w+(, )?)+) in [\d.]+s", ran.stdout)
    end = {0: "all pass", 5: "nothing was tested"}.get(ran.returncode, f"exit code {ran.returncode}")
    return dict(zip(SHOWN, shown.stdout.split(), strict=True)) | {"tests": counts[1] if counts else "none", "result": end}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [f"{version}-{packages}" for version in PYTHONS for packages in RESOLUTIONS]
    parser.add_argument("--only", choices=names, action="append")
    parser.add_argument("--make", action="store_true", help="make the environments, and test nothing")
    parser.add_argument("--reuse", action="store_true", help="use those that were made before")
    parser.add_argument("tests", nargs="*", default=["tests/unit", "tests/privacy"])
    asked = parser.parse_args()
    assert listing
    result = RESULTS / "matrix.csv"
    for name in asked.only or names:
        version, packages = name.split("-")
        python, why = environment(version, packages, reuse=asked.reuse)
        if asked.make:
            print(f"{name}: {why or python}", flush=True)
            continue
        row = {"Python": version, "packages": packages} | (tested(python, asked.tests) if python else {"result": why})
        print(", ".join(row.values()), flush=True)
        table = pd.read_csv(result, dtype=str) if result.is_file() else pd.DataFrame(columns=COLUMNS)
        table = table[(table.Python != version) | (table.packages != packages)]
        rows = pd.concat([table, pd.DataFrame([row | {"tested on": time.strftime("%Y-%m-%d")}])])
        rows.sort_values(["Python", "packages"], ascending=[True, False])[COLUMNS].to_csv(
            result, index=False, lineterminator="\n"
        )
        stamp("matrix", Path(__file__), "make matrix", RESULTS)


if __name__ == "__main__":
    main()
