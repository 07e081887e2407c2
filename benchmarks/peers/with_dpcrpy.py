"""dpcrpy: continual counting, a step at a time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import dpcrpy
import numpy as np
from dpcrpy.framework.noiMech import GaussNoiMech, LapNoiMech
from job import Job, Work, serve

warnings.simplefilter("ignore")
Make = Callable[[Job, Any], Any]  # job, noise -> mechanism
SHORT = 15  # steps of a stream whose noise is taken apart


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


class OneDraw:
    """Noise of one unit, times the sensitivity that the mechanism claims, in one draw and 0 in all others."""

    def __init__(self, kind: int, which: int) -> None:
        self.kind, self.which, self.drawn, self.sensitivity = kind, which, 0, 1.0

    def genNoise(self, shape: Any = None) -> float:
        self.drawn += 1
        return self.sensitivity if self.drawn == self.which else 0.0

    def getMse(self) -> float:
        return 1.0

    def getSensType(self) -> int:
        return self.kind

    def setSens(self, sens: float) -> None:
        self.sensitivity = float(sens)


def sensitivity(make: Make, kind: int) -> Callable[[Job], Work]:
    """What one bit changes in units of the calibrated noise, in the package's own arithmetic: 1 keeps its promise.

    Releases are A bits + B draws.  Gaussian: the largest sqrt(a' (B B')^-1 a) over columns a of A, exact.  Laplace, where
    B is square: the largest l1 norm of a column of B^-1 A, exact.
    """

    def run(job: Job, bits: Any, which: int) -> tuple[Any, OneDraw]:
        noise = OneDraw(kind, which)
        mechanism = make(job, noise)
        return np.array([mechanism.dpRelease(bit)[0] for bit in bits], dtype=float), noise

    def prepare(job: Job) -> Work:
        def work() -> Any:
            steps = np.eye(SHORT)
            signal = np.array([run(job, step, 0)[0] for step in steps]).T
            total = run(job, steps[0], 0)[1].drawn
            mixed = np.array([run(job, 0 * steps[0], which + 1)[0] for which in range(total)]).T
            mixed = mixed[:, np.abs(mixed).sum(axis=0) > 0]  # draws that no release shows
            if kind == 2:
                change = np.sqrt(np.max(np.einsum("ij,ij->j", signal, np.linalg.solve(mixed @ mixed.T, signal))))
            else:
                change = np.abs(np.linalg.solve(mixed, signal)).sum(axis=0).max()
            return float(change)

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
    ("budget", "tree"): sensitivity(powers(dpcrpy.BinMech, 0), 1),
    ("budget", "FDA"): sensitivity(powers(dpcrpy.FDA, 1), 1),
    ("budget", "Honaker, Gaussian"): sensitivity(powers(dpcrpy.Honaker, 0), 2),
    ("budget", "BCRG"): sensitivity(powers(dpcrpy.BCRG, 1), 2),
    ("budget", "ABCRG"): sensitivity(powers(dpcrpy.ABCRG, 1), 2),
    ("budget", "AuBCR"): sensitivity(optimal_bits, 2),
    ("budget", "4-ary tree"): sensitivity(optimal_tree, 2),
}

if __name__ == "__main__":
    serve(METHODS)
