"""Is what the planner says true? Random questions, each prediction against the protocol run user by user.

    python benchmarks/planner.py                      (or: make planner)
    python benchmarks/planner.py --questions 20 --seed 7

Questions and the seeds of their runs are drawn from the operating system unless there is a seed; predictions see neither
their data nor their noise. Errors are root mean squares over runs; of an alarm it is the smallest size at which all hot
items are found in 97.5 % of the runs. Goes on where it was stopped,
while the code is the same. Writes benchmarks/results/planner*.csv, which the book shows.
"""

from __future__ import annotations

import argparse
import json
import math
import secrets
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measure import RESULTS
from planner_truth import TRUTHS, alike, all_found, searched

from evolvingdp.book import dated
from evolvingdp.core.seeds import stream
from evolvingdp.planning import curated, hot, local, local_search, planner, shuffled
from evolvingdp.planning.answer import CannotServeError, Method
from evolvingdp.planning.question import Question

ROOMS = (curated, hot, local, local_search, shuffled)  # what a prediction is made of
STATISTICS = (*("mean", "frequencies", "hot") * 4, *("counts", "words", "words") * 2)
WITHIN = 0.15
RUNS = 100  # at least; and until a measured error is known so well,
PRECISE = 0.04  # relative standard error, to tell 15 %: errors of one run can be one draw
MOST, MOST_SEARCHES = 500, 120  # runs; a search is long, and tells several errors


def drawn(rng: np.random.Generator) -> Question:
    """A question of a size that can be run user by user, a hundred times; a search for words is simulated exactly."""
    statistic = str(rng.choice(STATISTICS))
    periods = int(2 ** rng.uniform(1, 4.7))
    users = int(10 ** (rng.uniform(4.5, 6.5) if statistic == "words" else rng.uniform(2.3, 3.4)))
    mean, unit = statistic in ("mean", "counts"), str(rng.choice(["report", "period", "user", "user"]))
    readings = int(rng.choice([1, 1, 3, 100, 10**6] if mean and unit != "report" else [1, 3]))  # a report each
    long = statistic == "frequencies" and unit != "report" and rng.random() < 0.3  # what HEAVYTHRESH is for
    return Question(
        statistic,
        str(rng.choice(["nobody", "shuffler", "curator"])),
        unit,
        users,
        periods,
        10**6 if long else readings,
        changes=int(rng.integers(0, 5)),
        change=float(np.round(rng.uniform(0.02, 0.5) if mean else rng.uniform(0.02, 0.2), 3)),
        own_changes=int(rng.integers(0, 3)),
        target="period" if long else str(rng.choice(["period", "period", "window", "cumulative"])),
        window=int(rng.integers(1, periods + 1)),
        epsilon=float(np.round(10 ** rng.uniform(0.3 if long else -0.5, 1.0), 3)),
        delta=float(rng.choice([0.0, 1e-6, 1e-9])),
        share=_share(rng, statistic),
        items=int(rng.integers(2, 13)),
        length=int(rng.integers(3, 5)),
        events=int(rng.integers(1, 5)),
        taking_part=int(rng.integers(1, 5)),
    )


