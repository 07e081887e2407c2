"""The privacy ledger: every promise is kept, and no mechanism is without an entry."""

from __future__ import annotations

import ast
import csv
import inspect
import pkgutil
from functools import cache
from pathlib import Path

import pytest

import evolvingdp
from evolvingdp.audit import coverage
from evolvingdp.audit.empirical import auditor
from evolvingdp.audit.empirical.black_boxes import black_boxes
from evolvingdp.audit.ledger import listing
from evolvingdp.audit.ledger.entry import FORMULA, HOW, SLACK, tight, unchanged
from evolvingdp.audit.ledger.listing import entries
from evolvingdp.audit.ledger.pins import PINS
from evolvingdp.book.checkout import params_of
from evolvingdp.continual_mean.per_step import PerStepLaplace
from evolvingdp.core.seeds import stream
from support import ALPHA

ENTRIES = {entry.id: entry for entry in entries()}


@pytest.fixture(scope="module")
def losses(request):
    """What was measured of an entry: by the book of this run, where one is built and has it; else here."""
    here = cache(lambda name: ENTRIES[name].measure())
    if not any("built_book" in getattr(item, "fixturenames", ()) for item in request.session.items):
        return here
    made = request.getfixturevalue("built_book").results / "audit/verified_privacy/results.csv"
    with made.open(newline="") as file:
        ledger = {row["id"]: row for row in csv.DictReader(file) if row["part"] == "ledger"}
    assert list(ledger) == list(ENTRIES)
    book = {name: float(row["measured"]) for name, row in ledger.items() if row["measured"]}
    assert list(book) == list(ENTRIES)[:: params_of("audit/verified_privacy").make().one_in]
    return lambda name: book.get(name) or here(name)


@pytest.mark.parametrize("name", ENTRIES)
def test_the_guarantee_is_kept(name, losses):
    entry, measured = ENTRIES[name], losses(name)
    assert entry.how in HOW
    assert 0 < measured <= entry.promised * (1 + SLACK)
    assert tight(measured, entry.promised) != (name in PINS), f'pin a loose row: "{name}": {measured:.9g} in ledger/pins.py'
    assert unchanged(measured, entry.pinned)


def test_a_formula_names_the_test_of_its_sampler_and_all_else_runs_code():
    formulas = [entry for entry in entries() if entry.how == FORMULA]
    tests = "".join(path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py"))
    assert all(f"def {entry.sampler_test}(" in tests for entry in formulas)
    assert not any(entry.sampler_test for entry in entries() if entry.how != FORMULA)
    assert set(PINS) <= set(ENTRIES)


def test_every_mechanism_and_every_stated_guarantee_has_an_entry():
    assert len(set(coverage.randomizing_classes())) > 15
    assert len(coverage.guaranteeing_modules()) > 15
    assert coverage.without_entry(one for entry in entries() for one in entry.covers) == []
    assert set(coverage.randomizing_classes()) >= coverage.NO_MECHANISM


def test_a_mechanism_without_an_entry_fails_the_build(monkeypatch):
    fewer = tuple(entry for entry in entries() if PerStepLaplace not in entry.covers)
    assert len(fewer) < len(entries())
    monkeypatch.setattr(listing, "entries", lambda: fewer)
    with pytest.raises(LookupError, match=r"must have an entry for .*per_step\.PerStepLaplace"):
        listing.table()


def test_the_table_is_computed_and_names_its_tests(monkeypatch):
    cheap = tuple(ENTRIES[name] for name in ("sign_flip", "above_threshold_renyi", "threshold_monitor_exact_replacement"))
    monkeypatch.setattr(listing, "entries", lambda: cheap)
    monkeypatch.setattr(coverage, "without_entry", lambda covered: [])
    table = listing.table()
    assert table.id.tolist() == [entry.id for entry in cheap]
    assert table.kept.all()
    assert table.unchanged.all()
    assert table.tight.tolist() == [True, False, True]
    assert len(ENTRIES) == len(entries())
    tree = ast.parse(inspect.getsource(inspect.getmodule(test_the_guarantee_is_kept)))
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert {entry.test.split("[")[0] for entry in entries() if entry.how != FORMULA} <= functions


def test_the_library_is_where_it_is_looked_for():
    found = {info.name for info in pkgutil.walk_packages(evolvingdp.__path__) if info.ispkg}
    assert {part for part in coverage.PARTS if "." not in part} < found
    rooms = {f"{part}.{info.name}" for part in found & set(coverage.PARTS) for info in inside(part) if info.ispkg}
    assert {part for part in coverage.PARTS if "." in part} == {room for room in rooms if not room.endswith(".experiments")}


def inside(part: str) -> list[pkgutil.ModuleInfo]:
    return list(pkgutil.iter_modules([f"{evolvingdp.__path__[0]}/{part}"]))


BOXES = {box.entry: box for box in black_boxes()}


@pytest.mark.parametrize("name", BOXES)
def test_no_audit_from_outside_refutes_the_promise_of_its_row(name):
    """A box has the epsilon of its row: with another one the largest bound over the promise was 1.09, or showed nothing."""
    box, entry = BOXES[name], ENTRIES[name]
    bound = auditor.audit(
        box.mechanism, box.inputs, stream(0, "box", name), runs=10_000, delta=entry.delta, confidence=1 - ALPHA
    )
    assert bound.epsilon <= entry.promised


TOO_LITTLE = {"gaussian": 8, "above_threshold_once": 8, "histogram_laplace": 8, "threshold_monitor_exact_replacement": 20}


def audited(box):
    return auditor.audit(
        box.mechanism, box.inputs, stream(0, "box", box.entry), runs=1000, delta=ENTRIES[box.entry].delta,
        confidence=1 - ALPHA,
    )  # fmt: skip


@pytest.mark.parametrize("name", BOXES)
def test_what_is_drawn_is_not_less_private_than_the_laws_say(name):
    assert not audited(BOXES[name]).refutes(ENTRIES[name].promised)


@pytest.mark.parametrize("name", BOXES)
def test_an_audit_refutes_noise_for_a_few_times_the_promise(name):
    """A quarter of the noise is seen from outside, an eighth or a twentieth where the worst outputs are rare."""
    wrong = {box.entry: box for box in black_boxes(TOO_LITTLE.get(name, 4))}
    assert audited(wrong[name]).refutes(ENTRIES[name].promised)
