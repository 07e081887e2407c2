"""What an archive needs of a release, in _build/release: wheel, book as zip and PDF, checksums, what describes them.

The version stands in pyproject.toml alone: `release.py --set` writes it and today's date to CITATION.cff and codemeta.json.
`make release` runs everything else first: all tests, the book at the paper's scale.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DESCRIBED = ("CITATION.cff", "codemeta.json", "CHANGELOG.md", "LICENSE", "LICENSE-CONTENT", "README.md")
BUILT = ("evolving-privacy.zip", "evolving-privacy.pdf")


def faults(root: Path = ROOT) -> list[str]:
    """Where the version, its date or the licence is not the same; empty when a release may be made."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    citation, meta = (root / "CITATION.cff").read_text(), json.loads((root / "codemeta.json").read_text())
    version, released = project["version"], re.search(r"^date-released: (.*)$", citation, re.MULTILINE)[1]
    checks = {
        "CITATION.cff has another version": f"\nversion: {version}\n" in citation,
        "codemeta.json has another version": meta["version"] == version,
        "codemeta.json has another date than CITATION.cff": meta["dateModified"] == released,
        "codemeta.json has another licence": meta["license"].endswith(f"/{project['license']}"),
        "codemeta.json has other requirements": meta["softwareRequirements"] == project["dependencies"],
        "codemeta.json has another title": meta["name"] == project["description"],
        "CHANGELOG.md has no such version and date": f"\n## {version} ({released})\n" in (root / "CHANGELOG.md").read_text(),
    }
    return [fault for fault, fine in checks.items() if not fine]


def set_version(root: Path = ROOT) -> None:
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    today = datetime.date.today().isoformat()
    citation = re.sub(r"(?m)^version: .*$", f"version: {version}", (root / "CITATION.cff").read_text())
    (root / "CITATION.cff").write_text(re.sub(r"(?m)^date-released: .*$", f"date-released: {today}", citation))
    meta = json.loads((root / "codemeta.json").read_text()) | {"version": version, "dateModified": today}
    (root / "codemeta.json").write_text(json.dumps(meta, indent=1) + "\n")


def main() -> None:
    if "--set" in sys.argv[1:]:
        set_version()
    found = faults()
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True).stdout:
        found.append("the working tree differs from its commit")
    if found:
        sys.exit("no release: " + "; ".join(found))
    folder = ROOT / "_build" / "release"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    build = [".venv/bin/uv", "build", "--wheel", "--no-build-isolation", "--quiet", "--out-dir", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True)
    for name in (*(f"_build/{built}" for built in BUILT), *DESCRIBED):
        shutil.copy(ROOT / name, folder)
    (folder / ".gitignore").unlink(missing_ok=True)  # uv's
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in sorted(folder.iterdir())]
    (folder / "SHA256SUMS").write_text("\n".join(lines) + "\n")
    print(f"made: {folder}")


if __name__ == "__main__":
    main()
