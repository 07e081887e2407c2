"""The tables of what is reproduced, in the book.

```{reproduction} heavy_hitters
```                                   the table of one paper
{reproduced}`heavy_hitters`           its counts in words
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole

from evolvingdp.book.rendering import reproduction
from evolvingdp.book.rendering.reproduction import Evidence, Found, Judged, ReproductionError, Row, in_words
from evolvingdp.core.checks import ParameterError

SMALL = (
    "This book was built with smaller presets, so that numbers and verdicts are of fewer or smaller runs than the paper's:"
)


class Reproduced(SphinxRole):
    """The counts of one paper's verdicts."""

    def run(self) -> tuple[Sequence[nodes.Node], Sequence[nodes.system_message]]:  # type: ignore[override]
        root = Path(self.env.srcdir)
        try:
            for path in _sources(root, self.text):
                self.env.note_dependency(str(path))
            return [nodes.Text(in_words(reproduction.judged(root, self.text)))], []
        except (ReproductionError, ParameterError) as error:
            return [], [self.inliner.reporter.error(str(error), line=self.lineno)]


class Table(SphinxDirective):
    """The table of one paper: for each item its statement, what is compared, and why the two differ, below each other."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        paper, root = self.arguments[0], Path(self.env.srcdir)
        try:
            found = reproduction.judged(root, paper)
            for path in _sources(root, paper):
                self.env.note_dependency(str(path))
            smaller = Evidence(root).smaller([row for row, _, _ in found])
        except (ReproductionError, ParameterError) as error:
            raise self.error(str(error)) from None
        lines = [f"**{len(found)} rows: {in_words(found)}.**"]
        if smaller:
            lines.append(f"\n:::{{note}}\n{SMALL} {', '.join(f'{{doc}}`results/{notebook}`' for notebook in smaller)}.\n:::")
        return [*self.parse_text_to_nodes("\n".join(lines)), self._table(found)]

    def _table(self, found: list[Judged]) -> nodes.table:
        body = nodes.tbody()
        for row, reached, outcomes in found:
            body += nodes.row("", self._cell(f"**{row.name}.** {row.says}", morecols=2), classes=["item"])
            kind = f"verdict-{reached.replace(' ', '-')}"
            badge = nodes.paragraph("", "", nodes.inline(text=reached, classes=["verdict", kind]))
            compared = [
                self._cell(listed(printed(row)), classes=["printed"]),
                self._cell(listed(ours(row, outcomes)), classes=["ours"]),
            ]
            body += nodes.row("", *compared, nodes.entry("", badge, classes=["reached"]), classes=["compared"])
            if text := reason(row):
                body += nodes.row("", self._cell(text, morecols=2), classes=["reason"])
        group = nodes.tgroup("", cols=3)
        group += [nodes.colspec(colwidth=width) for width in (38, 42, 20)]
        group += nodes.thead("", nodes.row("", *[self._cell(title) for title in ("it prints", "ours", "verdict")]))
        group += body
        return nodes.table("", group, classes=["reproduction"])

    def _cell(self, text: str, **options: Any) -> nodes.entry:
        return nodes.entry("", *self.parse_text_to_nodes(text), **options)


def _sources(root: Path, paper: str) -> list[Path]:
    return [root / "book" / "reproduction" / f"{paper}.yaml", *Evidence(root).files(reproduction.read(root, paper))]


def listed(lines: Sequence[str]) -> str:
    """One line as it is, more as a list."""
    return "\n".join(f"- {line}" for line in lines) if len(lines) > 1 else "".join(lines)


def printed(row: Row) -> list[str]:
    """The paper's column: its words, and each number that ours is compared with."""
    numbers = [
        reproduction.labelled(check.label, f"{check.printed:,g} ± {check.tolerance:g}")
        for check in row.checks
        if check.printed is not None
    ]
    return [*([row.paper] if row.paper else []), *numbers]


def ours(row: Row, outcomes: Sequence[Found]) -> list[str]:
    """Our column: a line for each check that has something to say, marked where it does not hold."""
    lines = [row.ours] if row.ours else []
    lines += [f"{text} **(does not hold)**" if holds is False else text for holds, text in outcomes if text]
    return lines or (["as the tests say"] if outcomes else [])


def reason(row: Row) -> str:
    """Why the two differ, where a tolerance comes from, the errata, where to look, and the tests that decide."""
    parts = [row.why] if row.why else []
    if because := list(dict.fromkeys(check.because for check in row.checks if check.because)):
        parts.append(f"Compared with {'; '.join(because)}.")
    if row.errata:
        parts.append(f"Errata: {', '.join(f'[{erratum}](#{erratum.lower()})' for erratum in row.errata)}.")
    if row.where:
        parts.append(f"See {row.where}.")
    if tests := [check.test for check in row.checks if check.test]:
        parts.append(f"Test{'s' if len(tests) > 1 else ''}: {', '.join(f'`{test}`' for test in tests)}.")
    if entries := [check.ledger for check in row.checks if check.ledger]:
        parts.append(f"Ledger ({{doc}}`privacy`): {', '.join(f'`{entry}`' for entry in entries)}.")
    return " ".join(parts)


def setup(app: Sphinx) -> None:
    app.add_role("reproduced", Reproduced())
    app.add_directive("reproduction", Table)
    app.add_css_file("reproduction.css")
