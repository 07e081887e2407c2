"""What notices mistakes: each is put into a copy of the library, and rows, generators and tests are run on it.

    python benchmarks/mutants.py                              (or: make mutants)
    python benchmarks/mutants.py --sample 24 --seed 1         (so many of them, drawn at random)
    python benchmarks/mutants.py --chapter core tests/unit    (a chapter alone, some tests alone: nothing is written)

A mistake is a row of tests/mutants/<chapter>.csv: its kind, a file below lib/evolvingdp, what it is in words, `old`, which
stands once in the file, and `new`.  Where `old` is there no more it is stale, and counted as such, not as missed.
Tests run once, watched by coverage; a mistake is put to those that run its lines, the quickest first, until one fails.
Writes benchmarks/results/mutants.csv: of each kind, how many are noticed by the ledger's rows alone, by the generators
alone, by ordinary tests alone, and by any of them; after each mistake, so that a stopped command keeps those that it has
tried, and its stamp says how many these are.  What nothing notices is printed: a row, a generator's
setting or a test is missing, or the mistake is none.
"""

from __future__ import annotations

import os
import random
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
from coverage import CoverageData
from measure import asked as options
from measure import write

import evolvingdp
from evolvingdp.audit import ledger
from evolvingdp.core.tables import DATA

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
LIBRARY = Path(evolvingdp.__path__[0])
ROOMS = [f"tests/{room}" for room in ("unit", "reference", "privacy", "statistical")]
ROWS = {f"tests/privacy/test_promises.py::test_the_guarantee_is_kept[{one.id}]" for one in ledger.entries()}
GENERATORS = ("tests/privacy/test_refusals.py", "tests/privacy/test_one_more.py")
BY = ("rows", "generators", "tests")
READ = "audit/registry/listing.py"  # lists what the library has
PYTEST = (sys.executable, "-m", "pytest", "-q", "--tb=no", "-rfE")


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


@dataclass(frozen=True)
class Traced:
    """Which tests run which lines of the library, and what each takes, in seconds."""

    lines: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]

    @classmethod
    def of(cls, tests: list[str]) -> Traced:
        """`tests`, each run once on a copy without a mistake; who fails there is told, and not asked."""
        watched = ("--cov=evolvingdp", "--cov-context=test", "--cov-report=", "--durations=0", "--durations-min=0")
        with copied() as (library, variables):
            data = library.parent / "coverage"
            command = [*PYTEST, "-n", str(os.cpu_count()), "-vv", *watched, *tests]
            variables |= {"COVERAGE_FILE": str(data)}
            done = subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True)
            found = CoverageData(str(data))
            found.read()
            lines = {
                Path(file).relative_to(library).as_posix(): {
                    line: [test.removesuffix("|run") for test in tests if test]
                    for line, tests in found.contexts_by_lineno(file).items()
                }
                for file in found.measured_files()
                if Path(file).is_relative_to(library)
            }
        failed = re.findall(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
        print("".join(f"fails without a mistake, and is not asked: {name}\n" for name in failed), end="", flush=True)
        seconds = {name: float(took) for took, name in re.findall(r"^([\d.]+)s call +(\S.*)$", done.stdout, re.MULTILINE)}
        return cls(lines, {name: took for name, took in seconds.items() if name not in failed})

    def near(self, file: str, old: str) -> list[str]:
        """The tests that run a line of `old`, quickest first; where only an import does, those that run any of `file`. And
        those that read the code itself, for what nobody runs."""
        first = (LIBRARY / file).read_text().split(old)[0].count("\n") + 1
        ran = self.lines.get(file, {})
        own = set().union(*(ran.get(line, ()) for line in range(first, first + old.count("\n") + 1)))
        readers = {test for tests in self.lines.get(READ, {}).values() for test in tests}
        return sorted(((own or set().union(*ran.values())) | readers) & self.seconds.keys(), key=self.seconds.__getitem__)


@contextmanager
def copied() -> Iterator[tuple[Path, dict[str, str]]]:
    """A copy of the library, and the variables with which tests run on it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder).resolve() / "evolvingdp"
        shutil.copytree(LIBRARY, copy)
        (copy / "data").symlink_to(DATA)  # as an installed one
        variables = os.environ | {"PYTHONPATH": str(copy.parent), "OPENBLAS_NUM_THREADS": "1"}
        variables["EVOLVINGDP_NOTEBOOKS"] = str(ROOT / "notebooks")  # or tests that import them fail for want of them
        yield copy, variables


def asks(test: str) -> str:
    """Which of `BY` a test belongs to."""
    if test in ROWS:
        return "rows"
    return "generators" if test.startswith(GENERATORS) else "tests"


def noticed(mistake: dict[str, str], traced: Traced) -> dict[str, str]:
    """By each of `BY` the first test that fails, or nothing."""
    found = dict(mistake)
    text = changed(mistake["file"], mistake["old"], mistake["new"])
    assert text is not None
    with copied() as (library, variables):
        (library / mistake["file"]).write_text(text)
        near = traced.near(mistake["file"], mistake["old"])
        for by in BY:
            found[by] = ""
            if not (tests := [test for test in near if asks(test) == by]):
                continue
            command = [*PYTEST, "-x", *tests]
            patience = 60 + 10 * sum(traced.seconds[test] for test in tests)  # longer: an endless loop, noticed
            try:
                done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=patience)
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
    given = options(__doc__, chapter="", tests=[], sample=0, seed=secrets.randbelow(10**6))
    every = mistakes()
    told = every[~every.stale & every.chapter.isin([given.chapter] if given.chapter else every.chapter.unique())]
    seed, most = given.seed, given.sample or len(told)
    told = told.iloc[random.Random(seed).sample(range(len(told)), len(told))[:most]]  # with more, these are the first
    print(f"{len(told)} mistakes in the order of --seed {seed}", flush=True)
    for chapter, number in every[every.stale].chapter.value_counts().items():
        print(f"{chapter}: {number} mistakes are stale, rewrite them")
    traced, found = Traced.of(given.tests or ROOMS), list[dict[str, str]]()
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # each waits for processes of its own
        for one in pool.map(partial(noticed, traced=traced), told.to_dict("records")):
            found.append(one)
            if not given.chapter and not given.tests:
                some = "" if len(found) == len(told) and not given.sample else f", {len(found)} drawn with --seed {seed}"
                write("mutants", rates(pd.DataFrame(found)), "make mutants" + some)
    print(rates(pd.DataFrame(found)).to_string(index=False))


if __name__ == "__main__":
    main()
