"""Make .venv from the lock: beside the one that is there, which it replaces at the end.  Whoever stops it loses nothing.

pip installs uv, uv installs the rest: all of it checked against the lock's hashes.  Standard library only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV, NEW, OLD = (ROOT / name for name in (".venv", ".venv-new", ".venv-old"))


def users() -> list[str]:
    """Processes that run from .venv, as far as the system tells: they would go on with half of each."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")[:2]
            folder = (process / "cwd").readlink()
        except OSError:  # it has ended, or is somebody else's
            continue
        if any(Path(os.path.normpath(folder / word)).is_relative_to(VENV / "bin") for word in words if word):
            found.append(f"{process.name} ({' '.join(words).strip()})")
    return found


def main() -> None:
    if sys.version_info < (3, 11, 5):
        sys.exit(f"Python >= 3.11.5 is needed, this is {sys.version.split()[0]}; try make PYTHON=python3.12")
    if VENV.is_symlink():
        sys.exit(f".venv is a link to {VENV.readlink()}, where others may work: remove the link, and run this again")
    if busy := users():
        sys.exit(f".venv is in use by process {', '.join(busy)}: end it, and run this again")
    for left in (NEW, OLD):
        shutil.rmtree(left, ignore_errors=True)
    python = NEW / "bin" / "python"

    def step(number: int, said: str, *commands: list[str | Path]) -> None:
        print(f"set-up {number} of 4: {said}", flush=True)
        for command in commands:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"set-up failed ({' '.join(map(str, command))}):\n{done.stdout}{done.stderr}")

    boot = NEW / "boot"  # pip's environment, from which uv makes one that may be moved
    pins = re.search(r"^uv==(?:.*\\\n)*.*\n", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    NEW.mkdir()
    (NEW / "uv.lock").write_text(pins[0] if pins else "")
    pip = [boot / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    step(1, "uv", [sys.executable, "-m", "venv", boot], [*pip, "-r", NEW / "uv.lock"])
    uv = boot / "bin" / "uv"
    into = ["--quiet", "--python", python]
    step(
        2,
        "packages of requirements.lock",
        [uv, "venv", "--quiet", "--relocatable", "--seed", "--allow-existing", "--python", sys.executable, NEW],
        [uv, "pip", "sync", *into, "--compile-bytecode", "--require-hashes", "requirements.lock"],
    )
    installed = [uv, "pip", "install", *into, "--no-deps", "--no-build-isolation", "-e", "."]
    step(3, "evolvingdp", installed, [python, "-m", "compileall", "-q", "lib"])
    step(4, "in its place", [python, "-c", "import evolvingdp.core"])
    shutil.rmtree(boot)
    (NEW / ".ready").touch()
    if VENV.exists():
        VENV.rename(OLD)
    NEW.rename(VENV)
    shutil.rmtree(OLD, ignore_errors=True)
    print("done: .venv/bin/evolvingdp, or `make shell`, in which it is evolvingdp")


if __name__ == "__main__":
    main()
