"""What of a paper is reproduced: its figures, tables and theorems, each with a verdict that is computed.

`book/reproduction/<paper>.yaml` lists `Row`s: the paper's own number for an item, what it states, and the checks that
decide. A check names a number of a result, a claim, a row of the privacy ledger, or a test; `why` says what no number does.
All checks hold: reproduced; some: partly; none: not. What the row states can only lower that. On a page

    ```{reproduction} heavy_hitters
    ```                                   is the table of one paper,
    {reproduced}`heavy_hitters`           its counts in words.
"""

from __future__ import annotations

import csv
import functools
import html
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from docutils import nodes
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole

from evolvingdp.book.checkout import Project, params_of
from evolvingdp.book.provenance import preset_of
from evolvingdp.book.result import Claim, at_least, at_most, in_words, within
from evolvingdp.book.running import MANIFEST, read_manifest

LEDGER = "audit/verified_privacy"
VERDICTS = ("reproduced", "partly", "not", "not attempted")  # from best to worst
WORDS = ("reproduced", "after a listed correction", "in part", "refuted", "not reproduced", "not attempted")
SMALL = "This book was built with smaller presets: runs are fewer or smaller than the paper's in"
Found = tuple[bool | None, str]  # whether a check holds (None: the suite runs it), and what it found in words


class ReproductionError(ValueError):
    """A row that cannot be shown; the message is one line that names the paper, the item and what would work."""


