"""Time and memory of the binary mechanism and of the continual means, offline and online, and how they grow.

    python benchmarks/continual_mean.py      (or: make benchmarks)

writes benchmarks/results/continual_mean.csv, continual_mean_growth.csv and continual-mean-growth.svg, which the book's
performance page shows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import measure
import numpy as np
import pandas as pd

from evolvingdp.continual_mean import algorithms, choosing, offline, online, streams
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.prefix_sums import Anytime, Banded, Buffered, Toeplitz, height
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.noise import Gaussian, Tape
from evolvingdp.core.seeds import stream
from evolvingdp.experiment.style import MARKERS, PALETTE, THEORY, canvas, house

USERS, CAP, EPSILON = 100_000, 1024, 2.0


def bits(n_steps: int) -> np.ndarray:
    return streams.bits(0.3, n_steps, stream(0, "benchmark", "bits"))


def arrivals(n_steps: int) -> np.ndarray:
    return streams.arrivals("random", USERS, CAP, n_steps, stream(0, "benchmark", "users"))


def noise() -> np.random.Generator:
    return stream(0, "benchmark", "noise")


def binary(n_steps: int) -> measure.Work:
    elements, mechanism = bits(n_steps), BinaryMechanism(n_steps, 1.0)
    return lambda: mechanism.release(elements, noise())


def square_root(n_steps: int) -> measure.Work:
    elements = bits(n_steps)
    return lambda: BinaryMechanism(n_steps, 1.0, delta=1e-6, sums=Toeplitz(n_steps)).release(elements, noise())


def textbook(n_steps: int) -> measure.Work:
    """The peer: Chan, Shi and Song's mechanism as textbooks have it, a loop over steps that keeps one sum per level."""
    elements = bits(n_steps).tolist()

    def work() -> object:
        rng, scale = noise(), height(n_steps) / 1.0
        exact, noisy = [0.0] * 64, [0.0] * 64
        released = []
        for step, element in enumerate(elements, start=1):
            lowest = (step & -step).bit_length() - 1
            exact[lowest] = sum(exact[:lowest]) + element
            exact[:lowest] = noisy[:lowest] = [0.0] * lowest
            noisy[lowest] = exact[lowest] + rng.laplace(0.0, scale)
            released.append(sum(noisy[level] for level in range(step.bit_length()) if step >> level & 1))
        return released

    return work


def binary_online(n_steps: int) -> measure.Work:
    elements, mechanism = bits(n_steps).tolist(), BinaryMechanism(n_steps, 1.0)

    def work() -> object:
        state = mechanism.start(noise())
        return [mechanism.step(state, element)[1] for element in elements]

    return work


def buffers(n_steps: int) -> measure.Work:
    elements = bits(n_steps)
    return lambda: BinaryMechanism(n_steps, 1.0, delta=1e-6, sums=Buffered(n_steps)).release(elements, noise())


def naive(n_steps: int) -> UserMean:
    return algorithms.naive(USERS, CAP, EPSILON, horizon=n_steps)


def any_users(n_steps: int) -> UserMean:
    return choosing.recommended(USERS, CAP, EPSILON, horizon=n_steps)


def any_users_gaussian(n_steps: int) -> UserMean:
    return choosing.recommended(USERS, CAP, EPSILON, 1e-6, horizon=n_steps)


def full(n_steps: int) -> UserMean:
    return algorithms.full(USERS, CAP, EPSILON)


def alike(n_steps: int) -> UserMean:
    return choosing.users_alike(USERS, CAP, EPSILON, horizon=n_steps)


def gaussian(n_steps: int) -> UserMean:
    return choosing.users_alike(USERS, CAP, EPSILON, 1e-6, horizon=n_steps)


def together(make: Callable[[int], UserMean], n_steps: int) -> measure.Work:
    settings, users, samples = make(n_steps), arrivals(n_steps), bits(n_steps)
    return lambda: offline.release(settings, users, samples, noise())


def one_by_one(make: Callable[[int], UserMean], n_steps: int) -> measure.Work:
    settings, users, samples = make(n_steps), arrivals(n_steps).tolist(), bits(n_steps).tolist()

    def work() -> object:
        state = online.start(settings, noise())
        for user, sample in zip(users, samples, strict=True):
            online.step(settings, state, user, sample)
        return state

    return work


