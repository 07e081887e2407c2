"""What the planner says on a grid of questions, for the fields of the page: the same functions, computed once.

python benchmarks/planner_grid.py                 (three minutes; writes benchmarks/results/planner_grid.csv)
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pandas as pd
from measure import RESULTS

from evolvingdp.planning import curated, hot, local_lists, local_means, local_search, planner
from evolvingdp.publish.rendering import dated
from evolvingdp.publish.rendering.planned_ext import GRID, grid_question

ROOMS = (curated, hot, local_lists, local_means, local_search)  # what an answer is made of
BEST = 3  # methods that are shown


def row(*values: str) -> dict[str, str]:
    """The first methods, each with the number that it is ranked by."""
    found = planner.plan(grid_question(*values)).predictions[:BEST]
    told = [f"{one.method}|{one.rank:.3g}" for one in found] + [""] * (BEST - len(found))
    return dict(zip(GRID, values, strict=True)) | {f"method {place}": text for place, text in enumerate(told, start=1)}


def main() -> None:
    rows = [row(*values) for values in itertools.product(*GRID.values())]
    pd.DataFrame(rows).to_csv(RESULTS / "planner_grid.csv", index=False, lineterminator="\n")
    dated.stamp("planner_grid", Path(__file__), "python benchmarks/planner_grid.py", RESULTS)


if __name__ == "__main__":
    main()