class Check(BaseModel):
    """One piece of evidence.  Exactly one of `value`, `claim`, `ledger`, `test` names it.

    A `value` ("<notebook> <name>") is compared with what is `printed`, within `tolerance`, or with `at_least` or `at_most`;
    `because` says where that bound comes from. A claim ("<notebook>") is the one whose sentence begins with `text`.
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    value: str = ""
    claim: str = ""
    ledger: str = ""
    test: str = ""
    text: str = ""
    label: str = ""
    form: str = ".3g"
    printed: float | None = None
    tolerance: float | None = Field(default=None, gt=0)
    at_least: float | None = None
    at_most: float | None = None
    because: str = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        bounds = sum(bound is not None for bound in (self.printed, self.at_least, self.at_most))
        if sum(map(bool, (self.value, self.claim, self.ledger, self.test))) != 1:
            raise ValueError("a check must name exactly one of value, claim, ledger, test")
        if bool(self.claim) != bool(self.text):
            raise ValueError("claim and text must stand together")
        if bounds != bool(self.value) or (self.printed is None) != (self.tolerance is None):
            raise ValueError("a value, and only a value, must have printed and tolerance, at_least or at_most")
        if bool(self.value) != bool(self.because):
            raise ValueError("a value must say because of what, and only a value")
        return self


class Row(BaseModel):
    """One item of the paper, or several that state the same. `stated` lowers the computed verdict, and never raises it."""

    model_config = ConfigDict(extra="forbid")
    items: tuple[str, ...] = Field(min_length=1)
    part: str = ""
    says: str
    paper: str = ""
    checks: tuple[Check, ...] = ()
    ours: str = ""
    stated: Literal["partly", "not", "not attempted"] | None = None
    why: str = ""
    errata: tuple[str, ...] = ()
    where: str = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.stated and not (self.why or self.errata):
            raise ValueError("a stated verdict must say why")
        if bool(self.checks) == (self.stated == "not attempted"):
            raise ValueError("a row without checks, and no other, must be stated as 'not attempted'")
        return self

    @property
    def name(self) -> str:
        """ "Table 2, Brown", "Lemmas 3.4, 6.8", "Remark 1.2, Theorem 3.8"."""
        numbers: dict[str, list[str]] = {}
        for item in self.items:
            kind, number = item.split()
            numbers.setdefault(kind, []).append(number)
        named = [f"{kind}{'s' if len(listed) > 1 else ''} {', '.join(listed)}" for kind, listed in numbers.items()]
        return ", ".join([*named, self.part] if self.part else named)


Judged = tuple[Row, str, list[Found]]  # a row, its verdict, and what each check found


def read(root: Path, paper: str) -> list[Row]:
    """The rows of book/reproduction/<paper>.yaml.  Raises ReproductionError."""
    try:
        listed, rows = yaml.safe_load((root / "book" / "reproduction" / f"{paper}.yaml").read_text()), []
        for entry in listed:
            rows.append(Row.model_validate(entry))
    except ValidationError as error:
        first = error.errors()[0]
        said = f"{'.'.join(map(str, first['loc']))} {first['msg']}"
        raise ReproductionError(f"{paper}, {entry.get('items')}: {said}") from None
    except (OSError, yaml.YAMLError) as error:
        raise ReproductionError(f"{paper}: no table of what is reproduced: {' '.join(str(error).split())}") from None
    return rows


def judged(root: Path, paper: str) -> list[Judged]:
    """Each row with its verdict and what its checks found.  Raises ReproductionError where a reference leads nowhere."""
    found = []
    for row in read(root, paper):
        try:
            outcomes = [outcome(root, check) for check in row.checks]
        except (OSError, LookupError) as error:
            raise ReproductionError(f"{paper}, {row.name}: {error}") from None
        found.append((row, verdict(row, [holds for holds, _ in outcomes]), outcomes))
    return found


def outcome(root: Path, check: Check) -> Found:
    """Whether `check` holds, and what it found in words; LookupError or OSError where what it names is not there."""
    results = Project(root).results
    if check.test:
        if check.test not in _tests(root):
            raise LookupError(f"there is no test {check.test!r}")
        return None, check.label
    if check.ledger:
        with (results / LEDGER / "results.csv").open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["part"] == "ledger" and row["id"] == check.ledger]
        if len(rows) != 1:
            raise LookupError(f"the privacy ledger has no entry {check.ledger!r}")
        label, entry = check.label or "loss", rows[0]
        if not entry["measured"]:
            return None, f"{label} left to the paper preset and to the tests"
        told = f"{float(entry['measured']):.4g} of {float(entry['promised']):.4g} promised"
        return entry["kept"] == "True", f"{label} {told}{', attained' if entry['tight'] == 'True' else ''}"
    if check.claim:
        stored = json.loads((results / check.claim / "claims.json").read_text())
        found = [claim for claim in stored if claim["claim"].startswith(check.text)]
        if len(found) != 1:
            raise LookupError(f"{check.claim} has {len(found)} claims that begin with {check.text!r}; there must be one")
        value, relation, bound = (found[0][part] for part in ("value", "relation", "bound"))
        keeps = f"{'within ' if isinstance(bound, list) else ''}{in_words(relation, bound, check.form)}"
        return bool(found[0]["holds"]), f"{check.label} {value:{check.form}} ({keeps})".strip()
    claim = compared(root, check)
    bound = "" if check.printed is not None else f" ({in_words(claim.relation, claim.bound, check.form)})"
    return claim.holds, f"{check.label} {claim.value:{check.form}}{bound}".strip()


def compared(root: Path, check: Check) -> Claim:
    """The number that `check` names beside its bound, as a claim."""
    notebook, name = check.value.split()
    values = json.loads((Project(root).results / notebook / "values.json").read_text())
    if name not in values:
        raise LookupError(f"{notebook} has no value {name!r}")
    found = float(values[name])
    if check.printed is not None and check.tolerance is not None:
        return within(name, found, check.printed - check.tolerance, check.printed + check.tolerance)
    return at_most(name, found, check.at_most or 0.0) if check.at_least is None else at_least(name, found, check.at_least)


@functools.cache
def _tests(root: Path) -> set[str]:
    """The test functions of the suite."""
    files = sorted((root / "tests").rglob("test_*.py"))
    return {name for path in files for name in re.findall(r"^def (test_\w+)\(", path.read_text(), re.MULTILINE)}


def verdict(row: Row, outcomes: Sequence[bool | None]) -> str:
    """All measured checks hold: reproduced; some: partly; none: not. What is stated can only be worse.

    A test has no outcome here (None), nor has a row of the ledger that a preset leaves out: it decides alone where nothing
    is measured, and then it holds, or the suite fails.
    """
    if not outcomes:
        return "not attempted"
    measured = [outcome for outcome in outcomes if outcome is not None]
    computed = "reproduced" if all(measured) else "partly" if any(measured) else "not"
    return max(computed, row.stated or computed, key=VERDICTS.index)


def words(row: Row, reached: str, outcomes: Sequence[Found]) -> str:
    """A verdict as the pages count it: errata excuse what the row states, and no check that fails in this build."""
    listed = bool(row.errata) and row.stated == reached
    if reached == "partly":
        return "after a listed correction" if listed and all(holds is not False for holds, _ in outcomes) else "in part"
    if reached == "not":
        return "refuted" if listed else "not reproduced"
    return reached


def counted(found: Sequence[Judged]) -> str:
    """ "6 reproduced, 8 after a listed correction, 2 refuted, 2 not attempted": the verdicts of `found` in full words."""
    named = Counter(words(*one) for one in found)
    return ", ".join(f"{named[name]} {name}" for name in WORDS if named[name])


# The page


def _sources(root: Path, paper: str) -> list[Path]:
    """What the table of `paper` depends on: its rows, and the results that they name."""
    checks = [check for row in read(root, paper) for check in row.checks]
    named = {(check.value or check.claim or (check.ledger and LEDGER)).partition(" ")[0] for check in checks} - {""}
    results = [Project(root).results / notebook / name for notebook in sorted(named) for name in (MANIFEST, "values.json")]
    return [root / "book" / "reproduction" / f"{paper}.yaml", *results]


def _smaller(root: Path, paper: str) -> list[str]:
    """The notebooks behind the table of `paper` whose results are not at the paper's scale."""
    found = []
    for path in _sources(root, paper):
        if path.name == MANIFEST and (manifest := read_manifest(path)):
            notebook = path.parent.relative_to(Project(root).results).as_posix()
            preset, changed = preset_of(params_of(notebook).make(overrides=manifest["params"]))
            found += [notebook] if preset != "paper" or changed else []
    return found


