"""The ledger of the library that PYTHONPATH names, and nothing else: prints the first row that fails.

python benchmarks/ledger_alone.py CHAPTER ...
"""

from __future__ import annotations

import json
import sys


def first_failure(chapters: list[str]) -> dict[str, str]:
    from evolvingdp.audit.ledger.listing import CHAPTERS

    for chapter in CHAPTERS:
        if chapter.__name__.rsplit(".", 1)[1] in chapters:
            for entry in chapter.entries():
                try:
                    measured = entry.measure()
                except Exception as error:
                    return {"row": entry.id, "by": f"raises {type(error).__name__}"}
                if not 0 < measured <= entry.promised * (1 + 1e-9):
                    return {"row": entry.id, "by": "promise"}
                if not entry.holds(measured):
                    return {"row": entry.id, "by": "pinned loss"}
    return {"row": "", "by": ""}


def main() -> None:
    try:
        found = first_failure(sys.argv[1:])
    except Exception as error:
        found = {"row": "", "by": f"raises {type(error).__name__}"}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
