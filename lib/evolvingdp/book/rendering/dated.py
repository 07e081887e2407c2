"""Results of commands that are too long for the build or the tests: dated, and marked when the library has changed since.

    {measured}`thresh`

prints when and by which command benchmarks/results/thresh.csv was made, from thresh.json beside it, which `stamp` writes,
and whether what that command imports of the library is still what it was, and on which machine where that is recorded.

    ```{timings}
    Ten million users send a bit each | frequency oracle | per user: client and server
    thresh
    ```

is a table of seconds and memory from benchmarks/results/speed.csv, a row for each line: what it is, the table, its row; or
all rows of a table.  `{loop}` is the table of what a change waits for, if loop.csv is there, and what it was before, of
loop_before.csv.
"""

from __future__ import annotations

import csv
import datetime
import json
import re
from collections.abc import Sequence
from pathlib import Path

import psutil
from docutils import nodes
from sphinx.util.docutils import SphinxDirective, SphinxRole

from evolvingdp.book import checkout

FOLDER = Path("benchmarks", "results")
_NAMED = 3  # notebooks that a sentence names one by one


def stamp(name: str, script: Path, command: str, folder: Path, notebooks: dict[str, str] | None = None) -> None:
    """Write `name`.json to `folder`: `command`, which runs `script` of benchmarks/, has made `name`'s tables today.

    `notebooks`: the digests of those that it ran, where it imports them by name only.
    """
    place = script.resolve().relative_to(checkout.REPOSITORY / "benchmarks").as_posix()
    told: dict[str, object] = {"command": command, "date": str(datetime.date.today()), "script": place}
    told |= {"notebooks": notebooks} if notebooks else {"library_sha256": library(script)}
    told["machine"] = machine()
    (folder / f"{name}.json").write_text(json.dumps(told, indent=1) + "\n")


def machine() -> str:
    """This machine's processor, cores and memory: "AMD EPYC, 2 cores, 24 GB"."""
    cores, memory = psutil.cpu_count(), psutil.virtual_memory().total / 1e9
    info = Path("/proc/cpuinfo")
    model = re.search(r"^model name\s*: (.+)$", info.read_text() if info.exists() else "", re.MULTILINE)
    return f"{model[1] if model else 'unknown processor'}, {cores} cores, {memory:.0f} GB"


def library(script: Path) -> str:
    """Digest of the rooms that `script` imports, and of what these import; where it imports none, of all."""
    named = checkout.imported(script.read_bytes()) - {"book"}
    return checkout.digest(checkout.rooms(named or checkout.all_rooms()))


def sentence(root: Path, name: str) -> list[nodes.Node]:
    """When and how the result `name` was made; raises OSError, KeyError or ValueError where its stamp cannot be read."""
    told = json.loads((root / FOLDER / f"{name}.json").read_text())
    if "notebooks" in told:
        changed = [name for name, before in told["notebooks"].items() if checkout.made_of(name)["library"] != before]
        which = ", ".join(changed) if len(changed) <= _NAMED else f"{len(changed)} of {len(told['notebooks'])} notebooks"
        since = f"; since then the code of {which} has changed." if changed else "."
    else:
        same = told["library_sha256"] == library(root / "benchmarks" / told["script"])
        since = "." if same else "; what it measures has changed in the library since."
    typed, *again = told["command"].split(",", 1)
    where = f" ({told['machine']})" if "machine" in told else ""
    return [
        nodes.Text(f"Measured on {told['date']} by "),
        nodes.literal(text=typed),
        nodes.Text("".join(f",{more}" for more in again) + where + since),
    ]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def timings(root: Path, lines: Sequence[str]) -> str:
    """The table of the directive as Markdown; raises OSError or ValueError for a line without a result."""
    table, known = ["| | size | seconds | memory (GB) |", "|---|--:|--:|--:|"], rows(root / FOLDER / "speed.csv")
    for line in lines:
        *said, name, what = ["", *line.split(" | ")] if " | " in line else [line, ""]
        found = [row for row in known if row["table"] == name.strip() and what.strip() in ("", row["what"])]
        if not found:
            raise ValueError(f"speed.csv has no {line!r}")
        for row in found:
            told = row["what"] if not what else said[-1].strip()
            table.append(f"| {told} | {row['size']} | {row['seconds']} | {row['peak memory (GB)']} |")
    return "\n".join(table)


def loop(root: Path) -> str:
    """What a change waits for, now and before, as Markdown; empty without loop.csv."""
    if not (root / FOLDER / "loop.csv").exists():
        return ""
    now, before = rows(root / FOLDER / "loop.csv"), rows(root / FOLDER / "loop_before.csv")
    at, then = next(iter(now[0])), next(iter(before[0]))
    table = [f"| {at} | clock (s) | processor (s) |", "|---|--:|--:|"]
    table += [f"| {row[at]} | {row['clock (s)']} | {row['processor (s)']} |" for row in now if row["processor (s)"]]
    old = "; ".join(f"{row[then]} {float(row['processor (s)']):,g}" for row in before)
    table.insert(0, "What a change of this book waits for:\n")
    return "\n".join(table) + f"\n\nProcessor seconds {then}: {old}. {{measured}}`loop`\n"


class Timings(SphinxDirective):
    """Chosen rows of the benchmarks' tables."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        try:
            return self.parse_text_to_nodes(timings(Path(self.env.srcdir), list(self.content)))
        except (OSError, KeyError, ValueError) as error:
            raise self.error(f"no timings: {error!r}") from error


class Loop(SphinxDirective):
    """The table of benchmarks/loop.py, if it has run."""

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        return self.parse_text_to_nodes(loop(Path(self.env.srcdir)))


class Measured(SphinxRole):
    """The sentence on a dated result."""

    def run(self) -> tuple[Sequence[nodes.Node], Sequence[nodes.system_message]]:  # type: ignore[override]
        self.env.note_reread()  # the library is none of the page's files
        try:
            return sentence(Path(self.env.srcdir), self.text), []
        except (OSError, KeyError, ValueError) as error:
            return [], [self.inliner.reporter.error(f"no dated result {self.text!r}: {error!r}", line=self.lineno)]
