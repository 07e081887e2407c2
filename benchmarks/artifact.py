"""What each command of the artifact appendix costs: CPU minutes, the largest process, disk.

    python benchmarks/artifact.py                      (or: make artifact)
    python benchmarks/artifact.py "python -m doctest README.md"

Runs the commands of book/artifact.md, each alone.  Writes benchmarks/results/artifact.csv, with which a test compares the
page.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

from evolvingdp.book import checkout
from evolvingdp.book.dated import stamp

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"


MAIN = "from evolvingdp.book.cli import main; main()"
COMMANDS = re.compile(r"^\|[^|]*\| `([^`]*)` \|", re.MULTILINE)  # the second column of the page's table


def commands() -> list[str]:
    """Those of the page's table, once each."""
    return list(dict.fromkeys(COMMANDS.findall((ROOT / "book" / "artifact.md").read_text())))


def cost(command: str) -> dict[str, object]:
    """A row of the table; a run starts with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        program, *words = (word.replace("my-run", f"{folder}/my-run") for word in shlex.split(command))
        start = [sys.executable, "-c", MAIN] if program == "evolvingdp" else [sys.executable]
        with subprocess.Popen([*start, *words], cwd=ROOT, env=os.environ | {"EVOLVINGDP_CACHE": f"{folder}/cache"}) as run:
            _, code, used = os.wait4(run.pid, 0)  # of the command and all that it started and waited for
            run.returncode = os.waitstatus_to_exitcode(code)
        if run.returncode:
            sys.exit(f"{command}: exit code {run.returncode}")
        written = sum(path.stat().st_size for path in Path(folder, "my-run").rglob("*") if path.is_file())
    return {
        "command": command,
        "CPU minutes": f"{(used.ru_utime + used.ru_stime) / 60:.1f}",
        "memory (MB)": round(used.ru_maxrss * 1024 / 1e6),
        "disk (MB)": f"{written / 1e6:.1f}",
    }


def main() -> None:
    path = RESULTS / "artifact.csv"
    for command in sys.argv[1:] or commands():
        row = cost(command)
        print(row, flush=True)
        table = pd.read_csv(path, dtype=str) if path.is_file() else pd.DataFrame(columns=list(row))
        pd.concat([table[table.command != command], pd.DataFrame([row])]).to_csv(path, index=False, lineterminator="\n")
        known = json.loads((RESULTS / "artifact.json").read_text())["notebooks"] if len(table) else {}
        ran = [word for word in command.split() if "/" in word and command.startswith("evolvingdp")]
        codes = {notebook: checkout.made_of(notebook)["library"] for notebook in ran}
        stamp("artifact", Path(__file__), "make artifact", RESULTS, known | codes)


if __name__ == "__main__":
    main()