def _share(rng: np.random.Generator, statistic: str) -> float:
    """Words without a list are rarer than those of a short list."""
    if statistic == "words":
        return float(np.round(10 ** rng.uniform(-2.5, -1), 4))
    return float(np.round(rng.uniform(0.05, 0.95) if statistic in ("mean", "counts") else rng.uniform(0.005, 0.3), 3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--seed", type=int, default=None, help="of the questions and their runs")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    asked = parser.parse_args()
    seed = secrets.randbelow(2**31) if asked.seed is None else asked.seed
    rng, rows = stream(seed, "questions"), kept()
    for number in range(asked.questions):
        rows += compared(drawn(rng), seed, number)
        print(f"{number + 1} of {asked.questions}, {time.process_time():.0f} s", flush=True)
        if rows and not asked.dry:  # what is stopped has a result, too
            write(pd.DataFrame(rows))
    told = pd.DataFrame(rows)
    print(told[told.within == False].to_string())  # noqa: E712 (None where there is no number)
    print(summary(told).to_string())


def kept() -> list[dict[str, Any]]:
    """What the code of today has already been compared with, so that the command goes on where it was stopped."""
    stamped = RESULTS / "planner.json"
    if not stamped.is_file() or json.loads(stamped.read_text())["library_sha256"] != dated.library(Path(__file__)):
        return []
    rows = pd.read_csv(RESULTS / "planner_questions.csv").to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def write(table: pd.DataFrame) -> None:
    table.to_csv(RESULTS / "planner_questions.csv", index=False, lineterminator="\n")
    summary(table).to_csv(RESULTS / "planner.csv", index=False, lineterminator="\n")
    dated.stamp("planner", Path(__file__), "make planner", RESULTS)


def compared(question: Question, seed: int, number: int) -> list[dict[str, Any]]:
    """A row for each method: what was predicted, what happened."""
    rows = []
    for method in planner.asked(question):
        row: dict[str, Any] = {"seed": seed, "question": number, "method": method.name}
        row |= {"answer": "", "predicted": math.nan, "measured": math.nan, "ratio": math.nan, "within": None} | asdict(
            question
        )
        try:
            settings = planner.settled(method, question)
            found = planner.expected(method, question)
        except (CannotServeError, ValueError):
            continue
        else:
            predicted, measured = _both(question, method, settings, found, seed + 1000 * number)
            if math.isnan(measured):
                continue
            ratio = measured / predicted if predicted else math.nan
            within = bool(1 / (1 + WITHIN) <= ratio <= 1 + WITHIN)
            row |= {"answer": "number", "predicted": predicted, "measured": measured, "ratio": ratio, "within": within}
        rows.append(row)
    return rows


def _both(question: Question, method: Method, settings: Any, found: Any, seed: int) -> tuple[float, float]:
    if found.standard_error is None:
        return found.found, _smallest(question, settings, round(found.found * question.users), seed) / question.users
    if method.name not in TRUTHS or (found.found is not None and question.level < 1.1 * found.found):
        return found.standard_error, math.nan  # a word that is not found has no error
    squares: list[float] = []  # of each run in which there is an answer
    runs = 0
    truth = TRUTHS[method.name]
    least, most = (math.ceil(RUNS / alike(question)), MOST_SEARCHES) if truth is searched else (RUNS, MOST)
    while runs < least or (runs < most and _spread(squares) > PRECISE):
        errors = truth(question, settings, seed + runs)
        squares += [float(np.nanmean(np.square(errors)))] if np.isfinite(errors).any() else []
        runs += 1
    return found.standard_error, math.sqrt(float(np.mean(squares))) if squares else math.nan


def _spread(squares: list[float]) -> float:
    """The relative standard error of the root of their mean."""
    return float(np.std(squares) / np.mean(squares) / 2 / math.sqrt(len(squares))) if np.any(squares) else math.inf


def _smallest(question: Question, settings: Any, around: int, seed: int) -> float:
    """By bisection, the least size at which all are found in 97.5 % of 200 runs."""
    low, high = max(1, round(0.6 * around)), min(question.users, round(1.6 * around))
    while high > 1.02 * low + 1:
        middle = (low + high) // 2
        found = np.mean([all_found(question, settings, middle, seed + 7919 * run) for run in range(200)])
        low, high = (low, middle) if found >= 0.975 else (middle, high)
    return (low + high) / 2


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """A row a method: how many predictions, the share within 15 %, the middle and the worst ratio."""
    numbers = table[table.answer == "number"]
    rows = [_row("all methods", table, numbers)]
    rows += [_row(str(name), part, part[part.answer == "number"]) for name, part in table.groupby("method", sort=True)]
    return pd.DataFrame(rows)


def _row(name: str, part: pd.DataFrame, numbers: pd.DataFrame) -> dict[str, Any]:
    worst = float(np.exp(np.abs(np.log(numbers.ratio.astype(float))).max())) if len(numbers) else math.nan
    return {
        "method": name,
        "questions": len(part.groupby(["seed", "question"])),
        "predictions": len(numbers),
        "within 15 %": f"{numbers.within.astype(float).mean():.1%}" if len(numbers) else "",
        "median measured / predicted": f"{numbers.ratio.median():.3f}" if len(numbers) else "",
        "worst factor": f"{worst:.2f}" if len(numbers) else "",
    }


if __name__ == "__main__":
    main()
