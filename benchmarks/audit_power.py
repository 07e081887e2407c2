"""How often `evolvingdp audit` refutes mechanisms with known mistakes, and how often tight ones that have none.

    python benchmarks/audit_power.py      (or: make audits)

writes benchmarks/results/audit_power.csv and audit_false_alarms.csv, which the book shows. An audit has 10,000 draws of each
input in all: half choose, half decide. DP-Sniper's and StatDP's ways (`audit_rivals`) have as many. Ten minutes or less.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import pandas as pd
from audit_cases import BROKEN, TIGHT, Box
from audit_rivals import sniper, statdp

from evolvingdp.audit.empirical.auditor import audit
from evolvingdp.book import dated
from evolvingdp.core.seeds import stream

RESULTS = Path(__file__).parent / "results"
DRAWS, REPEATS, LONG_REPEATS, RIVALS_REPEATS = 10_000, 75, 5, 20
QUIET_REPEATS, QUIET_DRAWS = 150, 2000


def share(refuted: int, repeats: int) -> str:
    return f"{refuted} of {repeats}"


def audited(box: Box, repeats: int, rivals: int, draws: int) -> dict[str, str]:
    bounds, seconds = [], []
    for number in range(repeats):
        started = time.process_time()
        bounds.append(audit(box.mechanism, box.inputs, stream(0, "power", box.name, number), runs=draws // 2))
        seconds.append(time.process_time() - started)
    refuted = sum(bound.refutes(box.promised) for bound in bounds)
    typical = sorted(bounds, key=lambda bound: bound.epsilon)[repeats // 2]
    others = {
        name: share(
            sum(
                way(box.mechanism, box.inputs, box.promised, stream(0, name, box.name, number), draws // 2)
                for number in range(rivals)
            ),
            rivals,
        )
        for name, way in (("DP-Sniper's way", sniper), ("StatDP's way", statdp))
    }
    row = {
        "mechanism": box.name,
        "promised": f"{box.promised:.3g}",
        "true loss": "infinite" if math.isinf(box.true) else f"{box.true:.3g}",
        "refuted": share(refuted, repeats),
        **others,
        "median bound": f"{typical.epsilon:.2f}",
        "seconds": f"{sorted(seconds)[repeats // 2]:.1f}",
    }
    print(row, flush=True)
    return row


def main() -> None:
    rows = []
    for box in BROKEN:
        repeats = (REPEATS, RIVALS_REPEATS) if box.draws == DRAWS else (LONG_REPEATS, LONG_REPEATS)
        rows.append(audited(box, *repeats, box.draws))
    pd.DataFrame(rows).to_csv(RESULTS / "audit_power.csv", index=False, lineterminator="\n")
    quiet = pd.DataFrame(audited(box, QUIET_REPEATS, RIVALS_REPEATS, QUIET_DRAWS) for box in TIGHT)
    quiet.drop(columns=["seconds"]).to_csv(RESULTS / "audit_false_alarms.csv", index=False, lineterminator="\n")
    dated.stamp("audit_power", Path(__file__), "make audits", RESULTS)


if __name__ == "__main__":
    main()
