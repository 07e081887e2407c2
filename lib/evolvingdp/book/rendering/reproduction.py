"""What of a paper is reproduced: its figures, tables and theorems, each with a verdict that is computed.

`book/reproduction/<paper>.yaml` lists `Row`s: the paper's own number for an item, what it states, and the checks that
decide: a claim of a notebook, a relation of its numbers, a row of the privacy ledger, or a test; `why` says what no number
does. All checks hold: reproduced; some: partly; none: not. What the row states can only lower that. On a page

    ```{reproduction} heavy_hitters
    ```                                   shows the items of one paper (unnamed: which results are smaller than the papers'),
    {reproduced}`heavy_hitters`           their counts in words.
"""

from __future__ import annotations

import csv
import functools
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

import yaml
from docutils import nodes
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole

from evolvingdp.book.checkout import Project, params_of
from evolvingdp.book.labels import fenced
from evolvingdp.book.numerals import readable
from evolvingdp.book.provenance import preset_of
from evolvingdp.book.result import Claim, in_words, read_claims, written
from evolvingdp.book.running import MANIFEST, read_manifest

LEDGER = "audit/verified_privacy"
VERDICTS = ("reproduced", "partly", "not", "not attempted")  # from best to worst
WORDS = ("reproduced", "after a listed correction", "in part", "refuted", "not reproduced", "not attempted")
SMALL = "This book was built with smaller presets: numbers and verdicts are of fewer or smaller runs than the papers':"
Found = tuple[bool | None, str]  # whether a check holds (None: the suite runs it), and what it found in words


class ReproductionError(ValueError):
    """A row that cannot be shown; the message is one line that names the paper, the item and what would work."""


class Check(BaseModel):
    """One piece of evidence.  Exactly one of `claim`, `holds`, `ledger`, `test` names it.

    A `claim` ("<notebook>") is the one whose sentence begins with `text`; what `holds` ("<notebook>: low <= name <= high")
    is a relation of the notebook's values, and `because` says where its bounds come from.
    """

    model_config = ConfigDict(extra="forbid")
    claim: str = ""
    holds: str = Field(default="", pattern=r"^(\w+/\w+: .+)?$")
    ledger: str = ""
    test: str = ""
    text: str = ""
    label: str = ""
    form: str = ".3g"
    because: str = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if sum(map(bool, (self.claim, self.holds, self.ledger, self.test))) != 1:
            raise ValueError("a check must name exactly one of claim, holds, ledger, test")
        if bool(self.claim) != bool(self.text):
            raise ValueError("claim and text must stand together")
        if bool(self.holds) != bool(self.because):
            raise ValueError("what holds, and nothing else, must say because of what its bounds are so")
        return self

    @property
    def notebook(self) -> str:
        return self.claim or self.holds.partition(":")[0] or (LEDGER if self.ledger else "")


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
        except (OSError, LookupError, ValueError) as error:
            raise ReproductionError(f"{paper}, {row.name}: {error}") from None
        found.append((row, verdict(row, [holds for holds, _ in outcomes]), outcomes))
    return found


def outcome(root: Path, check: Check) -> Found:
    """Whether `check` holds, and what it found in words; raises LookupError, ValueError or OSError where what
    it names is not there."""
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
            return None, f"{label} left to the paper preset and tests"
        told = readable(f"{float(entry['measured']):.4g} of {float(entry['promised']):.4g} promised")
        return entry["kept"] == "True", f"{label} {told}{', attained' if entry['tight'] == 'True' else ''}"
    if check.claim:
        stored = json.loads((results / check.claim / "claims.json").read_text())
        found = [claim for claim in stored if claim["claim"].startswith(check.text)]
        if len(found) != 1:
            raise LookupError(f"{check.claim} has {len(found)} claims that begin with {check.text!r}; there must be one")
        bound = tuple(found[0]["bound"]) if found[0]["relation"] == "within" else found[0]["bound"]
        claim = Claim(check.text, found[0]["value"], found[0]["relation"], bound)
    else:
        values = json.loads((results / check.notebook / "values.json").read_text())
        (claim,) = read_claims(f"{check.holds.partition(': ')[2]}  {check.holds}", values)
    told = f"{written(claim.value, check.form)} ({in_words(claim.relation, claim.bound, check.form)})"
    return claim.holds, f"{check.label} {readable(told)}".strip()


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


