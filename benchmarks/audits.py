"""How often `evolvingdp audit` refutes mechanisms with known mistakes, black boxes (input, rng) -> output.

    python benchmarks/audits.py      (or: make audits)

writes benchmarks/results/audit_power.csv, which the book shows. An audit has 10,000 draws of each input in all: half choose,
half decide. Five minutes or less; with --repeats 1 each is tried once, and nothing is written.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from measure import asked, write

from evolvingdp.audit.empirical import failures
from evolvingdp.audit.empirical.auditor import Mechanism, audit
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.rappor import Rappor

Rng = np.random.Generator
_NUMBERS = ([0.0] * 5 + [1.0], [1.0] * 5 + [0.0])
_QUERIES = ([0.0] * 10, [1.0] * 5 + [-1.0] * 5)


@dataclass(frozen=True)
class Box:
    """`true` is the loss between the inputs, or more where that is not known; `promised` what it promises."""

    name: str
    mechanism: Mechanism
    inputs: tuple[Any, ...]
    promised: float
    true: float
    draws: int = 10_000


def _flip(bit: int, epsilon: float, rng: Rng) -> int:
    return bit if rng.random() < 1 / (1 + math.exp(-epsilon)) else 1 - bit


def _shared(x: int, rng: Rng) -> list[float]:
    z = rng.laplace(0.0, 2.0)
    return [x + z, x * 0.0 + z]


def _memoized(x: int, rng: Rng) -> list[int]:
    kept = [_flip(0, 0.5, rng), _flip(1, 0.5, rng)]  # an answer to each value, kept: a change of the value shows
    return [kept[0], kept[x], kept[0], kept[x]]


def _halting(x: int, rng: Rng) -> list[bool]:
    told = []
    for query in ((0, 9)[x], 0, 0, 0):
        told.append(bool(query + rng.laplace(0.0, 4.0) > 8))
        if query > 8:  # it stops at the true yes
            break
    return told


def _svt(
    queries: list[float], rng: Rng, *, threshold: float, noise: float, count: float = math.inf, numbers: bool = False
) -> list[Any]:
    shift, told, yes = rng.laplace(0.0, threshold), [], 0
    noisy = np.asarray(queries) + (rng.laplace(0.0, noise, len(queries)) if noise else 0.0)
    for value in noisy.tolist():
        above = value >= shift
        told.append((value if numbers else True) if above else None if numbers else False)
        yes += above
        if yes == count:
            break
    return told


def _clients(redrawn: bool, uncleared: bool) -> Mechanism:
    settings = failures.NeverClears(n_bits=4) if uncleared else Rappor(n_bits=4)
    return failures.rappor_client(settings, 50, redrawn=redrawn)


BROKEN = (
    Box("half noise", lambda x, rng: x + rng.laplace(0.0, 0.5), (0, 1), 1.0, 2.0),
    Box("half noise, integers", lambda x, rng: int(100 * x + round(rng.laplace(0.0, 50.0))), (0, 1), 1.0, 2.0),
    Box("one noise for two sums", _shared, (0, 1), 1.0, math.inf),
    Box("wrong sensitivity: two sums, paid as one", lambda x, rng: [x + rng.laplace(), x + rng.laplace()], (0, 1), 1.0, 2.0),
    Box("four releases of epsilon / 2", lambda x, rng: list(x + rng.laplace(0.0, 2.0, 4)), (0, 1), 1.0, 2.0),
    Box("twelve redrawn responses", lambda x, rng: [_flip(x, 1.0, rng) for _ in range(12)], (0, 1), 1.0, 12.0),
    Box("memoized answers, of a value that changes", _memoized, (0, 1), 0.5, math.inf),
    Box("clipped noise", lambda x, rng: x + float(np.clip(rng.laplace(), -2.0, 2.0)), (0, 1), 1.0, math.inf),
    Box("a leak by length", lambda x, rng: [float(one) for one in rng.laplace(0.0, 1.0, 3 + x)], (0, 1), 1.0, math.inf),
    Box("a leak by keys", lambda x, rng: {"n": rng.laplace(), **({"rare": 0} if x else {})}, (0, 1), 1.0, math.inf),
    Box("halting at the true yes", _halting, (0, 1), 1.0, math.inf),
    Box("a table, of which an entry has half the noise", lambda x, rng: np.array([[x + rng.laplace(0.0, 0.5), 0.0], [0.0, rng.laplace()]]), (0, 1), 1.0, 2.0),
    Box("RAPPOR, a true bit never cleared, 50 reports", _clients(False, True), (1, 2), Rappor(n_bits=4).epsilon_permanent, failures.NeverClears(n_bits=4).epsilon_of_reports(50)),
    Box("RAPPOR, permanent response redrawn, 50 reports", _clients(True, False), (1, 2), Rappor(n_bits=4).epsilon_permanent, 50 * Rappor(n_bits=4).epsilon_of_reports(1)),
    Box("Lyu et al., Algorithm 3", lambda q, rng: _svt(q, rng, threshold=2.0, noise=2.0, count=1, numbers=True), _NUMBERS, 1.0, math.inf),
    Box("Lyu et al., Algorithm 3, 200,000 draws", lambda q, rng: _svt(q, rng, threshold=2.0, noise=2.0, count=1, numbers=True), _NUMBERS, 1.0, math.inf, 200_000),
    Box("Lyu et al., Algorithm 4, three yeses", lambda q, rng: _svt(q, rng, threshold=4.0, noise=4 / 3, count=3), _QUERIES, 1.0, 4.75),
    Box("Lyu et al., Algorithm 5", lambda q, rng: _svt(q, rng, threshold=2.0, noise=0.0), ([0.0, 1.0], [1.0, 0.0]), 1.0, math.inf),
    Box("Lyu et al., Algorithm 6", lambda q, rng: _svt(q, rng, threshold=2.0, noise=2.0), ([0.0] * 40, [1.0] * 20 + [-1.0] * 20), 1.0, 20.0),
    Box("Gaussian noise as pure", lambda x, rng: x + rng.normal(0.0, 4.0), (0, 1), 1.0, math.inf),
)  # fmt: skip

DRAWS = 10_000


def audited(box: Box, repeats: int, draws: int) -> dict[str, str]:
    bounds, seconds = [], []
    for number in range(repeats):
        started = time.process_time()
        bounds.append(audit(box.mechanism, box.inputs, stream(0, "power", box.name, number), runs=draws // 2))
        seconds.append(time.process_time() - started)
    refuted = sum(bound.refutes(box.promised) for bound in bounds)
    typical = sorted(bounds, key=lambda bound: bound.epsilon)[repeats // 2]
    row = {
        "mechanism": box.name,
        "promised": f"{box.promised:.3g}",
        "true loss": "infinite" if math.isinf(box.true) else f"{box.true:.3g}",
        "refuted": f"{refuted} of {repeats}",
        "median bound": f"{typical.epsilon:.2f}",
        "seconds": f"{sorted(seconds)[repeats // 2]:.1f}",
    }
    print(row, flush=True)
    return row


def main() -> None:
    repeats = asked(__doc__, repeats=75).repeats
    rows = [audited(box, repeats if box.draws == DRAWS else math.ceil(repeats / 15), box.draws) for box in BROKEN]
    if repeats == 75:
        write("audit_power", pd.DataFrame(rows), "make audits")


if __name__ == "__main__":
    main()
