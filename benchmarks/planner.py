"""Is what the planner says true? Random questions, each prediction against the protocol run user by user.

    python benchmarks/planner.py                      (or: make planner)
    python benchmarks/planner.py --questions 20 --seed 7

Questions and the seeds of their runs are drawn from the operating system unless there is a seed; predictions see neither
their data nor their noise. Errors are root mean squares over runs; of an alarm it is the smallest size at which all hot
items are found in 97.5 % of the runs. In a third of the questions nothing changes, in a quarter methods are planned for
another number of changes than there are, and are to have the error that the planner states for the true number. Of a list in
which nothing changes the errors of all words together are compared, too. Writes benchmarks/results/planner.csv, which the
book shows.
"""

from __future__ import annotations

import math
import secrets
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from measure import asked, write
from planner_truth import TRUTHS, Array, alike, all_found, searched

from evolvingdp.core.seeds import stream
from evolvingdp.planning import planner
from evolvingdp.planning.answer import CannotServeError, Expected, Method
from evolvingdp.planning.question import TRUST, Question

STATISTICS = (*("mean", "frequencies", "hot") * 4, *("words",) * 3)
WITHIN = 0.15
RUNS = 100  # at least; and until a measured error is known so well,
PRECISE = 0.04  # relative standard error, to tell 15 %: errors of one run can be one draw
MOST, MOST_SEARCHES = 500, 120  # runs; a search is long, and tells several errors
OF_A_LIST = ("every user in every period", "each user once")  # whose errors of all words are stated


def drawn(rng: np.random.Generator) -> tuple[Question, int]:
    """A question of a size that can be run user by user, a hundred times (a search for words is simulated exactly), and how
    many changes there are in truth. A curator who counts words is asked for them at the end every other time."""
    statistic, trust = str(rng.choice(STATISTICS)), str(rng.choice(TRUST))
    counted, at_the_end = statistic == "words" and trust == "curator", rng.random() < 0.5
    periods = int(2 ** rng.uniform(1, 4.7))
    mean, words, unit = statistic == "mean", statistic == "words", str(rng.choice(["report", "period", "user", "user"]))
    shares = (-2.5, -1) if words else (-1.3, -0.02) if mean else (-2.3, -0.5)
    question = Question(
        statistic,
        trust,
        unit,
        int(10 ** (rng.uniform(3.3, 4.3) if counted else rng.uniform(4.5, 6.5) if words else rng.uniform(2.3, 3.4))),
        periods,
        int(rng.choice([1, 1, 3, 100, 10**6] if mean and unit != "report" else [1, 3])),  # a report each
        changes=int(rng.choice([0, 0, 1, 2, 3, 5])),
        change=float(np.round(rng.uniform(0.02, 0.5 if mean else 0.2), 3)),
        target="cumulative" if counted and at_the_end else str(rng.choice(["period", "period", "window", "cumulative"])),
        window=int(rng.integers(1, periods + 1)),
        epsilon=float(np.round(10 ** rng.uniform(-0.5, 1.0), 3)),
        delta=float(rng.choice([0.0, 1e-6, 1e-9])),
        share=float(np.round(10 ** rng.uniform(*shares), 4)),
        items=int(rng.integers(2, 13)),
        length=int(rng.integers(3, 5)),
        events=int(rng.integers(1, 5)),
        taking_part=int(rng.integers(1, 5)),
    )
    return question, int(rng.choice([0, 1, 5])) if rng.random() < 0.25 else question.changes


def compared(planned: Question, changes: int, seed: int) -> Iterator[dict[str, Any]]:
    """For each method what was predicted, what happened."""
    asked_for = replace(planned, changes=changes)
    kind = "nothing changes" if not asked_for.moves else "as planned" if asked_for.moves == planned.moves else "a wrong plan"
    for method in planner.asked(planned):
        try:
            settings, question = planner.settled(method, planned), method.less(asked_for)
            found = method.expect(question, settings)
        except (CannotServeError, ValueError):
            continue
        if found.standard_error is None:
            size = _smallest(question, settings, round((found.found_from or 0.0) * question.users), seed)
            yield _row(method, "alarm", found.found_from or 0.0, size / question.users)
        elif found.found_from is None or question.level > 1.1 * found.found_from:  # a word that is not found has no error
            errors = _errors(question, method, settings, seed)
            yield _row(method, kind, found.standard_error, _size([one[:, 0] for one in errors]))
            if question.statistic == "frequencies" and not question.moves and method.name.startswith(OF_A_LIST):
                stated = _of_all_words(question, method, settings, found)
                if stated and errors[0].shape[1] == question.items:
                    yield _row(method, "all words of a list", stated, _size(errors))