def page(root: Path, paper: str) -> str:
    """The items of `paper` as MyST, a card each: its statement, what is compared, and why the two differ."""
    return "\n\n".join(_card(*one) for one in judged(root, paper))


def note(root: Path) -> str:
    """What says, once for all papers, which results are not at the paper's scale; nothing where all are."""
    rows = [row for path in sorted((root / "book" / "reproduction").glob("*.yaml")) for row in read(root, path.stem)]
    smaller = [f"{{doc}}`{notebook} <results/{notebook}>`" for notebook in _smaller(root, rows)]
    return f":::{{note}}\n{SMALL} {', '.join(smaller)}.\n:::" if smaller else ""


def _smaller(root: Path, rows: Sequence[Row]) -> list[str]:
    """The notebooks behind `rows` whose results are not at the paper's scale."""
    found = []
    for notebook in sorted({check.notebook for row in rows for check in row.checks} - {""}):
        manifest = read_manifest(Project(root).results / notebook / MANIFEST)
        preset, changed = preset_of(params_of(notebook).make(overrides=manifest["params"])) if manifest else ("paper", False)
        found += [notebook] if preset != "paper" or changed else []
    return found


def _card(row: Row, reached: str, outcomes: Sequence[Found]) -> str:
    ours = [f"{text} **(does not hold)**" if holds is False else text for holds, text in outcomes if text]
    ours = [row.ours] * bool(row.ours) + ours or ["as the tests say"] * bool(outcomes)
    because = "; ".join(dict.fromkeys(check.because for check in row.checks if check.because))
    places = [*(f"[{erratum}](#{erratum.lower()})" for erratum in row.errata), row.where]
    said = [
        f"**{row.name}** [{reached}]{{.verdict .verdict-{reached.replace(' ', '-')}}} {row.says}",
        f"*It prints:* {row.paper}" if row.paper else "",
        "\n".join(
            ["*Ours:*", "", *(f"- {line}" for line in ours)] if len(ours) > 1 else [f"*Ours:* {line}" for line in ours]
        ),
        " ".join(filter(None, [row.why, f"Bounds: {because}." if because else "", ", ".join(filter(None, places))])),
        f":::{{dropdown}} Commands\n{fenced(commands(row), 'bash')}\n:::" if row.checks else "",
    ]
    return "\n\n".join([":::::{card}", *filter(None, said), ":::::"])


def commands(row: Row) -> str:
    """What computes the checks of `row` again, a command a line."""
    tests, entries = ([found for check in row.checks if (found := getattr(check, kind))] for kind in ("test", "ledger"))
    notebooks = dict.fromkeys(check.notebook for check in row.checks if check.claim or check.holds)
    lines = [f'pytest -k "{" or ".join(tests)}"'] if tests else []
    lines += [f"evolvingdp run {notebook} --preset paper" for notebook in notebooks]
    lines += [f"evolvingdp run {LEDGER} --preset paper  # {', '.join(entries)}"] if entries else []
    return "\n".join(lines)


class Reproduced(SphinxRole):
    """The counts of one paper's verdicts."""

    def run(self) -> tuple[Sequence[nodes.Node], Sequence[nodes.system_message]]:  # type: ignore[override]
        self.env.note_reread()  # no result is one of the page's files
        try:
            return [nodes.Text(counted(judged(Path(self.env.srcdir), self.text)))], []
        except ValueError as error:
            return [], [self.inliner.reporter.error(str(error), line=self.lineno)]


class Items(SphinxDirective):
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        root = Path(self.env.srcdir)
        try:
            return self.parse_text_to_nodes(page(root, self.arguments[0]) if self.arguments else note(root))
        except ValueError as error:
            raise self.error(str(error)) from None


def setup(app: Sphinx) -> None:
    app.add_role("reproduced", Reproduced())
    app.add_directive("reproduction", Items)
