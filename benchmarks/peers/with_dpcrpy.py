"""dpcrpy: continual counting, a step at a time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import dpcrpy
from dpcrpy.framework.noiMech import GaussNoiMech, LapNoiMech
from job import Job, Work, serve

warnings.simplefilter("ignore")
Make = Callable[[Job, Any], Any]  # job, noise -> mechanism


def laplace(job: Job) -> Any:
    return LapNoiMech(epsilon=job.epsilon)


def gaussian(job: Job) -> Any:
    return GaussNoiMech(epsilon=job.epsilon, delta=job.delta)


def powers(mechanism: Any, missing: int) -> Make:
    """A mechanism for 2^k - `missing` steps: the least k that is enough."""
    return lambda job, noise: mechanism(kOrder=math.ceil(math.log2(job.n + missing)), noiMech=noise)


def optimal_tree(job: Job, noise: Any) -> Any:
    return dpcrpy.KTCRComp(T=job.n, k=4, noiMech=noise)


def optimal_bits(job: Job, noise: Any) -> Any:
    return dpcrpy.AuBCRComp(job.n, noiMech=noise)


def counting(make: Make, noise: Callable[[Job], Any]) -> Callable[[Job], Work]:
    def prepare(job: Job) -> Work:
        streams = [stream.tolist() for stream in job.load()]
        if make is optimal_tree:  # the package keeps these solutions on disk; its users pay for them once
            make(job, noise(job)).preSolvePrivateBudget()

        def work() -> Any:
            released = []
            for bits in streams:
                mechanism = make(job, noise(job))
                released.append([mechanism.dpRelease(bit)[0] for bit in bits])
            return released

        return work

    return prepare


METHODS: dict[tuple[str, str], Callable[[Job], Work]] = {
    ("counting", "tree"): counting(powers(dpcrpy.BinMech, 0), laplace),
    ("counting", "Honaker"): counting(powers(dpcrpy.Honaker, 0), laplace),
    ("counting", "FDA"): counting(powers(dpcrpy.FDA, 1), laplace),
    ("counting", "BCRG"): counting(powers(dpcrpy.BCRG, 1), gaussian),
    ("counting", "ABCRG"): counting(powers(dpcrpy.ABCRG, 1), gaussian),
    ("counting", "AuBCR"): counting(optimal_bits, gaussian),
    ("counting", "4-ary tree"): counting(optimal_tree, gaussian),
}

if __name__ == "__main__":
    serve(METHODS)
