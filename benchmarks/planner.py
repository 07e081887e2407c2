"""Is what the planner says true? Random questions, each prediction against the protocol run user by user.

    python benchmarks/planner.py                      (or: make planner)
    python benchmarks/planner.py --questions 20 --seed 7

Questions and the seeds of their runs are drawn from the operating system unless there is a seed; predictions see neither
their data nor their noise. Errors are root mean squares over runs; of an alarm it is the smallest size at which all hot
items are found in 97.5 % of the runs. Writes benchmarks/results/planner*.csv, which the book shows.
"""

from __future__ import annotations

import argparse
import math
import secrets
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measure import RESULTS
from planner_truth import TRUTHS, all_found

from evolvingdp.core.seeds import stream
from evolvingdp.planning import curated, hot, local_lists, local_means, local_search, planner
from evolvingdp.planning.answer import CannotServeError, Method, OnTheEdgeError
from evolvingdp.planning.question import Question
from evolvingdp.publish.rendering import dated

ROOMS = (curated, hot, local_lists, local_means, local_search)  # what a prediction is made of
STATISTICS = ("mean", "mean", "counts", "frequencies", "frequencies", "words", "hot", "hot")
WITHIN = 0.15
VALUES = 400  # at least, of errors behind a measured one; and at least RUNS runs
RUNS = 150


def drawn(rng: np.random.Generator) -> Question:
    """A question of a size that can be run user by user, a hundred times; a search for words is simulated exactly."""
    statistic = str(rng.choice(STATISTICS))
    periods = int(2 ** rng.uniform(1, 4.7))
    users = int(10 ** (rng.uniform(4.5, 6.5) if statistic == "words" else rng.uniform(2.3, 3.4)))
    mean, unit = statistic in ("mean", "counts"), str(rng.choice(["report", "period", "user", "user"]))
    readings = int(rng.choice([1, 1, 3, 100, 10**6] if mean and unit != "report" else [1, 3]))  # a report each
    return Question(
        statistic,
        str(rng.choice(["nobody", "curator"])),
        unit,
        users,
        periods,
        readings,
        changes=int(rng.integers(0, 5)),
        change=float(np.round(rng.uniform(0.02, 0.5) if mean else rng.uniform(0.02, 0.2), 3)),
        own_changes=int(rng.integers(0, 3)),
        target=str(rng.choice(["period", "period", "window", "cumulative"])),
        window=int(rng.integers(1, periods + 1)),
        epsilon=float(np.round(10 ** rng.uniform(-0.5, 0.8), 3)),
        delta=float(rng.choice([0.0, 1e-6, 1e-9])),
        share=float(np.round(rng.uniform(0.05, 0.95) if mean else rng.uniform(0.005, 0.3), 3)),
        items=int(rng.integers(2, 13)),
        length=int(rng.integers(3, 5)),
        events=int(rng.integers(1, 5)),
        taking_part=int(rng.integers(1, 5)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--seed", type=int, default=None, help="of the questions and their runs")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    asked = parser.parse_args()
    seed = secrets.randbelow(2**31) if asked.seed is None else asked.seed
    rng, rows = stream(seed, "questions"), []
    for number in range(asked.questions):
        rows += compared(drawn(rng), seed, number)
        print(f"{number + 1} of {asked.questions}, {time.process_time():.0f} s", flush=True)
        if rows and not asked.dry:  # what is stopped has a result, too
            write(pd.DataFrame(rows), seed)
    told = pd.DataFrame(rows)
    print(told[told.within == False].to_string())  # noqa: E712 (None where there is no number)
    print(summary(told, seed).to_string())


def write(table: pd.DataFrame, seed: int) -> None:
    table.to_csv(RESULTS / "planner_questions.csv", index=False, lineterminator="\n")
    summary(table, seed).to_csv(RESULTS / "planner.csv", index=False, lineterminator="\n")
    dated.stamp("planner", Path(__file__), "make planner", RESULTS)


def compared(question: Question, seed: int, number: int) -> list[dict[str, Any]]:
    """A row for each method: what was predicted, what happened."""
    rows = []
    for method in planner.asked(question):
        row: dict[str, Any] = {"question": number, "method": method.name}
        row |= {"answer": "", "predicted": math.nan, "measured": math.nan, "ratio": math.nan, "within": None} | asdict(
            question
        )
        try:
            settings = planner.settled(method, question)
            found = planner.expected(method, question)
        except OnTheEdgeError:
            row["answer"] = "edge"
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
    squares: list[float] = []
    runs = 0
    while runs < RUNS or len(squares) < VALUES * (found.found is None):
        errors = TRUTHS[method.name](question, settings, seed + runs)
        squares += np.square(errors[~np.isnan(errors)]).tolist()
        runs += 1
    return found.standard_error, math.sqrt(float(np.mean(squares)))


def _smallest(question: Question, settings: Any, around: int, seed: int) -> float:
    """By bisection, the least size at which all are found in 97.5 % of 200 runs."""
    low, high = max(1, round(0.6 * around)), min(question.users, round(1.6 * around))
    while high > 1.02 * low + 1:
        middle = (low + high) // 2
        found = np.mean([all_found(question, settings, middle, seed + 7919 * run) for run in range(200)])
        low, high = (low, middle) if found >= 0.975 else (middle, high)
    return (low + high) / 2


def summary(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """A row a method: how many predictions, the share within 15 %, the middle and the worst ratio, settings on the edge."""
    numbers = table[table.answer == "number"]
    rows = [_row("all methods", table, numbers, seed)]
    rows += [_row(str(name), part, part[part.answer == "number"], seed) for name, part in table.groupby("method", sort=True)]
    return pd.DataFrame(rows)


def _row(name: str, part: pd.DataFrame, numbers: pd.DataFrame, seed: int) -> dict[str, Any]:
    worst = float(np.exp(np.abs(np.log(numbers.ratio.astype(float))).max())) if len(numbers) else math.nan
    return {
        "method": name,
        "predictions": len(numbers),
        "within 15 %": f"{numbers.within.astype(float).mean():.1%}" if len(numbers) else "",
        "median measured / predicted": f"{numbers.ratio.median():.3f}" if len(numbers) else "",
        "worst factor": f"{worst:.2f}" if len(numbers) else "",
        "on the edge": int((part.answer == "edge").sum()),
        "seed": seed,
    }


if __name__ == "__main__":
    main()
