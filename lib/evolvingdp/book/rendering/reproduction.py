"""What of a paper is reproduced: its figures, tables and theorems, each with a verdict that is computed.

`book/reproduction/<paper>.yaml` lists `Row`s: the paper's own number for an item, what it states, and the checks that
decide. A check names a number of a result, a claim, a row of the privacy ledger, or a test; `why` says what no number does.
All checks hold: reproduced; some: partly; none: not. What the row states can only lower that. `reproduction_ext` shows it.
"""

from __future__ import annotations

import csv
import functools
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from evolvingdp.book.checkout import Project, params_of
from evolvingdp.book.provenance import preset_of
from evolvingdp.book.result import Claim, at_least, at_most, within
from evolvingdp.book.result import in_words as bound_in_words
from evolvingdp.book.running import MANIFEST, read_manifest

LEDGER = "audit/verified_privacy"
VERDICTS = ("reproduced", "partly", "not", "not attempted")  # from best to worst
Verdict = Literal["reproduced", "partly", "not", "not attempted"]
Found = tuple[bool | None, str]  # whether a check holds, and what it found in words


class ReproductionError(ValueError):
    """A row that cannot be shown; the message is one line that names the paper, the item and what would work."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Check(_Strict):
    """One piece of evidence.  Exactly one of `value`, `claim`, `ledger`, `test` names it.

    A `value` ("<notebook> <name>") is compared with what is `printed`, within `tolerance`, or with `at_least` or `at_most`;
    `because` says where that bound comes from. A claim ("<notebook>") is the one whose sentence begins with `text`.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("value", "claim", "ledger", "test")
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
        given = self.model_dump(exclude_defaults=True)
        if sum(kind in given for kind in self.KINDS) != 1:
            raise ValueError(f"a check must name exactly one of {', '.join(self.KINDS)}, got {given}")
        if bool(self.claim) != bool(self.text):
            raise ValueError(f"claim and text must stand together, got {given}")
        bounds = sum(bound is not None for bound in (self.printed, self.at_least, self.at_most))
        if bounds != bool(self.value) or (self.printed is None) != (self.tolerance is None):
            raise ValueError(f"a value, and only a value, must have printed and tolerance, at_least or at_most, got {given}")
        if bool(self.value) != bool(self.because):
            raise ValueError(f"a value must say because of what, and only a value, got {given}")
        return self


class Row(_Strict):
    """One item of the paper, or several that state the same. `stated` lowers the computed verdict, and never raises it."""

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
        if self.stated and not self.why:
            raise ValueError("a stated verdict must say why")
        if not self.checks and self.stated != "not attempted":
            raise ValueError("a row without checks must be stated as 'not attempted'")
        if self.checks and self.stated == "not attempted":
            raise ValueError("a row with checks cannot be 'not attempted'")
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


def read(root: Path, paper: str) -> tuple[Row, ...]:
    """The rows of book/reproduction/<paper>.yaml.  Raises ReproductionError."""
    try:
        return _rows(paper, (root / "book" / "reproduction" / f"{paper}.yaml").read_text())
    except (OSError, yaml.YAMLError) as error:
        raise ReproductionError(f"{paper}: no table of what is reproduced: {' '.join(str(error).split())}") from None


@functools.cache
def _rows(paper: str, text: str) -> tuple[Row, ...]:
    rows, listed = [], yaml.safe_load(text)
    for entry in listed:
        try:
            rows.append(Row.model_validate(entry))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise ReproductionError(f"{paper}, {entry.get('items')}: {place} {first['msg']}".replace(":  ", ": ")) from None
    return tuple(rows)


def verdict(row: Row, outcomes: Sequence[bool | None]) -> Verdict:
    """All measured checks hold: reproduced; some: partly; none: not. What is stated can only be worse.

    A test has no outcome here (None), nor has a row of the ledger that a preset leaves out: it decides alone where nothing
    is measured, and then it holds, or the suite fails.
    """
    if not outcomes:
        return "not attempted"
    measured = [outcome for outcome in outcomes if outcome is not None]
    computed: Verdict = "reproduced" if all(measured) else "partly" if any(measured) else "not"
    return max(computed, row.stated or computed, key=VERDICTS.index)


