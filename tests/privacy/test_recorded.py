"""The record of what mechanisms return: complete, as the code is, and sharp enough to show a change."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import io
import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from types import FunctionType

import ledger_mutants
import numpy as np
import pandas as pd
import pytest
import record
from scipy.stats import binomtest

from evolvingdp.audit import coverage
from evolvingdp.audit.ledger.mutant import Mutant, running
from evolvingdp.audit.recorded import fingerprints, listing
from evolvingdp.audit.recorded.fingerprints import FINGERPRINTS
from evolvingdp.audit.recorded.scene import fingerprint, outcome, same
from support import REPOSITORY

SCENES = {name: scene for _, name, scene in listing.scenes()}

OVER_BLOCKS = re.compile(r"blocks\(|chunks|_parts\(|range\(.+,.+,.+\)")  # and what else has steps


class Noting(ast.NodeTransformer):
    """Every function notes at its start that it has run, by the line where its code begins; and loops over blocks their
    turns, by the line."""

    def __init__(self):
        self.loops = []

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        begins = min(one.lineno for one in (node, *node.decorator_list))
        node.body.insert(0, ast.parse(f"RAN.add({begins})").body[0])
        return node

    def visit_For(self, node):
        self.generic_visit(node)
        if OVER_BLOCKS.search(ast.unparse(node.iter)):
            self.loops.append(node.iter.lineno)
            node.iter = ast.Call(ast.Name("TURNED", ast.Load()), [ast.Constant(node.iter.lineno), node.iter], [])
        return node

    def visit_comprehension(self, node):
        return self.visit_For(node)


def counting(most):
    def turned(line, loop):
        for turn, each in enumerate(loop, 1):
            most[line] = max(turn, most.get(line, 0))
            yield each

    return turned


@pytest.fixture(scope="module")
def played():
    """The table of all scenes, where functions begin that they ran, and how often they went through loops over blocks: also
    what another test had computed before, and caches hold. Functions that tell by themselves are quicker than a profile."""
    ran, turns = {}, {}
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patched:
        for module in coverage.modules():
            patched.setattr(module, "RAN", ran.setdefault(module.__name__, set()), raising=False)
            if list(functions(module)):
                noting = Noting()
                noted = ast.fix_missing_locations(noting.visit(ast.parse(inspect.getsource(module))))
                most = turns.setdefault(module.__name__, dict.fromkeys(noting.loops, 0))
                patched.setattr(module, "TURNED", counting(most), raising=False)
                stack.enter_context(running(module, noted))
        table = listing.table()
    return table, ran, turns


def test_every_scene_returns_what_is_recorded(played):
    table, *_ = played
    assert table[table.recorded != listing.AS_RECORDED].id.tolist() == [], "look at what has changed, then: make record"
    assert len(table) == len(FINGERPRINTS) == len(SCENES)
    assert (table.outputs > 0).all()


def functions(module):
    """All functions of a module and of its classes, properties too."""
    for value in vars(module).values():
        if getattr(value, "__module__", "") != module.__name__:
            continue
        for inner in vars(value).values() if isinstance(value, type) else [value]:
            inner = inner.fget if isinstance(inner, property) else getattr(inner, "__func__", inner)
            inner = getattr(inner, "__wrapped__", inner)
            if isinstance(inner, FunctionType) and inner.__code__.co_filename == module.__file__:
                yield inner


# corpora, which a record must not need; what runs on import; and what has no body
NO_MECHANISM = (
    "core.brown.", "core.public.", "core.tables.", "core.checks.plain", "core.hashing.HashFamily.", "core.noise.Noise.",
    "continual_mean.sums.toeplitz.Factorization.", "continual_mean.sums.toeplitz.Filters.",
    "continual_mean.sums.trees.Ahead.more", "heavy_hitters.streams.brown_", "sparse_vector.streams.general.brown_stream",
)  # fmt: skip


def test_no_function_of_a_mechanism_is_left_out(played):
    _, ran, _ = played
    every = {f"{each.__module__}.{each.__qualname__}": each for module in coverage.modules() for each in functions(module)}
    assert len(every) > 900
    left_out = [
        name.removeprefix("evolvingdp.")
        for name, each in every.items()
        if each.__code__.co_firstlineno not in ran[each.__module__]
    ]
    assert [name for name in left_out if not name.startswith(NO_MECHANISM)] == []


def test_no_loop_over_blocks_ends_with_the_first(played):
    """As those of 65,536 users did, until blocks were made small: what is drawn anew for each shows in the second."""
    *_, turns = played
    assert sum(map(len, turns.values())) > 40
    once = [f"{name}:{line}" for name, most in turns.items() for line, turned in most.items() if turned < 2]
    assert [where for where in once if not where.removeprefix("evolvingdp.").startswith(NO_MECHANISM)] == []


UNSEEN = REPOSITORY / "benchmarks" / "ledger_mutants_held_out_fifth.json"
# none of these was noticed by a row of the ledger when somebody who had not seen it made them
UNNOTICED_BY_ROWS = {
    "flip computed as one minus keep": ["core"],
    "far outcomes left out from 3.5 deviations on, not 11": ["heavy_hitters.rivals"],
    "a crew's votes forgotten from epoch to epoch": ["evolving.rivals"],
    "restarted tree keeps the total of finished ones": ["continual_mean.means"],
    "weights told with a second draw of noise": ["sparse_vector.rivals"],
}


@pytest.mark.parametrize("mistake", UNNOTICED_BY_ROWS)
def test_a_change_that_no_row_notices_shows(mistake):
    (made,) = [case for case in json.loads(UNSEEN.read_text()) if case["mistake"] == mistake]
    with Mutant(made["file"], made["old"], made["new"]).applied():
        assert listing.first_change(UNNOTICED_BY_ROWS[mistake])


def test_a_change_that_changes_nothing_is_not_noticed_in_a_copy_of_the_library(tmp_path):
    harmless = {"file": "core/olh.py", "old": "_CHUNK = 1 << 16", "new": "_CHUNK = (1 << 16)"}
    ledger_mutants.changed_copy(harmless, tmp_path)
    asked = (
        "from evolvingdp.audit.recorded import listing\n"
        "print(listing.first_change(['heavy_hitters.rival_edges', 'dated_streams']))"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", asked], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_the_page_s_table_of_unseen_mistakes_is_what_their_lists_gave():
    shown = (ledger_mutants.RESULTS / "ledger_mutants_held_out_lists.csv").read_text()
    assert shown == ledger_mutants.held_out().to_csv(index=False)
    told = pd.read_csv(io.StringIO(shown))
    lists = [json.loads((ledger_mutants.HERE / f"{name}.json").read_text()) for name in ledger_mutants.LISTS[1:]]
    assert told.mistakes.tolist() == [len(cases) for cases in lists]
    assert told.noticed.tolist()[-2:] == [58, 60]
    for noticed, least in zip((58, 60), told["at least (%)"].tolist()[-2:], strict=True):
        assert binomtest(noticed, 60).proportion_ci(0.9).low == pytest.approx(least / 100, abs=5e-4)


def test_of_the_eighth_list_as_many_mistakes_are_new_as_the_page_says():
    def sources(name):
        cases = json.loads((ledger_mutants.HERE / f"{name}.json").read_text())
        return {(case["file"], Mutant(case["file"], case["old"], case["new"]).source()) for case in cases}

    *earlier, last = map(sources, ledger_mutants.LISTS)
    new = last - set.union(*earlier)
    assert (len(last), len(new)) == (60, 28)
    assert binomtest(28, 28).proportion_ci(0.9).low == pytest.approx(0.899, abs=5e-4)
    assert "32 of its 60 mistakes" in (page := (REPOSITORY / "book" / "privacy.md").read_text())
    assert "of the other 28 none was missed, which shows at least 89.9 %" in page


def of(*outputs):
    return fingerprint("x", lambda rng: outputs)


@dataclasses.dataclass
class Pair:
    left: int
    right: float


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1.0, 1.000001),
        (1e-7, 1.01e-7),
        ([1.0, 2.0], [2.0, 1.0]),
        ([1.0, 2.0], [1.0, 2.0, 0.0]),
        (1, 1.0),
        (1, True),
        (1, 2),
        ("a", "b"),
        (float("nan"), 0.0),
        (float("inf"), -float("inf")),
        (None, "nothing"),
        ({"a": 1}, {"b": 1}),
        ({1, 2}, {1, 3}),
        (Pair(1, 2.0), Pair(1, 2.1)),
        (np.array([1, 2]), np.array([[1, 2]])),
        (np.array(2**63, dtype=np.uint64), np.array(2**63 + 1, dtype=np.uint64)),
        (np.array(["a", None], dtype=object), np.array(["a", "b"], dtype=object)),
        (pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1.0]})),
        (pd.Series([1, 2], index=[0, 1]), pd.Series([1, 2], index=[0, 2])),
        (2**80, 2**80 + 1),
        (outcome(float, "1"), outcome(float, "one")),
    ],
    ids=str,
)
def test_what_differs_has_another_fingerprint(one, other):
    assert not same(of(one), of(other))
    assert same(of(one), of(one))
    assert not same(of(0, one), of(0))


def test_the_last_digits_are_the_machine_s():
    values = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.arange(-5, 5).repeat(100)
    assert same(of(values), of(values * (1 + 1e-14)))
    assert not same(of(values), of(np.append(values[:-1], values[-1] * 1.001)))


def test_a_scene_has_a_seed_of_its_own():
    draws = fingerprint("x", lambda rng: [rng.random(5)])
    assert same(draws, fingerprint("x", lambda rng: [rng.random(5)]))
    assert not same(draws, fingerprint("y", lambda rng: [rng.random(5)]))


def test_a_record_names_what_has_changed_and_keeps_the_rest(tmp_path, monkeypatch, capsys):
    target = tmp_path / "fingerprints.py"
    core = list(listing.scenes(["core"]))
    monkeypatch.setattr(record, "scenes", lambda: core)
    monkeypatch.setattr(fingerprints, "__file__", str(target))
    known = {name: FINGERPRINTS[name] for _, name, _ in core}
    first, second = list(known)[:2]
    wrong = {first: known[first]._replace(exact="0" * 16), "old": known[first]} | {
        name: known[name] for name in known if name not in (first, second)
    }
    monkeypatch.setattr(fingerprints, "FINGERPRINTS", wrong)
    record.main()
    assert capsys.readouterr().out.splitlines() == [f"{first}: changed", f"{second}: new", "old: gone"]
    space: dict[str, object] = {}
    exec(target.read_text(), space)
    assert space["FINGERPRINTS"] == known
