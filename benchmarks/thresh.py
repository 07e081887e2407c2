"""Time and memory of THRESH and HEAVYTHRESH: the simulation against n and T, and the protocol user by user.

    python benchmarks/thresh.py      (or: make benchmarks)

writes benchmarks/results/thresh.csv, which the book's performance page shows.
"""

from __future__ import annotations

from collections.abc import Callable

import measure
import numpy as np
import pandas as pd

from evolvingdp.core.seeds import stream
from evolvingdp.evolving import heavy_simulation, streams, thresh_users
from evolvingdp.evolving.experiments.heavy_thresh import DICTIONARIES, dictionary
from evolvingdp.evolving.experiments.thresh import bits
from evolvingdp.evolving.streams import BitStream
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.evolving.thresh_simulation import simulate


def settings(data: BitStream, epsilon: float = 1.0) -> Thresh:
    return Thresh.tuned(data.n_users, data.horizon, data.epoch_length, epsilon, changes=3)


def simulated(data: BitStream) -> measure.Work:
    method = settings(data)
    return lambda: simulate(method, data, stream(0, "benchmark", "simulation"))


def drifting(n_users: int, horizon: int, epoch_length: int) -> BitStream:
    return BitStream.make([n_users], streams.drift(horizon, 0.3, 0.7), epoch_length)


def per_user(n_users: int, horizon: int, epoch_length: int) -> measure.Work:
    data = bits(n_users, horizon, epoch_length)
    method = settings(data)
    return lambda: thresh_users.run(method, data, bits=np.random.default_rng(0), private=stream(0, "benchmark", "noise"))


def heavy(place: int) -> measure.Work:
    method, data = dictionary(*DICTIONARIES[place], stream(0, "benchmark", "dictionary"))
    return lambda: heavy_simulation.simulate(method, data, stream(0, "benchmark", "simulation"))


CASES: dict[str, tuple[int, Callable[[], measure.Work]]] = {
    "simulation, three changes, T = 1024, ell = 10^6": (10**6, lambda: simulated(bits(10**6, 1024, 10**6))),
    "the same, n = 10^9": (10**9, lambda: simulated(bits(10**9, 1024, 10**6))),
    "the same, T = 128": (10**6, lambda: simulated(bits(10**6, 128, 10**6))),
    "the same, T = 8192": (10**6, lambda: simulated(bits(10**6, 8192, 10**6))),
    "simulation, drift, T = 1024, ell = 10^4": (10**9, lambda: simulated(drifting(10**9, 1024, 10**4))),
    "simulation, drift, T = 1024, ell = 10^6": (10**9, lambda: simulated(drifting(10**9, 1024, 10**6))),
    "HEAVYTHRESH, two changes, d = 10^5, T = 64, ell = 10^6": (10**6, lambda: heavy(1)),
    "user by user, T = 64, ell = 10^6": (10**6, lambda: per_user(10**6, 64, 10**6)),
}


def main() -> None:
    measured = measure.all_cases("thresh", list(CASES), repeats=3)
    rows = []
    for name, (users, _) in CASES.items():
        seconds, memory = measured[name]
        rows.append(measure.row(name, users, seconds, memory) | {"seconds": f"{seconds:.3f}"})
    measure.write("thresh", pd.DataFrame(rows).drop(columns="users a second"))


if __name__ == "__main__":
    main()
