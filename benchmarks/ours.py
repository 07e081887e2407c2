"""Our side of every comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from job import Job, Methods, Prepare, Work, serve

from evolvingdp.continual_mean import binary_mechanism, private_median
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.prefix_sums import Buffered
from evolvingdp.core import accounting
from evolvingdp.core.hashing import MultiplyShift, scramble
from evolvingdp.core.noise import DiscreteLaplace, Laplace, Noise
from evolvingdp.core.olh import OLH
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.count_sketch import FreqOracle
from evolvingdp.heavy_hitters.planning import planned
from evolvingdp.heavy_hitters.sketches.projective import ProjectiveOracle
from evolvingdp.heavy_hitters.word_tree import WordTree

ROWS, WIDTH = 64, 1024  # of sketches, the peers' too
POINT_ROWS = 16
LEVEL = 10  # of PrivateMedian: bins of 2 * 2^(-LEVEL / 2)


def projective(job: Job) -> Work:
    users, values = job.load().astype(np.uint64), np.arange(job.domain, dtype=np.uint64)

    def work() -> Any:
        oracle = ProjectiveOracle.draw(POINT_ROWS, job.domain, job.epsilon, stream(job.seed, "hashes"))
        sketch = oracle.collect(users, stream(job.seed, "public"), stream(job.seed, "private"))
        return oracle.estimate(sketch, values, "joint")

    return work


def olh(job: Job) -> Work:
    users, values = job.load().astype(np.uint64), np.arange(job.domain, dtype=np.uint64)

    def work() -> Any:
        oracle = OLH(job.epsilon)
        reports = oracle.report(users, stream(job.seed, "public"), stream(job.seed, "private"))
        return oracle.estimate(oracle.support(reports, values), len(users))

    return work


def consistent(estimates: Any, n_users: int) -> Any:
    """The nearest that are not negative and sum to `n_users`: Norm-Sub of Wang et al., Locally differentially private
    frequency estimation with consistency (2020)."""
    falling = np.sort(estimates)[::-1]
    surplus = (np.cumsum(falling) - n_users) / np.arange(1, len(falling) + 1)
    return np.maximum(estimates - surplus[np.flatnonzero(falling > surplus)[-1]], 0.0)


def with_consistency(method: Prepare) -> Prepare:
    """With the nearest counts that are not negative and sum to the number of users."""

    def prepare(job: Job) -> Work:
        estimate = method(job)
        return lambda: consistent(estimate(), job.n)

    return prepare


def freq_oracle(job: Job) -> Work:
    users, values = (scramble(part.astype(np.uint64)) for part in (job.load(), np.arange(job.domain)))

    def work() -> Any:
        oracle = FreqOracle(MultiplyShift.draw(ROWS, WIDTH, stream(job.seed, "hashes")), job.epsilon)
        sketch = oracle.collect(users, stream(job.seed, "public"), stream(job.seed, "private"))
        return oracle.estimate(sketch, values, "mean")

    return work


def heavy(job: Job) -> Work:
    """TreeHist as planned for words of four standard errors."""
    held = job.load()

    def work() -> Any:
        method = planned(job.epsilon, job.n, 4 * OLH(job.epsilon).standard_error(job.n))
        leaves = _encode(method.tree, held)
        drawn = method.draw_hashes(stream(job.seed, "hashes"))
        found = drawn.search(drawn.collect(leaves, stream(job.seed, "public"), stream(job.seed, "private")), job.n)
        best = found.words.head(job.top)
        return {"words": best["word"].tolist(), "estimates": best["estimate"].tolist()}

    return work


def _encode(tree: WordTree, held: Any) -> Any:
    """Leaves of the users' words; each different word is encoded once."""
    words, place = np.unique(held, return_inverse=True)
    return tree.encode(words)[place]


def counting(mechanism: Callable[[Job], Any], online: bool = True) -> Prepare:
    def prepare(job: Job) -> Work:
        streams = job.load()
        one_by_one = [stream.tolist() for stream in streams]

        def work() -> Any:
            released: list[Any] = []
            for number, bits in enumerate(one_by_one):
                made, rng = mechanism(job), stream(job.seed, "noise", number)
                if not online:
                    released.append(made.release(streams[number], rng))
                    continue
                state, sums = made.start(rng), list[float]()
                for bit in bits:
                    state, noisy = made.step(state, bit)
                    sums.append(noisy)
                released.append(sums)
            return released

        return work

    return prepare


def best_tree(job: Job) -> BinaryMechanism:
    return BinaryMechanism(job.n, job.epsilon, sums=binary_mechanism.best_tree(job.n))


def draws(noise: Noise) -> Prepare:
    return lambda job: lambda: noise.draw(job.n, stream(job.seed, "noise"))


def median(job: Job) -> Work:
    means = job.load()

    def work() -> Any:
        return [private_median.draw(row, job.epsilon, LEVEL, stream(job.seed, "median", i)) for i, row in enumerate(means)]

    return work


METHODS: Methods = {
    ("frequency", "OLH"): olh,
    ("frequency", "OLH, consistent"): with_consistency(olh),
    ("frequency", "FreqOracle"): freq_oracle,
    ("frequency", "projective"): projective,
    ("frequency", "projective, consistent"): with_consistency(projective),
    ("heavy hitters", "TreeHist"): heavy,
    ("counting", "tree"): counting(lambda job: BinaryMechanism(job.n, job.epsilon)),
    ("counting", "best tree"): counting(best_tree),
    ("counting", "square root"): counting(
        lambda job: BinaryMechanism(job.n, job.epsilon, delta=job.delta, sums=Buffered(job.n))
    ),
    ("noise", "discrete Laplace"): draws(DiscreteLaplace(10.0)),
    ("noise", "Laplace"): draws(Laplace(10.0)),
    ("accounting", "optimal"): lambda job: lambda: accounting.optimal(job.epsilon, job.delta, job.n),
    ("accounting", "basic"): lambda job: lambda: accounting.basic(job.epsilon, job.n),
    ("median", "PrivateMedian"): median,
}

if __name__ == "__main__":
    serve(METHODS)
