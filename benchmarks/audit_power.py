"""How often `evolvingdp audit` refutes mechanisms with known mistakes, and how often tight ones that have none.

    python benchmarks/audit_power.py      (or: make audits)

writes benchmarks/results/audit_power.csv and audit_false_alarms.csv, which the book shows. An audit has 10,000 draws of each
input in all: half choose, half decide.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import pandas as pd
from audit_cases import BROKEN, TIGHT, Box
from scipy.stats import binomtest

from evolvingdp.audit.empirical.auditor import audit
from evolvingdp.core.seeds import stream
from evolvingdp.publish.rendering import dated

RESULTS = Path(__file__).parent / "results"
DRAWS, REPEATS, QUIET_REPEATS, QUIET_DRAWS = 10_000, 12, 60, 2000


def audited(box: Box, repeats: int, draws: int) -> dict[str, str]:
    bounds, seconds = [], []
    for number in range(repeats):
        started = time.process_time()
        bounds.append(audit(box.mechanism, box.inputs, stream(0, "power", box.name, number), runs=draws // 2))
        seconds.append(time.process_time() - started)
    refuted = sum(bound.refutes(box.promised) for bound in bounds)
    interval = binomtest(refuted, repeats).proportion_ci(0.95, method="exact")
    typical = sorted(bounds, key=lambda bound: bound.epsilon)[repeats // 2]
    row = {
        "mechanism": box.name,
        "promised": f"{box.promised:.3g}",
        "true loss": "infinite" if math.isinf(box.true) else f"{box.true:.3g}",
        "refuted": f"{refuted} of {repeats}",
        "95 % interval": f"{interval.low:.2f} to {interval.high:.2f}",
        "median bound": f"{typical.epsilon:.2f}",
        "seconds": f"{sorted(seconds)[repeats // 2]:.1f}",
        "by": typical.event.split(", such as")[0].rsplit(" >=", 1)[0].rsplit(" <=", 1)[0],
    }
    print(row, flush=True)
    return row


def main() -> None:
    pd.DataFrame(audited(box, REPEATS if box.draws == DRAWS else 5, box.draws) for box in BROKEN).to_csv(
        RESULTS / "audit_power.csv", index=False
    )
    quiet = pd.DataFrame(audited(box, QUIET_REPEATS, QUIET_DRAWS) for box in TIGHT)
    quiet.drop(columns=["by", "seconds"]).to_csv(RESULTS / "audit_false_alarms.csv", index=False)
    dated.stamp("audit_power", Path(__file__), "make audits", RESULTS)


if __name__ == "__main__":
    main()
