"""The answers behind the planner's fields in the page: `evolvingdp plan` for every place of them.

    python benchmarks/planner_grid.py                      (or: make grid)

Writes benchmarks/results/planner_grid*.csv, which the book shows.
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import measure
import pandas as pd

from evolvingdp.planning import planner
from evolvingdp.planning.answer import CannotServeError, Expected, Method
from evolvingdp.planning.question import Question

sys.path.append(str(Path(__file__).parents[1] / "book"))
from drawn import fields


def answered(group: list[tuple[int, ...]]) -> list[list[tuple[str, str, str]]]:
    """Of questions that differ in who is trusted: what nobody has to be trusted with is simulated once."""
    known: dict[Any, Expected | Exception] = {}

    def expected(method: Method, question: Question, streams: int) -> Expected:
        settings = planner.settled(method, question)
        if not method.simulated or method.trust != "nobody":
            return planner.expected(method, question, streams)
        asked = method.name, repr(settings), replace(question, trust="nobody", delta=0.0)
        if asked not in known:
            try:
                known[asked] = planner.expected(method, question, streams)
            except (CannotServeError, ValueError) as refused:
                known[asked] = refused
        if isinstance(found := known[asked], Exception):
            raise found
        return found

    return [fields.ranked(fields.question(at), expected) for at in group]


def main() -> None:
    measure.asked(__doc__)
    methods: dict[str, int] = {}
    rows = []
    places = list(fields.places())
    trust = next(place for place, field in enumerate(fields.FIELDS) if field.name == "trust")
    groups = defaultdict(list)
    for at in places:
        groups[at[:trust] + at[trust + 1 :]].append(at)
    answers: dict[tuple[int, ...], list[tuple[str, str, str]]] = {}
    began = time.perf_counter()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for group, found in zip(groups.values(), pool.map(answered, groups.values(), chunksize=8), strict=True):
            answers |= zip(group, found, strict=True)
            if len(answers) % 300 == 0:
                print(f"{len(answers)} of {len(places)} questions, {time.perf_counter() - began:.0f} s", flush=True)
    for at in places:
        told = [(methods.setdefault(name, len(methods)), *sizes) for name, *sizes in answers[at]]
        asked = {field.name: str(field.values[place]) for field, place in zip(fields.FIELDS, at, strict=True)}
        rows.append({**asked, "ranked": ";".join(" ".join(map(str, one)).rstrip() for one in told)})
    measure.table("planner_grid_methods", pd.DataFrame({"number": methods.values(), "method": methods.keys()}))
    measure.write("planner_grid", pd.DataFrame(rows), "make grid")


if __name__ == "__main__":
    main()
