"""How many mistakes the privacy ledger notices by itself: each is put into a copy of the library, and the ledger is run.

    python benchmarks/ledger_mutants.py      (or: make mutants)
    python benchmarks/ledger_mutants.py --only ledger_mutants_held_out_sixth

The mistakes are realistic ones, each of which makes a mechanism lose more than it promises (half noise, 10 % less noise,
memos redrawn, budgets not spent or spent twice, deletions off by one, sensitivities wrong, clamps missing, randomness
shared). Those of ledger_mutants.json were chosen by whoever wrote the ledger; those of ledger_mutants_held_out*.json by
others, who had not seen it, each list after rows had been added for what the one before had shown.  Writes
benchmarks/results/ledger_mutants.csv, a row a mistake of all lists, and ledger_mutants_summary.csv, which the book shows.
`--only` runs one list and writes tables with its name, and ledger_mutants_held_out_lists.csv, a row a list: that of a
held-out list is made once, before anybody mends the ledger by it.

Rows are asked: for a mistake in `core` all, for one in a chapter those of its modules and of `core`. An error in a row
counts as noticed, since no book is built then.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
from scipy.stats import beta

import evolvingdp
from evolvingdp.audit.ledger import listing
from evolvingdp.audit.ledger.mutant import Mutant
from evolvingdp.core.tables import DATA
from evolvingdp.publish.rendering import dated

HERE = Path(__file__).parent
RESULTS = HERE / "results"
LIBRARY = Path(evolvingdp.__path__[0])
HELD_OUT = ("", "_later", "_third", "_fourth", "_fifth", "_sixth", "_seventh", "_eighth")
LISTS = ("ledger_mutants", *(f"ledger_mutants_held_out{which}" for which in HELD_OUT))
ALL = tuple(chapter.__name__.rsplit(".", 1)[1] for chapter in listing.CHAPTERS)


Case = dict[str, str]  # file, mistake, old, new

CHAPTERS = ("core", "heavy_hitters", "evolving", "continual_mean", "sparse_vector", "streams")  # as the book has them


def changed_copy(case: Case, folder: Path) -> None:
    """A library in `folder` that has the mistake, and its data, as an installed one."""
    copy = folder / "evolvingdp"
    shutil.copytree(LIBRARY, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "data").symlink_to(DATA)
    (copy / case["file"]).write_text(Mutant(case["file"], case["old"], case["new"]).source())


def noticed(case: Case) -> dict[str, str]:
    """The first row of the ledger that fails, and by which verdict."""
    chapter = case["file"].split("/")[0]
    chapters = ALL if chapter == "core" else ("core", *(name for name in ALL if name.startswith(chapter)))
    with tempfile.TemporaryDirectory() as folder:
        changed_copy(case, Path(folder))
        environment = os.environ | {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, str(HERE / "ledger_alone.py"), *chapters]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200, check=False)
        except subprocess.TimeoutExpired:
            return {"row": "", "by": ""}
    if done.returncode:
        return {"row": "", "by": "raises on import"}
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(cases: list[Case], known: dict[tuple[str, str], Case], path: Path) -> pd.DataFrame:
    rows: list[Case] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # each waits for a process of its own
        asked = [(known.get((case["file"], case["mistake"])), case) for case in cases]
        waiting = [(row, case, None if row else pool.submit(noticed, case)) for row, case in asked]
        for row, case, told in waiting:
            found = told.result() if told else {}
            seen = "yes" if found.get("by") else "no"
            rows.append(row or {"file": case["file"], "mistake": case["mistake"], "noticed": seen, **found})
            if told:
                print(f"{len(rows)}/{len(cases)} {case['file']}: {case['mistake']}: {found}", flush=True)
                pd.DataFrame([*rows, *(row for row in known.values() if row not in rows)]).to_csv(path, index=False)
    return pd.DataFrame(rows)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """By chapter, and of all: mistakes, noticed, and by which verdict of a row."""
    by = rows.by.where(~rows.by.str.startswith("raises"), "raised")
    counted = rows.assign(by=by, chapter=rows.file.str.split("/").str[0])
    chapters = dict(iter(counted.groupby("chapter")))
    parts = [*((name, chapters[name]) for name in CHAPTERS if name in chapters), ("all", counted)]
    return pd.DataFrame(
        {
            "in": str(name).replace("_", " "),
            "mistakes": len(part),
            "noticed": int((part.noticed == "yes").sum()),
            "promise": int((part.by == "promise").sum()),
            "pinned": int((part.by == "pinned loss").sum()),
            "error": int((part.by == "raised").sum()),
        }
        for name, part in parts
    )


def held_out() -> pd.DataFrame:
    """Each held-out list on its own date: how many mistakes were noticed, and what share of such mistakes surely is."""
    rows: list[dict[str, str | int]] = []
    for name in LISTS[1:]:
        table = pd.read_csv(RESULTS / f"{name}_summary.csv")
        mistakes, noticed = table.loc[table["in"] == "all", ["mistakes", "noticed"]].to_numpy().tolist()[0]
        rows.append(
            {
                "list": len(rows) + 1,
                "measured": json.loads((RESULTS / f"{name}.json").read_text())["date"],
                "shown to": "rows and record" if "record" in table else "rows",
                "mistakes": mistakes,
                "noticed": noticed,
                "noticed (%)": f"{noticed / mistakes:.0%}".rstrip("%"),
                "at least (%)": f"{beta.ppf(0.05, noticed, mistakes - noticed + 1):.1%}".rstrip("%"),
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resume", action="store_true", help="keep what a run that was stopped has noticed")
    parser.add_argument("--only", choices=LISTS[1:], help="the mistakes of this list alone")
    asked = parser.parse_args()
    name, lists = asked.only or LISTS[0], [asked.only] if asked.only else LISTS
    cases = [case for each in lists for case in json.loads((HERE / f"{each}.json").read_text())]
    path = RESULTS / f"{name}.csv"
    before = pd.read_csv(path, keep_default_na=False).to_dict("records") if asked.resume and path.exists() else []
    known = {(str(row["file"]), str(row["mistake"])): row for row in before if row["noticed"] == "yes"}
    rows = table(cases, known, path)  # type: ignore[arg-type]
    rows.to_csv(path, index=False)
    summary(rows).to_csv(RESULTS / f"{name}_summary.csv", index=False)
    print(summary(rows).to_string(index=False))
    command = f"python benchmarks/ledger_mutants.py --only {name}" if asked.only else "make mutants"
    dated.stamp(name, Path(__file__), command, RESULTS)
    held_out().to_csv(RESULTS / f"{LISTS[1]}_lists.csv", index=False)


if __name__ == "__main__":
    main()