class Reproduced(SphinxRole):
    """The counts of one paper's verdicts."""

    def run(self) -> tuple[Sequence[nodes.Node], Sequence[nodes.system_message]]:  # type: ignore[override]
        root = Path(self.env.srcdir)
        try:
            for path in _sources(root, self.text):
                self.env.note_dependency(str(path))
            return [nodes.Text(counted(judged(root, self.text)))], []
        except ValueError as error:
            return [], [self.inliner.reporter.error(str(error), line=self.lineno)]


class Table(SphinxDirective):
    """The table of one paper: for each item its statement, what is compared, and why the two differ, below each other."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        paper, root = self.arguments[0], Path(self.env.srcdir)
        try:
            found, smaller = judged(root, paper), _smaller(root, paper)
            for path in _sources(root, paper):
                self.env.note_dependency(str(path))
        except ValueError as error:
            raise self.error(str(error)) from None
        listing = ", ".join(f"{{doc}}`{notebook} <results/{notebook}>`" for notebook in smaller)
        note = self.parse_text_to_nodes(f":::{{note}}\n{SMALL} {listing}.\n:::") if smaller else []
        return [*note, self._table(found)]

    def _table(self, found: list[Judged]) -> nodes.table:
        body = nodes.tbody()
        for row, reached, outcomes in found:
            body += nodes.row("", self._cell(f"**{row.name}.** {row.says}", morecols=2), classes=["item"])
            kind = f"verdict-{reached.replace(' ', '-')}"
            badge = nodes.paragraph("", "", nodes.inline(text=reached, classes=["verdict", kind]))
            sides = [self._cell(_listed(_printed(row)), classes=["printed"])]
            sides += [self._cell(_listed(_ours(row, outcomes)), classes=["ours"])]
            body += nodes.row("", *sides, nodes.entry("", badge, classes=["reached"]), classes=["compared"])
            below = self._cell(_reason(row), morecols=2)
            if row.checks:
                below += nodes.raw("", _folded(row), format="html")
            body += nodes.row("", below, classes=["reason"])
        group = nodes.tgroup("", cols=3)
        group += [nodes.colspec(colwidth=width) for width in (38, 42, 20)]
        group += nodes.thead("", nodes.row("", *[self._cell(title) for title in ("it prints", "ours", "verdict")]))
        group += body
        return nodes.table("", group, classes=["reproduction"])

    def _cell(self, text: str, **options: Any) -> nodes.entry:
        return nodes.entry("", *self.parse_text_to_nodes(text), **options)


def _listed(lines: Sequence[str]) -> str:
    """One line as it is, more as a list."""
    return "\n".join(f"- {line}" for line in lines) if len(lines) > 1 else "".join(lines)


def _printed(row: Row) -> list[str]:
    """The paper's column: its words, and each number that ours is compared with."""
    compared = [check for check in row.checks if check.printed is not None]
    numbers = [f"{check.label} {check.printed:,g} ± {check.tolerance:g}".strip() for check in compared]
    return [*([row.paper] if row.paper else []), *numbers]


def _ours(row: Row, outcomes: Sequence[Found]) -> list[str]:
    """Our column: a line for each check that has something to say, marked where it does not hold."""
    lines = [row.ours] if row.ours else []
    lines += [f"{text} **(does not hold)**" if holds is False else text for holds, text in outcomes if text]
    return lines or (["as the tests say"] if outcomes else [])


def _reason(row: Row) -> str:
    """Why the two differ, where a tolerance comes from, the errata, and where to look."""
    because = dict.fromkeys(check.because for check in row.checks if check.because)
    told = [row.why, f"Compared with {'; '.join(because)}." if because else ""]
    return " ".join([*told, *(f"[{erratum}](#{erratum.lower()})" for erratum in row.errata), row.where]).strip()


def commands(row: Row) -> str:
    """What computes the checks of `row` again, a command a line."""
    tests, entries = ([found for check in row.checks if (found := getattr(check, kind))] for kind in ("test", "ledger"))
    notebooks = dict.fromkeys((check.value or check.claim).split()[0] for check in row.checks if check.value or check.claim)
    lines = [f'pytest -k "{" or ".join(tests)}"'] if tests else []
    lines += [f"evolvingdp run {notebook} --preset paper" for notebook in notebooks]
    lines += [f"evolvingdp run {LEDGER} --preset paper  # {', '.join(entries)}"] if entries else []
    return "\n".join(lines)


def _folded(row: Row) -> str:
    """The commands behind a word that opens them; for whoever listens, the word says of which row."""
    name = html.escape(f"commands for {row.name}")
    return f'<details><summary aria-label="{name}">commands</summary><pre>{html.escape(commands(row))}</pre></details>'


def setup(app: Sphinx) -> None:
    app.add_role("reproduced", Reproduced())
    app.add_directive("reproduction", Table)
    app.add_css_file("reproduction.css")
