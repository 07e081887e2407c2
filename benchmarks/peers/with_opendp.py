"""opendp: noise, a tree of counts, composition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import opendp.prelude as dp
from job import Job, Work, serve

dp.enable_features("contrib")


def draws(kind: Any) -> Callable[[Job], Work]:
    def prepare(job: Job) -> Work:
        atom = dp.atom_domain(T=int) if kind is int else dp.atom_domain(T=float, nan=False)
        mechanism = dp.m.make_laplace(dp.vector_domain(atom), dp.l1_distance(T=kind), scale=10.0)
        zeros = [kind(0)] * job.n
        return lambda: mechanism(zeros)

    return prepare


def tree(job: Job) -> Work:
    """All counts at once: noisy sums of blocks made consistent, then prefix sums of the leaves."""
    streams = [stream.tolist() for stream in job.load()]

    def work() -> Any:
        branching = dp.t.choose_branching_factor(job.n)
        counts = dp.vector_domain(dp.atom_domain(T=int))
        blocks = dp.t.make_b_ary_tree(counts, dp.l1_distance(T=int), leaf_count=job.n, branching_factor=branching)
        mechanism = blocks >> dp.m.then_laplace(scale=blocks.map(1) / job.epsilon)
        assert mechanism.map(1) <= job.epsilon * (1 + 1e-9)
        consistent = dp.t.make_consistent_b_ary_tree(branching_factor=branching)
        return [_running(consistent(mechanism(bits))[: job.n]) for bits in streams]

    return work


def _running(leaves: Any) -> Any:
    total, sums = 0.0, []
    for leaf in leaves:
        total += leaf
        sums.append(total)
    return sums


def laplace(scale: float) -> Any:
    return dp.m.make_laplace(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=scale)


def concentrated(job: Job) -> Work:
    """The epsilon of each of n Laplace mechanisms, composed as zero-concentrated privacy."""

    def work() -> Any:
        def total(scale: float) -> float:
            composed = dp.c.make_composition([dp.c.make_pureDP_to_zCDP(laplace(scale))] * job.n)
            return float(dp.c.make_zCDP_to_approxDP(composed).map(1.0).epsilon(job.delta))

        scale = dp.binary_search(lambda scale: total(scale) <= job.epsilon, bounds=(1.0 / job.epsilon, 2.0 * job.n))
        return laplace(scale).map(1.0)

    return work


def pure(job: Job) -> Work:
    def work() -> Any:
        scale = dp.binary_search(
            lambda scale: dp.c.make_composition([laplace(scale)] * job.n).map(1.0) <= job.epsilon,
            bounds=(1.0 / job.epsilon, 2.0 * job.n / job.epsilon),
        )
        return laplace(scale).map(1.0)

    return work


METHODS: dict[tuple[str, str], Callable[[Job], Work]] = {
    ("noise", "discrete Laplace"): draws(int),
    ("noise", "Laplace"): draws(float),
    ("counting", "consistent tree"): tree,
    ("accounting", "zCDP"): concentrated,
    ("accounting", "basic"): pure,
}

if __name__ == "__main__":
    serve(METHODS)
