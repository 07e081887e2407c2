"""What notices mistakes: each is put into a copy of the library, and rows, generators and tests are run on it.

    python benchmarks/mutants.py                              (or: make mutants)
    python benchmarks/mutants.py --sample 24 --seed 1         (so many of them, drawn at random)
    python benchmarks/mutants.py --chapter core --by tests    (a chapter alone, one of the three alone: nothing is written)

A mistake is a row of tests/mutants/<chapter>.csv: its kind, a file below lib/evolvingdp, what it is in words, `old`, which
stands once in the file, and `new`.  Where `old` is there no more it is stale, and counted as such, not as missed.
Writes benchmarks/results/mutants.csv: of each kind, how many are noticed by the ledger's rows alone, by the generators
alone, by the ordinary tests of its room alone, and by any of them; after each mistake, so that a stopped command keeps
those that it has tried, and its stamp says how many these are.  What nothing notices is printed: a row, a generator's
setting or a test is missing, or the mistake is none.
"""

from __future__ import annotations

import os
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pandas as pd
from measure import asked as options
from measure import write

import evolvingdp
from evolvingdp.audit import ledger
from evolvingdp.core.tables import DATA

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
LIBRARY = Path(evolvingdp.__path__[0])
GENERATORS = ("test_refusals.py", "test_one_more.py")
LEDGER = TESTS / "privacy" / "test_promises.py"
BY = ("rows", "generators", "tests")
PATIENCE = 1200.0  # seconds; who waits longer has met an endless loop, which counts as noticed


def mistakes() -> pd.DataFrame:
    """All of them, by chapter; `stale`: what they change is there no more."""
    files = sorted((TESTS / "mutants").glob("*.csv"))
    table = pd.concat([pd.read_csv(file, keep_default_na=False).assign(chapter=file.stem) for file in files])
    return table.assign(
        stale=[changed(file, old, new) is None for file, old, new in table[["file", "old", "new"]].to_numpy()]
    )


def changed(file: str, old: str, new: str) -> str | None:
    """The file's text with the mistake in it; None where `old` does not stand there once."""
    path = LIBRARY / file
    text = path.read_text() if path.is_file() else ""
    return text.replace(old, new) if text.count(old) == 1 else None


def asked(by: str, chapter: str, file: str) -> list[str]:
    """What pytest is given: tests that have to do with a chapter name it; those that name the file come first."""
    if by == "rows":  # what is wrong in core may show in all
        own = [one.id for one in ledger.entries() if chapter in ("core", one.chapter)]
        return [f"{LEDGER}::test_the_guarantee_is_kept[{name}]" for name in own]
    generators = [str(TESTS / "privacy" / name) for name in GENERATORS if (TESTS / "privacy" / name).is_file()]
    if by == "generators":
        return generators
    every = [
        path for room in ("unit", "reference", "privacy", "statistical") for path in sorted((TESTS / room).glob("test_*.py"))
    ]
    near = [path for path in every if f"evolvingdp.{chapter}" in path.read_text() and path != LEDGER]
    near.sort(key=lambda path: Path(file).stem not in path.read_text())
    return [str(path) for path in near if str(path) not in generators]


def noticed(mistake: dict[str, str], asked_by: tuple[str, ...]) -> dict[str, str]:
    """By each of `BY` the first test that fails, or nothing; only those of `asked_by` are tried."""
    found = dict(mistake)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "evolvingdp"
        shutil.copytree(LIBRARY, copy, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / "data").symlink_to(DATA)  # as an installed one
        text = changed(mistake["file"], mistake["old"], mistake["new"])
        assert text is not None
        (copy / mistake["file"]).write_text(text)
        variables = os.environ | {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
        variables["EVOLVINGDP_NOTEBOOKS"] = str(ROOT / "notebooks")  # or tests that import them fail for want of them
        for by in BY:
            found[by] = ""
            if by not in asked_by or not (tests := asked(by, mistake["chapter"], mistake["file"])):
                continue
            command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-rfE", *tests]
            try:
                done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=PATIENCE)
                failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
                found[by] = (failed or ["no test ran to its end"])[0] if done.returncode else ""
            except subprocess.TimeoutExpired:
                found[by] = "endless"
    by_which = ", ".join(by for by in BY if found[by]) or "NOT NOTICED"
    print(f"{mistake['chapter']}: {mistake['what']}: {by_which}", flush=True)
    return found


def rates(table: pd.DataFrame) -> pd.DataFrame:
    """A row a kind, the largest first, and one of all."""
    seen = table.assign(**{by: table[by] != "" for by in BY}, any=(table[[*BY]] != "").any(axis=1), mistakes=1)
    columns = ["mistakes", *BY, "any"]
    by_kind = seen.groupby("kind")[columns].sum().sort_values("mistakes", ascending=False)
    return pd.concat([by_kind, seen[columns].sum().to_frame("all").T]).rename_axis("kind").reset_index()


def main() -> None:
    given = options(__doc__, chapter="", by="", sample=0, seed=secrets.randbelow(10**6))
    if given.by not in ("", *BY):
        sys.exit(f"by must be one of {', '.join(BY)}, got {given.by!r}")
    every = mistakes()
    told = every[~every.stale & every.chapter.isin([given.chapter] if given.chapter else every.chapter.unique())]
    seed, most = given.seed, given.sample or len(told)
    told = told.iloc[random.Random(seed).sample(range(len(told)), len(told))[:most]]  # with more, these are the first
    print(f"{len(told)} mistakes in the order of --seed {seed}", flush=True)
    for chapter, number in every[every.stale].chapter.value_counts().items():
        print(f"{chapter}: {number} mistakes are stale, rewrite them")
    found: list[dict[str, str]] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # each waits for processes of its own
        for one in pool.map(partial(noticed, asked_by=(given.by,) if given.by else BY), told.to_dict("records")):
            found.append(one)
            if not given.chapter and not given.by:
                some = "" if len(found) == len(told) and not given.sample else f", {len(found)} drawn with --seed {seed}"
                write("mutants", rates(pd.DataFrame(found)), "make mutants" + some)
    print(rates(pd.DataFrame(found)).to_string(index=False))


if __name__ == "__main__":
    main()
