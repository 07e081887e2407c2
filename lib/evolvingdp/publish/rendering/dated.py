"""Results of commands that are too long for the build or the tests: dated, and marked when the library has changed since.

    {measured}`thresh`

prints when and by which command benchmarks/results/thresh.csv was made, from thresh.json beside it, which `stamp` writes,
and whether what that command imports of the library is still what it was.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from evolvingdp.publish.sources import digest

FOLDER = Path("benchmarks", "results")


def stamp(name: str, script: Path, command: str, folder: Path, notebooks: dict[str, str] | None = None) -> None:
    """Write `name`.json to `folder`: `command`, which runs `script` of benchmarks/, has made `name`'s tables today.

    `notebooks`: the digests of those that it ran, where it imports them by name only.
    """
    place = script.resolve().relative_to(digest.REPOSITORY / "benchmarks").as_posix()
    told: dict[str, object] = {"command": command, "date": str(datetime.date.today()), "script": place}
    told |= {"notebooks": notebooks} if notebooks else {"library_sha256": library(script)}
    (folder / f"{name}.json").write_text(json.dumps(told, indent=1) + "\n")


def library(script: Path) -> str:
    """Digest of all of evolvingdp that `script` imports, directly or not."""
    now = digest.Library()
    return now.digest(now.closure(*(name for name in digest.imports(script.read_bytes()) if name.startswith("evolvingdp"))))


def sentence(root: Path, name: str) -> list[nodes.Node]:
    """When and how the result `name` was made; raises OSError, KeyError or ValueError where its stamp cannot be read."""
    told = json.loads((root / FOLDER / f"{name}.json").read_text())
    if "notebooks" in told:
        now = digest.Library()
        changed = [name for name, before in told["notebooks"].items() if digest.of_numbers(name, now)["library"] != before]
        since = f"; since then the code of {', '.join(changed)} has changed." if changed else "."
    else:
        same = told["library_sha256"] == library(root / "benchmarks" / told["script"])
        since = "." if same else "; what it measures has changed in the library since."
    command = nodes.literal(text=told["command"])
    return [nodes.Text(f"Measured on {told['date']} by "), command, nodes.Text(since)]


class Measured(SphinxRole):
    """The sentence on a dated result."""

    def run(self) -> tuple[Sequence[nodes.Node], Sequence[nodes.system_message]]:  # type: ignore[override]
        self.env.note_reread()  # the library is none of the page's files
        try:
            return sentence(Path(self.env.srcdir), self.text), []
        except (OSError, KeyError, ValueError) as error:
            return [], [self.inliner.reporter.error(f"no dated result {self.text!r}: {error!r}", line=self.lineno)]
