"""Time and memory of THRESH and HEAVYTHRESH: the simulation against n and T, and the protocol user by user.

    python benchmarks/thresh.py      (or: make benchmarks)

writes benchmarks/results/thresh.csv, thresh_growth.csv and thresh-growth.svg, which the book's performance page shows.
"""

from __future__ import annotations

from collections.abc import Callable

import measure
import numpy as np
import pandas as pd

from evolvingdp.core.seeds import stream
from evolvingdp.evolving import heavy_simulation, streams, thresh_protocol
from evolvingdp.evolving.experiments.heavy_thresh.settings import DICTIONARIES, dictionary
from evolvingdp.evolving.experiments.thresh.scenarios import bits
from evolvingdp.evolving.streams import BitStream
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.evolving.thresh_simulation import simulate
from evolvingdp.experiment.style import MARKERS, PALETTE, THEORY, canvas, house


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
    return lambda: thresh_protocol.run(method, data, bits=np.random.default_rng(0), private=stream(0, "benchmark", "noise"))


def heavy_growing(n_users: int, horizon: int) -> measure.Work:
    """Two changes of 10^4 words; epsilon and epochs large enough for all points."""
    size = (n_users, 10_000, horizon, 10**6, 8.0)
    method, data = dictionary(*size, stream(0, "benchmark", "dictionary"))
    return lambda: heavy_simulation.simulate(method, data, stream(0, "benchmark", "simulation"))


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

N_SWEEP, T_SWEEP = (10**6, 10**7, 10**8, 10**9), (64, 256, 1024, 4096)
GROWING: dict[str, Callable[[int, int], measure.Work]] = {
    "THRESH, three changes, ell = 10^6": lambda n, horizon: simulated(bits(n, horizon, 10**6)),
    "THRESH, drift, ell = 10^4": lambda n, horizon: simulated(drifting(n, horizon, 10**4)),
    "HEAVYTHRESH, two changes, d = 10^4, ell = 10^6": heavy_growing,
}
SWEEPS = {"n": [(n, 256) for n in N_SWEEP], "T": [(10**6, horizon) for horizon in T_SWEEP]}


def growth(repeats: int = 11) -> pd.DataFrame:
    """Seconds of the simulation against n (T = 256) and T (n = 10^6): median, least and most of `repeats` runs."""
    rows = []
    for what, make in GROWING.items():
        for against, points in SWEEPS.items():
            for n_users, horizon in points:
                seconds = measure.seconds(make(n_users, horizon), repeats)
                rows.append(
                    {"what": what, "against": against, "n": n_users, "T": horizon}
                    | {"seconds": np.median(seconds), "least": min(seconds), "most": max(seconds)}
                )
    return pd.DataFrame(rows)


@house
def draw(table: pd.DataFrame) -> None:
    """Two panels: seconds against n and against T; bands from the fastest to the slowest run."""
    figure, axes = canvas(8.5, 4.0, columns=2, sharey=True)
    for ax, against in zip(axes, SWEEPS, strict=True):
        part = table[table.against == against]
        for number, (what, line) in enumerate(part.groupby("what", sort=False)):
            colour = PALETTE[number]
            ax.fill_between(line[against], line.least, line.most, color=colour, alpha=0.2, linewidth=0)
            ax.plot(line[against], line.seconds, color=colour, marker=MARKERS[number], label=what)
        ax.set(xscale="log", yscale="log", xlabel={"n": "users $n$ ($T$ = 256)", "T": "epochs $T$ ($n = 10^6$)"}[against])
    epochs = np.array(T_SWEEP, dtype=float)
    axes[1].plot(epochs, 2e-5 * epochs, label="proportional to $T$", **THEORY)
    axes[0].set(ylabel="seconds of a run, one core")
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize="x-small")
    figure.savefig(measure.RESULTS / "thresh-growth.svg", metadata={"Date": None})


def main() -> None:
    measured = measure.all_cases("thresh", list(CASES), repeats=3)  # first: a process inherits its parent's peak
    rows = []
    for name, (users, _) in CASES.items():
        seconds, memory = measured[name]
        rows.append(measure.row(name, users, seconds, memory) | {"seconds": f"{seconds:.3f}"})
    measure.write("thresh", pd.DataFrame(rows).drop(columns="users a second"))
    table = growth()
    table.to_csv(measure.RESULTS / "thresh_growth.csv", index=False, float_format="%.4g", lineterminator="\n")
    draw(table)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
