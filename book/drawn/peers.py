"""What the performance page says about other packages, from benchmarks/results/peers*.csv: no number is typed.

    {peers} better

says how long peers take, and where one is better than ours, at the largest n that both ran: in every repetition, and by
more than a tenth.
`{peers} packages` is the table of what was run, `{peers} budget` says whether peers keep their promise.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.book.numerals import markdown

OURS = "ours"
CLEARLY = 1.1
TEXT = ["against", "note", "problem", "numpy"]
MEASURES = {"cpu": "time", "memory": "memory", "error": "error"}
BETTER = {"cpu": "faster", "memory": "smaller in memory", "error": "more accurate"}


@dataclass(frozen=True)
class Pair:
    """A peer's method and ours at the largest n that both ran: medians, ratios theirs / ours."""

    package: str
    method: str
    against: str
    n: int
    ratios: dict[str, float]  # by column of MEASURES
    always: dict[str, bool]  # whether the peer's was the smaller in every repetition

    @property
    def name(self) -> str:
        return f"{self.package} {self.method}"

    def better(self, measure: str) -> bool:
        return self.always[measure] and self.ratios[measure] * CLEARLY < 1


def read(root: Path, name: str) -> pd.DataFrame:
    """A table of benchmarks/results; empty cells of text are empty strings."""
    table = pd.read_csv(root / "benchmarks" / "results" / f"{name}.csv")
    for column in table.columns.intersection(TEXT):  # one without any text is read as numbers
        table[column] = table[column].astype(object).fillna("").astype(str)
    return table


def pairs(runs: pd.DataFrame, task: str) -> list[Pair]:
    """Every method of a peer beside ours, in the table's order; those that never ran together are left out."""
    part = runs[(runs["task"] == task) & runs["cpu"].notna()]
    found = []
    for (package, method, against), theirs in part.groupby(["package", "method", "against"], sort=False):
        if package == OURS:
            continue
        ours = part[(part["package"] == OURS) & (part["method"] == against)]
        both = sorted(set(theirs["n"]) & set(ours["n"]))
        if both:
            found.append(_pair(str(package), str(method), str(against), both[-1], theirs, ours))
    return found


def _pair(package: str, method: str, against: str, n: int, theirs: pd.DataFrame, ours: pd.DataFrame) -> Pair:
    a, b = (side[side["n"] == n].set_index("repetition") for side in (theirs, ours))
    ratios = {measure: float(a[measure].median() / b[measure].median()) for measure in MEASURES}
    ratios["error"] = float(np.sqrt(np.mean(a["error"] ** 2) / np.mean(b["error"] ** 2)))
    always = {measure: bool((a[measure] < b[measure].reindex(a.index)).all()) for measure in MEASURES}
    return Pair(package, method, against, int(n), ratios, always)


def ratio(value: float) -> str:
    """As on the page: 0.85, 3.2, 120."""
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def better_section(root: Path) -> str:
    """Times of all tasks, and who is better than ours: a line a measure."""
    runs = read(root, "peers")
    every = [(str(task), pair) for task in runs["task"].unique() for pair in pairs(runs, str(task))]
    times = [pair.ratios["cpu"] for _, pair in every]
    said = [f"At the largest $n$ peers take from {ratio(min(times))} to {ratio(max(times))} times our processor seconds.\n"]
    for measure, word in BETTER.items():
        found = [(task, pair) for task, pair in every if pair.better(measure)]
        parts = [ratio(pair.ratios[measure]) for _, pair in found]
        if len(found) > len(every) / 4:
            span = f"from {min(parts, key=float)} to {max(parts, key=float)} of ours"
            said.append(f"- **{word.capitalize()}**: {len(found)} of {len(every)} methods, {span}.")
        elif found:
            names = (f"{pair.name} ({task}): {part} of ours" for (task, pair), part in zip(found, parts, strict=True))
            said.append(f"- **{word.capitalize()}**: {'; '.join(names)}.")
    return "\n".join(said) + "\n"


def package_section(root: Path) -> str:
    """The packages with their versions, and the machine."""
    facts, runs = read(root, "peers_packages"), read(root, "peers")
    body = [
        [fact["package"], str(fact["version"]), str(fact["numpy"]) or "–", _state(fact, runs)]
        for _, fact in facts.iterrows()
    ]
    least = runs[runs["cpu"].notna()].groupby(["task", "n", "method", "package"])["repetition"].nunique().min()
    machine = f"Python {facts['python'].iloc[0]} on {facts['machine'].iloc[0]}, one core, at least {least}"
    table = markdown(pd.DataFrame(body, columns=["package", "version", "numpy", "state"]))
    return f"{table}\n\n{machine} repetitions of each run.\n"


def _state(fact: Any, runs: pd.DataFrame) -> str:
    """Whether it ran; if not, why not."""
    mine = runs[runs["package"] == fact["package"]]
    if fact["problem"]:
        return f"could not be installed: {fact['problem']}"
    if mine["cpu"].notna().any():
        return "ran"
    return f"did not run: {mine['note'].iloc[0] if len(mine) else 'no task is its own'}"


def budget_section(root: Path) -> str:
    """Whether peers spend what they state; exact values and lower bounds."""
    table = read(root, "peers_budget")
    body = [
        [f"{row['package']} {row['method']}", f"{row['stated']:g}", f"{_how(row)} {row['spent']:.2f}"]
        for _, row in table.iterrows()
    ]
    said = "\n".join(f"- {sentence}" for sentence in broken(table))
    methods = markdown(pd.DataFrame(body, columns=["method", "stated", "found"]))
    return f"{said}\n\n::::{{dropdown}} What each method states, and what was found\n{methods}\n::::\n"


def _how(row: Any) -> str:
    return "≥" if row["how"].startswith("at least") else "="


def broken(budget: pd.DataFrame) -> list[str]:
    """The sentences on budgets: what was refuted, what was not, what is more than promised."""
    over = budget[budget["spent"] > budget["stated"] * (1 + 1e-6)]
    said = [
        f"**{row['package']} {row['method']} spends more than it states**: epsilon {_how(row)} {row['spent']:.2f} where it "
        f"states {row['stated']:g}{row['how'].removeprefix('at least').removeprefix('exact')}."
        for _, row in over.iterrows()
    ]
    less = budget[(budget["how"] == "exact") & (budget["spent"] < budget["stated"] * (1 - 1e-3))]
    names = [f"{row['package']} {row['method']} ({row['spent']:.2f} of {row['stated']:g})" for _, row in less.iterrows()]
    if names:
        said.append(f"Noisier than needed on a short stream: {', '.join(names)}.")
    said.append(f"Of {len(budget)} methods looked at, {len(budget) - len(over)} were not seen to break their promise.")
    return said


def section(root: Path, what: str, *_: object) -> str:
    """Markdown of one directive: `better`, `packages` or `budget`."""
    return {"better": better_section, "packages": package_section, "budget": budget_section}[what](root)
