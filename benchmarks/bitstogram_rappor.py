"""Time and memory of Bitstogram and RAPPOR on Brown: clients, server and search or decoding.

    python benchmarks/bitstogram_rappor.py      (or: make benchmarks)

writes benchmarks/results/bitstogram_rappor.csv, which the book's performance page shows.
"""

from __future__ import annotations

from collections.abc import Callable

import measure
import numpy as np
import pandas as pd

from evolvingdp.core import brown
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import streams
from evolvingdp.heavy_hitters.bitstogram import Bitstogram
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.rappor_decoding import decode

USERS = 10**6
THRESHOLD = 15_000.0


def held(keys: np.ndarray, n_users: int) -> tuple[np.ndarray, np.ndarray]:
    """How many users hold each key, and one key a user in random order."""
    counts = streams.brown_counts(n_users, stream(0, "benchmark", "data", n_users))
    users = np.repeat(keys, counts)
    stream(0, "benchmark", "order").shuffle(users)
    return counts, users


def bitstogram(per_user: bool, n_users: int) -> measure.Work:
    method = Bitstogram(2.0, THRESHOLD)
    drawn = method.draw_hashes(stream(0, "benchmark", "hashes"))
    messages = method.encode(brown.words()["word"].to_numpy(dtype=str))
    counts, users = held(messages, n_users if per_user else 1)
    if not per_user:
        counts = streams.brown_counts(n_users, stream(0, "benchmark", "data", n_users))

    def work() -> object:
        noise = stream(0, "benchmark", "noise")
        reports = drawn.collect(users, noise, noise) if per_user else drawn.simulate(messages, counts, noise)
        return drawn.search(reports, n_users)

    return work


def rappor(per_user: bool, n_users: int) -> measure.Work:
    drawn = Rappor.one_shot(2.0, n_bits=64, n_cohorts=128).draw_hashes(stream(0, "benchmark", "hashes"))
    keys = streams.brown_keys()
    counts, users = held(keys, n_users if per_user else 1)
    if not per_user:
        counts = streams.brown_counts(n_users, stream(0, "benchmark", "data", n_users))
    cohorts = drawn.assign(len(users), stream(0, "benchmark", "cohorts"))

    def work() -> object:
        noise = stream(0, "benchmark", "noise")
        reports = drawn.collect(users[:, None], cohorts, noise) if per_user else drawn.simulate(keys, counts, noise)
        return decode(drawn, reports, keys)

    return work


CASES: dict[str, tuple[int, Callable[[], measure.Work]]] = {
    "Bitstogram per user: clients, server, search": (USERS, lambda: bitstogram(True, USERS)),
    "Bitstogram, simulation and search": (10**9, lambda: bitstogram(False, 10**9)),
    "RAPPOR per user: clients, server, decoding of the dictionary": (USERS, lambda: rappor(True, USERS)),
    "RAPPOR, simulation and decoding of the dictionary": (10**9, lambda: rappor(False, 10**9)),
}


def main() -> None:
    measured = measure.all_cases("bitstogram_rappor", list(CASES), repeats=3)
    measure.write(
        "bitstogram_rappor", pd.DataFrame([measure.row(name, users, *measured[name]) for name, (users, _) in CASES.items()])
    )


if __name__ == "__main__":
    main()
