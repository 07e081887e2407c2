"""The answers behind the planner's fields in the page: `evolvingdp plan` for every place of them.

    python benchmarks/planner_grid.py                      (or: make grid)

Writes benchmarks/results/planner_grid*.csv, which the book shows.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pandas as pd
from measure import RESULTS

from evolvingdp.book import dated

sys.path.append(str(Path(__file__).parents[1] / "book"))
from drawn import fields


def answered(at: tuple[int, ...]) -> list[tuple[str, str, str]]:
    return fields.ranked(fields.question(at))


def main() -> None:
    methods: dict[str, int] = {}
    rows = []
    places = list(fields.places())
    began = time.perf_counter()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for at, found in zip(places, pool.map(answered, places, chunksize=20), strict=True):
            told = [(methods.setdefault(name, len(methods)), *sizes) for name, *sizes in found]
            asked = {field.name: str(field.values[place]) for field, place in zip(fields.FIELDS, at, strict=True)}
            rows.append({**asked, "ranked": ";".join(" ".join(map(str, one)).rstrip() for one in told)})
            if len(rows) % 200 == 0:
                print(f"{len(rows)} questions, {time.perf_counter() - began:.0f} s", flush=True)
    pd.DataFrame(rows).to_csv(RESULTS / "planner_grid.csv", index=False, lineterminator="\n")
    named = pd.DataFrame({"number": methods.values(), "method": methods.keys()})
    named.to_csv(RESULTS / "planner_grid_methods.csv", index=False, lineterminator="\n")
    dated.stamp("planner_grid", Path(__file__), "make grid", RESULTS)


if __name__ == "__main__":
    main()
