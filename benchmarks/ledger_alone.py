"""The ledger of the library that PYTHONPATH names, and nothing else: prints the first scene that does not return what is
recorded; if there is none, the first row that fails.

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


def changed_scene(chapters: list[str]) -> str:
    """The chapters' own scenes first: they are the likeliest to change."""
    from evolvingdp.audit.recorded import listing

    return listing.first_change(sorted(listing.chapters(), key=lambda name: name.partition(".")[0] not in chapters))


def main() -> None:
    chapters = sys.argv[1:]
    found = {"row": "", "by": "", "scene": ""}
    try:
        found["scene"] = changed_scene(chapters)
        if not found["scene"]:
            found |= first_failure(chapters)
    except Exception as error:
        found["by"] = f"raises {type(error).__name__}"
    print(json.dumps(found))


if __name__ == "__main__":
    main()
