"""multi-freq-ldpy: its pure frequency oracles; compiled by numba before the clock starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from job import Job, Work, serve
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client
from numba import njit

Client = Callable[[int, int, float], Any]
Aggregator = Callable[[Any, int, float], Any]


@njit  # type: ignore[untyped-decorator]
def seed_numba(seed: int) -> None:
    np.random.seed(seed)  # noqa: NPY002 - compiled code has a generator of its own


def unary(reports: Any, domain: int, epsilon: float) -> Any:
    return UE_Aggregator_MI(reports, epsilon)


def frequencies(client: Client, aggregate: Aggregator) -> Callable[[Job], Work]:
    def prepare(job: Job) -> Work:
        users = job.load().tolist()
        aggregate([client(users[0], job.domain, job.epsilon) for _ in range(2)], job.domain, job.epsilon)
        seed_numba(job.seed)

        def work() -> Any:
            reports = [client(user, job.domain, job.epsilon) for user in users]
            return aggregate(reports, job.domain, job.epsilon) * len(users)

        return work

    return prepare


METHODS: dict[tuple[str, str], Callable[[Job], Work]] = {
    ("frequency", "GRR"): frequencies(GRR_Client, GRR_Aggregator_MI),
    ("frequency", "OUE"): frequencies(UE_Client, unary),
    ("frequency", "subset selection"): frequencies(SS_Client, SS_Aggregator_MI),
    ("frequency", "OLH"): frequencies(LH_Client, LH_Aggregator_MI),
}

if __name__ == "__main__":
    serve(METHODS)
