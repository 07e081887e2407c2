"""The answers behind the planner's fields in the page: `evolvingdp plan` for every place of them.

    python benchmarks/planner_grid.py                      (or: make grid)

Writes benchmarks/results/planner_grid*.csv, which the book shows.
"""

from __future__ import annotations

import time
from pathlib import Path

import pandas as pd
from measure import RESULTS

from evolvingdp.book.rendering import dated
from evolvingdp.book.rendering.ideas import fields


def main() -> None:
    methods: dict[str, int] = {}
    rows = []
    for at in fields.places():
        told = [(methods.setdefault(name, len(methods)), *sizes) for name, *sizes in fields.ranked(fields.question(at))]
        asked = {field.name: str(field.values[place]) for field, place in zip(fields.FIELDS, at, strict=True)}
        rows.append({**asked, "ranked": ";".join(" ".join(map(str, one)).rstrip() for one in told)})
        if len(rows) % 200 == 0:
            print(f"{len(rows)} questions, {time.process_time():.0f} s", flush=True)
    pd.DataFrame(rows).to_csv(RESULTS / "planner_grid.csv", index=False, lineterminator="\n")
    named = pd.DataFrame({"number": methods.values(), "method": methods.keys()})
    named.to_csv(RESULTS / "planner_grid_methods.csv", index=False, lineterminator="\n")
    dated.stamp("planner_grid", Path(__file__), "make grid", RESULTS)


if __name__ == "__main__":
    main()
