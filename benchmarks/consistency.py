"""What consistency of parents and children adds to a TreeHist's list: tried, and not in the library.

    python benchmarks/consistency.py

writes benchmarks/results/consistency.csv, which the chapter shows.  Words under one prefix cannot have more users than the
prefix: where their estimates do, both are moved towards each other by their variances, and the list is cut again.
"""

from __future__ import annotations

import math

import measure
import numpy as np
import pandas as pd

from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.experiments.lists import data, judge
from evolvingdp.heavy_hitters.experiments.treehist.ladder import leaves_of
from evolvingdp.heavy_hitters.listing import Reports
from evolvingdp.heavy_hitters.planning import planned
from evolvingdp.heavy_hitters.tree_hist import Protocol

SETTINGS = [
    (words, n_users, epsilon) for words, n_users in (("synthetic", 10**5), ("brown", 10**7)) for epsilon in (1.0, 2.0)
]
RUNS = 12


def consistent(drawn: Protocol, reports: Reports, found: pd.DataFrame, n_users: int) -> pd.DataFrame:
    """The list `found` with no more users under a prefix than the prefix has, by weighted least squares."""
    method = drawn.settings
    level, share = method.tree.depth - 2, method.shares[-2]
    parents, place = np.unique(method.tree.prefixes(method.tree.encode(found.word), level), return_inverse=True)
    above = drawn.oracles[level].estimate(reports.levels[level], parents, "joint") / share
    variance = method.level_error(level, n_users) ** 2 + np.maximum(above, 0) * (1 / share - 1)
    own = np.square(found.standard_error.to_numpy())
    excess = np.maximum(np.bincount(place, found.estimate) - above, 0)
    moved = found.estimate - own * (excess / (np.bincount(place, own) + variance))[place]
    kept: pd.DataFrame = found.assign(estimate=moved)[moved >= method.threshold]
    return kept


def rows(words: str, n_users: int, epsilon: float) -> dict[str, object]:
    threshold = 15.0 * math.isqrt(n_users)
    method = planned(epsilon, n_users, threshold)
    scores = []
    for run in range(RUNS):
        truth = data(100, words, n_users, 1, run)
        drawn = method.draw_hashes(stream(1, "consistency", "hashes", run))
        leaves = leaves_of(method.tree, truth.index)
        reports = drawn.simulate(leaves, truth.to_numpy(), stream(1, "consistency", words, str(epsilon), run))
        found = drawn.search(reports, n_users).words
        both = [judge(table, truth, threshold) for table in (found, consistent(drawn, reports, found, n_users))]
        scores.append([both[0]["f1"], both[1]["f1"], both[1]["f1"] - both[0]["f1"]])
    mean, error = np.mean(scores, axis=0), np.std(scores, axis=0, ddof=1) / math.sqrt(RUNS)
    setting = {"words": words, "users": n_users, "epsilon": epsilon}
    told = {"F1": f"{mean[0]:.3f}", "F1, consistent": f"{mean[1]:.3f}"}
    return setting | told | {"difference (standard error)": f"{mean[2]:+.3f} ({error[2]:.3f})"}


if __name__ == "__main__":
    measure.write("consistency", pd.DataFrame([rows(*setting) for setting in SETTINGS]))