class Evidence:
    """Looks up what checks name, in the results and tests below `root`; LookupError where it is not there."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def outcome(self, check: Check) -> Found:
        """Whether `check` holds (None: the suite runs it), and what it found in words."""
        if check.test:
            self.test_file(check.test)
            return None, check.label
        if check.ledger:
            entry = self._ledger()[check.ledger]
            if not entry["measured"]:
                return None, labelled(check.label or "loss", "left to the paper preset and to the tests")
            kept = entry["kept"] == "True"
            found = f"{float(entry['measured']):.4g} of {float(entry['promised']):.4g} promised"
            return kept, labelled(check.label or "loss", f"{found}{', attained' if entry['tight'] == 'True' else ''}")
        if check.claim:
            stored = self.claim(check)
            bound = _plain(stored["relation"], stored["bound"], check.form)
            return bool(stored["holds"]), labelled(check.label, f"{stored['value']:{check.form}} ({bound})")
        claim = self.compared(check)
        return claim.holds, labelled(check.label, format(claim.value, check.form))

    def compared(self, check: Check) -> Claim:
        """The number that `check` names beside its bound, as a claim."""
        notebook, name = check.value.split()
        try:
            found = float(self._json(notebook, "values")[name])
        except KeyError:
            raise LookupError(f"{notebook} has no value {name!r}") from None
        if check.printed is not None and check.tolerance is not None:
            return within(name, found, check.printed - check.tolerance, check.printed + check.tolerance)
        if check.at_least is not None:
            return at_least(name, found, check.at_least)
        return at_most(name, found, check.at_most or 0.0)

    def claim(self, check: Check) -> dict[str, Any]:
        """The one claim of the notebook whose sentence begins with the text."""
        found = [claim for claim in self._json(check.claim, "claims") if claim["claim"].startswith(check.text)]
        if len(found) != 1:
            raise LookupError(f"{check.claim} has {len(found)} claims that begin with {check.text!r}; there must be one")
        return dict(found[0])

    def test_file(self, name: str) -> str:
        """The file of the test function `name`, below the root."""
        try:
            return _tests(self.root)[name]
        except KeyError:
            raise LookupError(f"there is no test {name!r}") from None

    def files(self, rows: Sequence[Row]) -> list[Path]:
        """What the verdicts of `rows` depend on."""
        named = {check.value or check.claim or (check.ledger and LEDGER) for row in rows for check in row.checks}
        folders = [Project(self.root).results / notebook for notebook in sorted({name.split()[0] for name in named if name})]
        return [folder / name for folder in folders for name in ("values.json", "claims.json", "results.csv", MANIFEST)]

    def smaller(self, rows: Sequence[Row]) -> list[str]:
        """The notebooks behind `rows` whose results are not at the paper's scale."""
        found = []
        for path in self.files(rows):
            manifest = read_manifest(path) if path.name == MANIFEST else {}
            if manifest:
                notebook = path.parent.relative_to(Project(self.root).results).as_posix()
                preset, changed = preset_of(params_of(notebook).make(overrides=manifest["params"]))
                found += [notebook] if preset != "paper" or changed else []
        return found

    def _json(self, notebook: str, name: str) -> Any:
        try:
            return json.loads((Project(self.root).results / notebook / f"{name}.json").read_text())
        except OSError:
            raise LookupError(f"{notebook} has no {name}.json") from None

    def _ledger(self) -> dict[str, dict[str, str]]:
        try:
            with (Project(self.root).results / LEDGER / "results.csv").open(newline="") as file:
                return _Ledger({row["id"]: row for row in csv.DictReader(file) if row["part"] == "ledger"})
        except OSError:
            raise LookupError(f"{LEDGER} has no results.csv") from None


class _Ledger(dict[str, dict[str, str]]):
    def __missing__(self, key: str) -> dict[str, str]:
        raise LookupError(f"the privacy ledger has no entry {key!r}")


@functools.cache
def _tests(root: Path) -> dict[str, str]:
    """Where each test function of the suite stands."""
    return {
        name: path.relative_to(root).as_posix()
        for path in sorted((root / "tests").rglob("test_*.py"))
        for name in re.findall(r"^def (test_\w+)\(", path.read_text(), re.MULTILINE)
    }


Judged = tuple[Row, Verdict, list[Found]]  # a row, its verdict, and what each check found


def judged(root: Path, paper: str) -> list[Judged]:
    """Each row with its verdict and what its checks found.  Raises ReproductionError where a reference leads nowhere."""
    evidence, found = Evidence(root), []
    for row in read(root, paper):
        try:
            outcomes = [evidence.outcome(check) for check in row.checks]
        except LookupError as error:
            raise ReproductionError(f"{paper}, {row.name}: {error.args[0]}") from None
        found.append((row, verdict(row, [holds for holds, _ in outcomes]), outcomes))
    return found


WORDS = ("reproduced", "after a listed correction", "in part", "refuted", "not reproduced", "not attempted")


def in_words(found: Sequence[Judged]) -> str:
    """ "6 reproduced, 8 after a listed correction, 2 refuted, 2 not attempted": the verdicts of `found` in full words."""
    named = Counter(words(*one) for one in found)
    return ", ".join(f"{named[name]} {name}" for name in WORDS if named[name])


def words(row: Row, reached: Verdict, outcomes: Sequence[Found]) -> str:
    """A verdict as the pages count it: errata excuse what the row states, and no check that fails in this build."""
    listed = bool(row.errata) and row.stated == reached
    if reached == "partly":
        return "after a listed correction" if listed and all(holds is not False for holds, _ in outcomes) else "in part"
    if reached == "not":
        return "refuted" if listed else "not reproduced"
    return reached


def labelled(label: str, text: str) -> str:
    return f"{label} {text}" if label else text


def _plain(relation: str, bound: Any, form: str) -> str:
    return f"{'within ' if isinstance(bound, list) else ''}{bound_in_words(relation, bound, form)}"