def _row(method: Method, kind: str, predicted: float, measured: float) -> dict[str, Any]:
    return {"method": method.name, "kind": kind, "ratio": measured / predicted}


def _of_all_words(question: Question, method: Method, settings: Any, first: Expected) -> float:
    """What the planner states of all words together: the first as asked, the others share the rest evenly."""
    other = replace(question, share=(1 - question.level) / (question.items - 1))
    rest = method.expect(other, settings).standard_error or 0.0
    return math.sqrt(((first.standard_error or 0.0) ** 2 + (question.items - 1) * rest**2) / question.items)


def _errors(question: Question, method: Method, settings: Any, seed: int) -> list[Array]:
    """Of as many runs as tell their size."""
    truth = TRUTHS[method.name]
    least, most = (math.ceil(RUNS / alike(question)), MOST_SEARCHES) if truth is searched else (RUNS, MOST)
    errors: list[Array] = []
    while len(errors) < least or (len(errors) < most and _spread(errors) > PRECISE):
        errors.append(truth(question, settings, seed + len(errors)))
    return errors


def _spread(errors: list[Array]) -> float:
    """The relative standard error of the first word's root mean square."""
    squares = [np.nanmean(np.square(one[:, 0])) for one in errors if np.isfinite(one[:, 0]).any()]
    return float(np.std(squares) / np.mean(squares) / 2 / math.sqrt(len(squares))) if np.any(squares) else math.inf


def _size(errors: list[Array]) -> float:
    """The root of the mean over runs of what their answers' squares are on average; of a word that was not found nothing."""
    squares = [np.nanmean(np.square(one)) for one in errors if np.isfinite(one).any()]
    return math.sqrt(float(np.mean(squares))) if squares else math.nan


def _smallest(question: Question, settings: Any, around: int, seed: int) -> float:
    """By bisection, the least size at which all are found in 97.5 % of 200 runs."""
    low, high = max(1, round(0.6 * around)), min(question.users, round(1.6 * around))
    while high > 1.02 * low + 1:
        middle = (low + high) // 2
        found = np.mean([all_found(question, settings, middle, seed + 7919 * run) for run in range(200)])
        low, high = (low, middle) if found >= 0.975 else (middle, high)
    return (low + high) / 2


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Of all, of each kind of question, and of each method: how many predictions, the share within 15 %, the middle and the
    worst ratio."""
    parts = [("all", rows), *rows.groupby("kind"), *rows.groupby("method")]
    return pd.DataFrame(
        [
            {
                "predictions of": name,
                "predictions": len(part),
                "within 15 %": f"{part.ratio.between(1 / (1 + WITHIN), 1 + WITHIN).mean():.1%}",
                "median measured / predicted": f"{part.ratio.median():.3f}",
                "worst factor": f"{np.exp(np.abs(np.log(part.ratio)).max()):.2f}",
            }
            for name, part in parts
        ]
    )


def main() -> None:
    given, rows = asked(__doc__, questions=60, seed=secrets.randbelow(2**31)), []
    rng = stream(given.seed, "questions")
    for number in range(given.questions):
        question, changes = drawn(rng)
        found = list(compared(question, changes, given.seed + 1000 * number))
        for one in found:
            if abs(math.log(one["ratio"])) > math.log(1 + WITHIN):
                print(one, question, changes, flush=True)
        rows += found
        print(f"{number + 1} of {given.questions}, {time.process_time():.0f} s", flush=True)
    if not rows:
        sys.exit(f"of {given.questions} questions none has a prediction to compare: ask more, or with another --seed")
    table = pd.DataFrame(rows)
    write("planner", summary(table[table.ratio.notna()]), "make planner")


if __name__ == "__main__":
    main()