SHORT = 200_000
ONLINE: dict[str, Callable[[int], UserMean]] = {
    "Algorithm 2": naive,
    "Algorithm 3": lambda n: algorithms.wishful(USERS, CAP, EPSILON, 0.3),
    "Algorithm 4": lambda n: algorithms.single_tree(USERS, CAP, EPSILON, 0.3),
    "Algorithm 5": lambda n: algorithms.multiple_trees(USERS, CAP, EPSILON, 0.3),
    "Algorithm 6": full,
    "recommended, pure": any_users,
    "recommended, Gaussian": any_users_gaussian,
    "bands, Gaussian": lambda n: algorithms.bands(USERS, CAP, EPSILON, delta=1e-6, buffered=True, horizon=n),
    "users alike, pure": alike,
    "users alike, Gaussian": gaussian,
}

CASES: dict[str, tuple[int, Callable[[], measure.Work]]] = {
    "binary mechanism": (10**7, lambda: binary(10**7)),
    "square root, Gaussian": (10**7, lambda: square_root(10**7)),
    "eight buffers, Gaussian": (10**7, lambda: buffers(10**7)),
    "binary mechanism, one by one": (10**6, lambda: binary_online(10**6)),
    "the peer: a textbook's loop": (10**6, lambda: textbook(10**6)),
    "noise of eight buffers": (10**7, lambda: lambda: Buffered(10**7).all(10**7, Tape(Gaussian(1.0), noise()))),
    "noise without an end": (10**6, lambda: lambda: Anytime().all(10**6, Tape(Gaussian(1.0), noise()))),
    "noise of a banded matrix, 256 bands": (
        10**6,
        lambda: lambda: Banded(10**6, 256).all(10**6, Tape(Gaussian(1.0), noise())),
    ),
    "Algorithm 6": (10**7, lambda: together(full, 10**7)),
    "Algorithm 2": (10**7, lambda: together(naive, 10**7)),
    "recommended, pure": (10**7, lambda: together(any_users, 10**7)),
    "users alike, pure": (10**7, lambda: together(alike, 10**7)),
    "users alike, Gaussian": (10**7, lambda: together(gaussian, 10**7)),
    **{f"{name}, one by one": (SHORT, partial(one_by_one, make, SHORT)) for name, make in ONLINE.items()},
}

LENGTHS = (10**4, 10**5, 10**6, 10**7)
GROWING: dict[str, Callable[[int], measure.Work]] = {
    "binary mechanism": binary,
    "Algorithm 6": lambda n: together(full, n),
    "recommended, pure": lambda n: together(any_users, n),
    "users alike, pure": lambda n: together(alike, n),
    "users alike, Gaussian": lambda n: together(gaussian, n),
    "a textbook's loop": textbook,
}


def growth(repeats: int = 5) -> pd.DataFrame:
    """Seconds of all releases of a stream against its length: median, least and most of `repeats` runs."""
    rows = []
    for what, make in GROWING.items():
        for n_steps in LENGTHS if what != "a textbook's loop" else LENGTHS[:-1]:
            seconds = measure.seconds(make(n_steps), repeats)
            spread = {"seconds": np.median(seconds), "least": min(seconds), "most": max(seconds)}
            rows.append({"what": what, "steps": n_steps} | spread)
    return pd.DataFrame(rows)


@house
def draw(table: pd.DataFrame) -> None:
    """Seconds against the length of the stream; bands from the fastest to the slowest run."""
    figure, ax = canvas(6.5, 4.0)
    for number, (what, line) in enumerate(table.groupby("what", sort=False)):
        ax.fill_between(line.steps, line.least, line.most, color=PALETTE[number], alpha=0.2, linewidth=0)
        ax.plot(line.steps, line.seconds, color=PALETTE[number], marker=MARKERS[number], label=what)
    steps = np.array(LENGTHS, dtype=float)
    ax.plot(steps, 2e-8 * steps, label="proportional to the length", **THEORY)
    ax.set(xscale="log", yscale="log", xlabel="steps of the stream", ylabel="seconds for all releases, one core")
    ax.legend(fontsize="x-small")
    figure.savefig(measure.RESULTS / "continual-mean-growth.svg", metadata={"Date": None})


def main() -> None:
    measured = measure.all_cases("continual_mean", list(CASES), repeats=3)  # first: a process inherits its parent's peak
    rows = [measure.row(name, steps, *measured[name]) for name, (steps, _) in CASES.items()]
    table = pd.DataFrame(rows).rename(columns={"users": "steps", "users a second": "steps a second"})
    measure.write("continual_mean", table)
    growing = growth()
    growing.to_csv(measure.RESULTS / "continual_mean_growth.csv", index=False, float_format="%.4g", lineterminator="\n")
    draw(growing)
    print(growing.to_string(index=False))


if __name__ == "__main__":
    main()
