"""Time and memory of TreeHist and PEM on Brown: per user, and simulated up to a billion users.

    python benchmarks/tree_hist.py      (or: make benchmarks)

writes benchmarks/results/tree_hist.csv, which the book's performance page shows.
"""

from __future__ import annotations

from collections.abc import Callable

import measure
import numpy as np
import pandas as pd

from evolvingdp.core import brown
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import streams
from evolvingdp.heavy_hitters.experiments.treehist.ladder import AS_RUN, BEST, OLH_PEM, PROJECTIVE, protocol
from evolvingdp.heavy_hitters.experiments.treehist.params import Params
from evolvingdp.heavy_hitters.pem import PEM
from evolvingdp.heavy_hitters.tree_hist import TreeHist

PRINTED = "Algorithm 3, two letters"
WORDS = brown.words()["word"]


def counts(n_users: int) -> np.ndarray:
    return streams.brown_counts(n_users, stream(0, "benchmark", "data", n_users))


def per_user(variant: str, n_users: int) -> measure.Work:
    """Client and server of all reports, without the search."""
    method = protocol(Params(), variant, n_users, 2.0)
    drawn = method if isinstance(method, PEM) else method.draw_hashes(stream(0, "benchmark", "hashes"))
    users = np.repeat(method.tree.encode(WORDS), counts(n_users))
    stream(0, "benchmark", "order").shuffle(users)
    return lambda: drawn.collect(users, stream(0, "benchmark", "slots"), stream(0, "benchmark", "noise"))


def end_to_end(n_users: int) -> measure.Work:
    """From the users' words to the list: clients, server and search."""
    method = protocol(Params(), PROJECTIVE, n_users, 2.0)
    assert isinstance(method, TreeHist)
    users = np.repeat(method.tree.encode(WORDS), counts(n_users))
    stream(0, "benchmark", "order").shuffle(users)

    def work() -> object:
        drawn = method.draw_hashes(stream(0, "benchmark", "hashes"))
        return drawn.search(drawn.collect(users, stream(0, "benchmark", "slots"), stream(0, "benchmark", "noise")), n_users)

    return work


def asked_of_every_report(n_users: int, n_candidates: int) -> measure.Work:
    """What PEM's search costs: the support of each candidate asks every report of a level."""
    method = protocol(Params(), OLH_PEM, n_users, 2.0)
    assert isinstance(method, PEM)
    leaves = method.tree.encode(WORDS)
    reports = method.oracle.report(
        np.resize(leaves, n_users), stream(0, "benchmark", "slots"), stream(0, "benchmark", "noise")
    )
    return lambda: method.oracle.support(reports, leaves[:n_candidates])


def searched(n_users: int) -> measure.Work:
    """The search among 26^6 words on the server's sketches of projective reports."""
    method = protocol(Params(), PROJECTIVE, n_users, 2.0)
    assert isinstance(method, TreeHist)
    drawn = method.draw_hashes(stream(0, "benchmark", "hashes"))
    reports = drawn.simulate(method.tree.encode(WORDS), counts(n_users), stream(0, "benchmark", "simulation"))
    return lambda: drawn.search(reports, n_users)


def simulated(variant: str, n_users: int) -> measure.Work:
    """Reports and search, from the counts."""
    method = protocol(Params(), variant, n_users, 2.0)
    leaves, held = method.tree.encode(WORDS), counts(n_users)

    def work() -> object:
        rng = stream(0, "benchmark", "simulation")
        if isinstance(method, PEM):
            return method.simulate(leaves, held, rng)
        drawn = method.draw_hashes(stream(0, "benchmark", "hashes"))
        return drawn.search(drawn.simulate(leaves, held, rng), n_users)

    return work


CASES: dict[str, tuple[int, Callable[[], measure.Work]]] = {
    f"per user, both reports: {PRINTED}": (10**7, lambda: per_user(PRINTED, 10**7)),
    f"per user, one report: {BEST}": (10**7, lambda: per_user(BEST, 10**7)),
    f"per user, one report: {OLH_PEM}": (10**7, lambda: per_user(OLH_PEM, 10**7)),
    f"per user, one report: {PROJECTIVE}": (10**7, lambda: per_user(PROJECTIVE, 10**7)),
    f"per user, clients, server and search: {PROJECTIVE}": (10**7, lambda: end_to_end(10**7)),
    f"per user, search: {PROJECTIVE}, among 26^6 words": (10**7, lambda: searched(10**7)),
    f"per user, search: {OLH_PEM}, a thousand candidates": (10**6, lambda: asked_of_every_report(10**6, 1000)),
    f"simulation and search: {AS_RUN}": (10**7, lambda: simulated(AS_RUN, 10**7)),
    f"simulation and search: {PRINTED}": (10**7, lambda: simulated(PRINTED, 10**7)),
    f"simulation and search: {BEST}": (10**7, lambda: simulated(BEST, 10**7)),
    f"simulation and search: {PRINTED}, n = 10^9": (10**9, lambda: simulated(PRINTED, 10**9)),
    f"simulation and search: {BEST}, n = 10^9": (10**9, lambda: simulated(BEST, 10**9)),
    f"simulation and search: {OLH_PEM}, n = 10^9": (10**9, lambda: simulated(OLH_PEM, 10**9)),
}


def main() -> None:
    measured = measure.all_cases("tree_hist", list(CASES), repeats=3)
    measure.write(
        "tree_hist", pd.DataFrame([measure.row(name, users, *measured[name]) for name, (users, _) in CASES.items()])
    )


if __name__ == "__main__":
    main()
