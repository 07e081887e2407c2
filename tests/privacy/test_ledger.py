"""The privacy ledger: every promise is kept, every mutant is rejected, and no mechanism is without an entry."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil

import pytest

import evolvingdp
from evolvingdp.audit import empirical, ledger
from evolvingdp.audit.black_boxes import black_boxes
from evolvingdp.audit.ledger import HOW, entries, kept
from evolvingdp.core.seeds import stream
from support import ALPHA

ENTRIES = {entry.id: entry for entry in entries()}
PARTS = ("core", "heavy_hitters", "evolving", "continual_mean", "sparse_vector")
RANDOMIZES = {"randomize", "report", "report_all_signs", "collect", "step", "release", "draw", "votes_yes", "draw_hashes"}
NO_MECHANISM = {
    "evolvingdp.core.hashing.MultiplyShift",  # public hash functions
    "evolvingdp.core.noise.Noise",  # a protocol
    "evolvingdp.evolving.heavy_projection.HashSigns",  # public signs
    "evolvingdp.evolving.streams.BitStream",  # data
    "evolvingdp.evolving.count_law.CountLaw",  # data
    "evolvingdp.continual_mean.literal.BinMech",  # the printed lines, to show what they do
}


@pytest.mark.parametrize("name", ENTRIES)
def test_the_guarantee_is_kept(name):
    entry = ENTRIES[name]
    assert entry.how in HOW
    assert 0 < entry.measure() <= entry.promised * (1 + ledger.SLACK)


@pytest.mark.parametrize("name", ENTRIES)
def test_the_mutant_is_rejected(name):
    entry = ENTRIES[name]
    assert entry.mutant
    assert not kept(entry.broken(), entry.promised)


def modules():
    for part in PARTS:
        package = importlib.import_module(f"evolvingdp.{part}")
        for info in pkgutil.iter_modules(package.__path__, f"evolvingdp.{part}."):
            if not info.ispkg:
                yield importlib.import_module(info.name)


def randomizing_classes():
    """Public classes of the library that draw something, or collect what is drawn."""
    for module in modules():
        for name, kind in vars(module).items():
            if inspect.isclass(kind) and kind.__module__ == module.__name__ and not name.startswith("_"):
                methods = {method for method, value in vars(kind).items() if inspect.isfunction(value)}
                if methods & RANDOMIZES:
                    yield f"{module.__name__}.{name}"


def covered():
    return {f"{one.__module__}.{one.__qualname__}" for entry in entries() for one in entry.covers}


def test_every_mechanism_of_the_library_has_an_entry():
    classes = set(randomizing_classes())
    assert len(classes) > 15
    assert classes - NO_MECHANISM - covered() == set()
    assert classes | NO_MECHANISM >= NO_MECHANISM


def test_every_module_that_states_a_guarantee_has_an_entry():
    stated = {module.__name__ for module in modules() if "**Guarantee" in (module.__doc__ or "")}
    assert len(stated) > 15
    assert stated - {name.rsplit(".", 1)[0] for name in covered()} == set()


def test_the_table_is_computed_and_names_its_tests():
    table = ledger.table()
    assert table.id.is_unique
    assert len(table) == len(ENTRIES)
    assert table.kept.all()
    assert table.caught.all()
    functions = {node.name for node in ast.walk(ast.parse(inspect.getsource(inspect.getmodule(covered)))) if
                 isinstance(node, ast.FunctionDef)}  # fmt: skip
    assert set(table.test.str.split("[").str[0]) <= functions


def test_the_library_is_where_it_is_looked_for():
    assert set(PARTS) < {info.name for info in pkgutil.iter_modules(evolvingdp.__path__)}


BOXES = {box.entry: box for box in black_boxes()}


@pytest.mark.parametrize("name", BOXES)
def test_what_is_drawn_is_not_less_private_than_the_laws_say(name):
    box, entry = BOXES[name], ENTRIES[name]
    bound = empirical.audit(
        box.mechanism, box.inputs, stream(0, "box", name), runs=1000, delta=entry.delta, confidence=1 - ALPHA
    )
    assert not bound.refutes(entry.promised)
