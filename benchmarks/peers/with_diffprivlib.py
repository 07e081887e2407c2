"""diffprivlib: noise, a median, a budget accountant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from diffprivlib import BudgetAccountant
from diffprivlib.mechanisms import Geometric, Laplace
from diffprivlib.tools import median as private_median
from job import Job, Work, serve


def geometric(job: Job) -> Work:
    mechanism = Geometric(epsilon=0.1, sensitivity=1, random_state=job.seed)
    return lambda: [mechanism.randomise(0) for _ in range(job.n)]


def laplace(job: Job) -> Work:
    mechanism = Laplace(epsilon=0.1, delta=0.0, sensitivity=1, random_state=job.seed)
    return lambda: [mechanism.randomise(0.0) for _ in range(job.n)]


def median(job: Job) -> Work:
    """One user changes two of the means, so that each release gets half of the user's epsilon."""
    means = job.load()

    def work() -> Any:
        return [private_median(row, epsilon=job.epsilon / 2, bounds=(0, 1), random_state=i) for i, row in enumerate(means)]

    return work


def accountant(job: Job) -> Work:
    def work() -> Any:
        return BudgetAccountant(epsilon=job.epsilon, delta=job.delta, slack=job.delta).remaining(job.n)[0]

    return work


METHODS: dict[tuple[str, str], Callable[[Job], Work]] = {
    ("noise", "geometric"): geometric,
    ("noise", "Laplace"): laplace,
    ("median", "median"): median,
    ("accounting", "accountant"): accountant,
}

if __name__ == "__main__":
    serve(METHODS)
