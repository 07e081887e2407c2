"""Records what the scenes of `audit.recorded` return now, and says which have changed: after the ledger has been verified.

python benchmarks/record.py      (or: make record)

Writes lib/evolvingdp/audit/recorded/fingerprints.py.  Whoever changes a mechanism on purpose runs it: its difference in the
commit shows what else has changed.
"""

from __future__ import annotations

from pathlib import Path

from evolvingdp.audit.recorded import fingerprints
from evolvingdp.audit.recorded.listing import scenes, unchanged
from evolvingdp.audit.recorded.scene import fingerprint

OPENING = '''"""What scenes returned when they were recorded; written by `make record`, never by hand."""

from __future__ import annotations

from evolvingdp.audit.recorded.scene import Fingerprint

FINGERPRINTS: dict[str, Fingerprint] = {
'''


def main() -> None:
    lines, before = [OPENING], fingerprints.FINGERPRINTS
    for _, name, scene in scenes():
        now = fingerprint(name, scene)
        if not unchanged(name, now):
            print(f"{name}: {'new' if name not in before else 'changed'}")
        else:
            now = before[name]  # so that the last digits of another machine change no line
        numbers = ", ".join(map(repr, now[2:]))
        lines.append(f'    "{name}": Fingerprint({now.outputs}, "{now.exact}", {numbers}),\n')
    for name in set(before) - {name for _, name, _ in scenes()}:
        print(f"{name}: gone")
    Path(fingerprints.__file__).write_text("".join([*lines, "}\n"]))


if __name__ == "__main__":
    main()
