"""Time and memory of the frequency oracle against a bare numpy pipeline of the same steps, each in its own process.

    python benchmarks/frequency_oracle.py      (or: make benchmarks)

writes benchmarks/results/frequency_oracle.csv, which the book's performance page shows.
"""

from __future__ import annotations

from collections.abc import Callable

import measure
import numpy as np
import pandas as pd

from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import streams
from evolvingdp.heavy_hitters.count_sketch import FreqOracle

EPSILON = 2.0
ROWS, WIDTH = 256, 2048
USERS = 10**7


def brown_users(n_users: int) -> np.ndarray:
    """One key a user, in random order."""
    counts = streams.brown_counts(n_users, stream(0, "benchmark", "data", n_users))
    keys = np.repeat(streams.brown_keys(), counts)
    stream(0, "benchmark", "order").shuffle(keys)
    return keys


def bare_numpy(keys: np.ndarray) -> measure.Work:
    """The same steps as `FreqOracle.collect`, nothing else, at the chunk size where they run fastest."""
    chunk = 1 << 18
    shift, cells = np.uint64(65 - WIDTH.bit_length()), ROWS * WIDTH
    keep = np.exp(EPSILON) / (np.exp(EPSILON) + 1)

    def work() -> object:
        rng = np.random.default_rng(0)
        a, b, c, d = rng.integers(0, 2**64, size=(4, ROWS), dtype=np.uint64)
        sums = np.zeros(cells)
        for first in range(0, len(keys), chunk):
            part = keys[first : first + chunk]
            slots = rng.integers(0, cells, size=len(part))
            rows = slots >> (WIDTH.bit_length() - 1)
            cell = (a[rows] * part + b[rows]) >> shift
            sign = (c[rows] * part + d[rows]) >> np.uint64(63)
            bits = (np.bitwise_count((slots & (WIDTH - 1)) & cell.view(np.int64)) ^ sign.astype(np.uint8)) & np.uint8(1)
            bits ^= rng.random(len(part)) > keep
            sums += np.bincount(slots, weights=1 - 2 * bits.astype(np.int8), minlength=cells)
        return sums

    return work


def per_user(keys: np.ndarray) -> measure.Work:
    hashes = MultiplyShift.draw(ROWS, WIDTH, stream(0, "benchmark", "hashes"))
    oracle = FreqOracle(hashes, EPSILON)
    return lambda: oracle.collect(keys, stream(0, "benchmark", "slots"), stream(0, "benchmark", "noise"))


def simulation(n_users: int, compression: str) -> measure.Work:
    hashes = MultiplyShift.draw(ROWS, WIDTH, stream(0, "benchmark", "hashes"))
    oracle = FreqOracle(hashes, EPSILON, compression)
    counts = streams.brown_counts(n_users, stream(0, "benchmark", "data", n_users))
    keys = streams.brown_keys()
    return lambda: oracle.simulate(keys, counts, stream(0, "benchmark", "simulation"))


CASES: dict[str, tuple[int, Callable[[], measure.Work]]] = {
    "bare numpy, same steps": (USERS, lambda: bare_numpy(brown_users(USERS))),
    "per user: client and server": (USERS, lambda: per_user(brown_users(USERS))),
    "simulation, one bit a user, n = 10^7": (10**7, lambda: simulation(10**7, "hadamard")),
    "simulation, one bit a user, n = 10^8": (10**8, lambda: simulation(10**8, "hadamard")),
    "simulation, one bit a user, n = 10^9": (10**9, lambda: simulation(10**9, "hadamard")),
    "simulation, uncompressed, n = 10^9": (10**9, lambda: simulation(10**9, "none")),
}


def main() -> None:
    measured = measure.all_cases("frequency_oracle", list(CASES))
    peer = USERS / measured["bare numpy, same steps"][0]
    rows = [
        {
            "what": name,
            "users": measure.short(users),
            "seconds": f"{measured[name][0]:.2f}",
            "users a second": measure.short(users / measured[name][0]),
            "ratio to bare numpy": f"{users / measured[name][0] / peer:.2f}",
            "peak memory (GB)": f"{measured[name][1]:.2f}",
        }
        for name, (users, _) in CASES.items()
    ]
    measure.write("frequency_oracle", pd.DataFrame(rows))


if __name__ == "__main__":
    main()
