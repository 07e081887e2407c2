"""dp-accounting: composition by privacy loss distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dp_accounting.pld import privacy_loss_distribution
from job import Job, Work, serve


def loss_distribution(job: Job) -> Work:
    """The epsilon of each of n randomized responses, the worst of all mechanisms of that epsilon."""

    def work() -> Any:
        def total(each: float) -> float:
            lie = 2 / (1 + math.exp(each))
            one = privacy_loss_distribution.from_randomized_response(
                lie, 2, value_discretization_interval=min(1e-4, each / 20)
            )
            return float(one.self_compose(job.n).get_epsilon_for_delta(job.delta))

        low, high = job.epsilon / job.n / 2, 2 * job.epsilon / math.sqrt(job.n)
        while high / low > 1 + 1e-4:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if total(middle) <= job.epsilon else (low, middle)
        return low

    return work


METHODS: dict[tuple[str, str], Callable[[Job], Work]] = {("accounting", "loss distributions"): loss_distribution}

if __name__ == "__main__":
    serve(METHODS)
