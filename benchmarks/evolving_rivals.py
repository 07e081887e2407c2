"""Time and memory of the protocols beside THRESH: simulated at ten million users and 1,024 epochs, and user by user.

    python benchmarks/evolving_rivals.py      (or: make benchmarks)

writes benchmarks/results/evolving_rivals.csv, which the book's performance page shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import measure
import numpy as np
import pandas as pd

from evolvingdp.core.seeds import stream
from evolvingdp.evolving.experiments.thresh.scenarios import bits
from evolvingdp.evolving.rivals import crew_thresh, crew_words, memoized, once, once_words, tree
from evolvingdp.evolving.rivals.crew_thresh import CrewThresh
from evolvingdp.evolving.rivals.crew_words import CrewWords
from evolvingdp.evolving.rivals.detection import detect
from evolvingdp.evolving.rivals.memoized import Memoized
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.rivals.once_words import OnceWords
from evolvingdp.evolving.rivals.threshold_stream import ThresholdStream
from evolvingdp.evolving.rivals.tree import ChangeTree
from evolvingdp.evolving.streams import WordStream

N_USERS, HORIZON = 10**7, 1024
Protocol = tuple[Any, Any, Any]  # module, settings, data


def noise() -> np.random.Generator:
    return stream(0, "benchmark", "noise")


def simulated(module: Any, settings: Any, data: Any) -> measure.Work:
    return lambda: module.simulate(settings, data, noise())


def per_user(module: Any, settings: Any, data: Any) -> measure.Work:
    streams = {name: stream(0, "benchmark", name) for name in ("bits", "private")}
    if isinstance(data, WordStream):
        streams = {name: stream(0, "benchmark", name) for name in ("words", "public", "private")}
    return lambda: module.run(settings, data, **streams)


def single(n_users: int, horizon: int) -> Protocol:
    return once, Once(n_users, horizon, 1, 1.0), bits(n_users, horizon, 1)


def averaged() -> measure.Work:
    settings, data = single(N_USERS, HORIZON)[1:]
    tally = once.simulate(settings, data, noise())
    return lambda: detect(settings.estimates(tally), tally.reports, settings.variance, online=True)


def by_lot(n_users: int, horizon: int) -> Protocol:
    return crew_thresh, CrewThresh.plan(n_users, horizon, 10**6, 1.0, changes=3), bits(n_users, horizon, 10**6)


def rarely(n_users: int, horizon: int) -> ThresholdStream:
    return ThresholdStream.make(n_users, bits(n_users, horizon, 1).truth)


def nodes(n_users: int, horizon: int) -> Protocol:
    return tree, ChangeTree(n_users, horizon, 1.0, 4), rarely(n_users, horizon)


def two_layers(n_users: int, horizon: int) -> Protocol:
    return memoized, Memoized.rappor(n_users, horizon, 1.0, 0.5), rarely(n_users, horizon)


def words(n_users: int, horizon: int, n_words: int, epoch_length: int) -> WordStream:
    """Three changes between two laws."""
    laws = np.ones((2, n_words)) + n_words * np.eye(2, n_words)
    which = (4 * np.arange(horizon) // horizon % 2)[None, :]
    return WordStream.make([n_users], laws / laws.sum(axis=1, keepdims=True), which, epoch_length)


def single_word(n_users: int, horizon: int, n_words: int) -> Protocol:
    return once_words, OnceWords(n_users, horizon, n_words, 4.0), words(n_users, horizon, n_words, 1)


def words_by_lot(n_users: int, horizon: int, n_words: int, epoch_length: int) -> Protocol:
    settings = CrewWords.plan(n_users, horizon, epoch_length, 4.0, n_words, changes=3)
    return crew_words, settings, words(n_users, horizon, n_words, epoch_length)


CASES: dict[str, tuple[int, Callable[[], measure.Work]]] = {  # users times epochs
    "each user once": (N_USERS * HORIZON, lambda: simulated(*single(N_USERS, HORIZON))),
    "change detection online": (N_USERS * HORIZON, averaged),
    "THRESH, roles by lot": (N_USERS * HORIZON, lambda: simulated(*by_lot(N_USERS, HORIZON))),
    "dyadic tree, k = 4": (N_USERS * HORIZON, lambda: simulated(*nodes(N_USERS, HORIZON))),
    "memoization, two layers": (N_USERS * HORIZON, lambda: simulated(*two_layers(N_USERS, HORIZON))),
    "one word a user, d = 1000": (N_USERS * HORIZON, lambda: simulated(*single_word(N_USERS, HORIZON, 1000))),
    "HEAVYTHRESH, roles by lot, d = 1000": (
        N_USERS * HORIZON,
        lambda: simulated(*words_by_lot(N_USERS, HORIZON, 1000, 10**6)),
    ),
    "user by user: each user once": (10**5 * 64, lambda: per_user(*single(10**5, 64))),
    "user by user: THRESH, roles by lot": (10**5 * 64, lambda: per_user(*by_lot(10**5, 64))),
    "user by user: dyadic tree, k = 4": (10**5 * 64, lambda: per_user(*nodes(10**5, 64))),
    "user by user: memoization, two layers": (10**5 * 64, lambda: per_user(*two_layers(10**5, 64))),
    "user by user: one word a user, d = 16": (10**5 * 16, lambda: per_user(*single_word(10**5, 16, 16))),
    "user by user: HEAVYTHRESH, roles by lot, d = 16": (
        10**5 * 16,
        lambda: per_user(*words_by_lot(10**5, 16, 16, 10**5)),
    ),
}


def main() -> None:
    measured = measure.all_cases("evolving_rivals", list(CASES), repeats=3)
    rows = []
    for name, (user_epochs, _) in CASES.items():
        seconds, memory = measured[name]
        rows.append(
            {
                "what": name,
                "users times epochs": measure.short(user_epochs),
                "seconds": f"{seconds:.2g}",
                "per second": measure.short(user_epochs / seconds),
                "peak memory (GB)": f"{memory:.2f}",
            }
        )
    measure.write("evolving_rivals", pd.DataFrame(rows))


if __name__ == "__main__":
    main()
