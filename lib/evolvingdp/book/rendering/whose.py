"""Whether a book is ours alone or shows a reader's results beside ours, as `beside.stage` wrote it down."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evolvingdp.book.checkout import Project
from evolvingdp.book.running import problems

YOURS = "book/yours"
RECORD = "preset.json"


@dataclass(frozen=True)
class Yours(Project):
    """A copy of the book seen from the reader's side: its results are the reader's."""

    @property
    def results(self) -> Path:
        return self.root / YOURS


def record(root: Path) -> dict[str, Any]:
    """What `stage` wrote about the reader's preset below `root`; empty in a book that is ours alone."""
    path = root / YOURS / RECORD
    content: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return content


def stale(root: Path) -> list[str]:
    """Why results of the reader's may not be shown; see `job.problems`."""
    pages = record(root).get("pages", {})
    return [problem for page in pages for problem in problems(Yours(root), page.removeprefix("book/results/"))]
