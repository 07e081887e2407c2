"""Results of commands that are too long for the build or the tests: dated, and marked when the library has changed since."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path

import psutil

from evolvingdp.book import checkout
from evolvingdp.book.files import REPOSITORY

FOLDER = Path("benchmarks", "results")
_NAMED = 3  # notebooks that a sentence names one by one


def stamp(name: str, script: Path, command: str, folder: Path, notebooks: dict[str, str] | None = None) -> None:
    """Write `name`.json to `folder`: `command`, which runs `script` of benchmarks/, has made `name`'s tables today.

    `notebooks`: the digests of those that it ran, where it imports them by name only.
    """
    place = script.resolve().relative_to(REPOSITORY / "benchmarks").as_posix()
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


def sentence(root: Path, name: str) -> str:
    """When and how the result `name` was made, as Markdown; raises OSError, KeyError or ValueError without its stamp."""
    told = json.loads((root / FOLDER / f"{name}.json").read_text())
    if "notebooks" in told:
        changed = [name for name, before in told["notebooks"].items() if checkout.made_of(name)["library"] != before]
        which = ", ".join(changed) if len(changed) <= _NAMED else f"{len(changed)} of {len(told['notebooks'])} notebooks"
        since = f"; since then the code of {which} has changed." if changed else "."
    else:
        then = told.get("library_sha256")  # none where the commit is told
        same = then in (None, library(root / "benchmarks" / told["script"]))
        since = "." if same else "; what it measures has changed in the library since."
    typed, *again = told["command"].split(",", 1)
    where = f" ({told['machine']})" if "machine" in told else ""
    return f"Measured on {told['date']} by `{typed}`{''.join(f',{more}' for more in again)}{where}{since}"
