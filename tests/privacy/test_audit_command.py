"""`evolvingdp audit`: a reader's ten lines, audited from the command line."""

from __future__ import annotations

import importlib.util
import json
import sys

import pytest
from click.testing import CliRunner

from evolvingdp.audit.empirical import auditor, features
from evolvingdp.book.cli import main
from support import ALPHA

MECHANISM = '''
"""A count with Laplace noise, right and wrong."""

import os
import random

import pandas as pd


def release(count, rng):
    return count + rng.laplace(0.0, 1.0)


def careless(count, rng):
    return count + rng.laplace(0.0, 0.5)


def pairs(count, rng):
    return [count + rng.laplace(0.0, 0.5), rng.random()]


def broken(count, rng):
    raise ValueError("count must be\\na table")


def picky(count, rng):
    if count == 1:
        raise IndexError("no row")
    return rng.random()


def rarely(count, rng):
    if rng.random() < 0.01:
        raise RuntimeError("overflow")
    return count + rng.laplace(0.0, 1.0)


def missing(count, rng):
    return count.rows


def leaves(count, rng):
    raise SystemExit(0)


def leaves_for_one(count, rng):
    if count:
        raise SystemExit(0)
    return rng.random()


def ends(count, rng):
    os._exit(1)


def forks(count, rng):
    if not (child := os.fork()):
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def total(row, rng):
    return sum(row) + rng.laplace(0.0, 1.0) * (0.2 if row[1] else 1.0)


def nothing(output):
    return 0


def no_statistic(output):
    return {}[output]


def integers(count, rng):
    return int(count + rng.geometric(0.6) - rng.geometric(0.6))


def alone(data):
    return sum(data) + random.gauss(0, 1)


def constant(count, rng):
    return 0


def deep(count, rng):
    out = count
    for _ in range(100_000):
        out = [out]
    return out


def generator(count, rng):
    return (one for one in (count, 1))


def opaque(count, rng):
    return type("Table", (), {"count": count})()


def itself(count, rng):
    output = [count]
    output.append({"more": output})
    return output


def token(count, rng):
    return rng.bytes(8).hex(), count


def of_three(count, rows, columns):
    return count


def first_of(output):
    return next(output) if hasattr(output, "__next__") else output.count


def frame(count, rng):
    return pd.DataFrame({"count": [count + rng.laplace(0.0, 0.1), 1.0]})


number = 3
'''


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "my_mechanism.py").write_text(MECHANISM)
    for name, text in {"syntax": "def f(:", "divides": "1 / 0", "exits": "import sys\nsys.exit(0)"}.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("my_mechanism", None)


def audit(*arguments):
    done = CliRunner().invoke(main, ["audit", *arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done


@pytest.mark.parametrize("target", ["my_mechanism:release", "my_mechanism.py:release"])
def test_a_private_mechanism_is_not_refuted(here, target):
    done = audit(target, "--inputs", "0, 1", "--epsilon", "1", "--confidence", str(1 - ALPHA))
    assert done.exit_code == 0
    assert 0.7 < float(done.stdout.split()[2].rstrip(",")) <= 1
    assert f"{1 - ALPHA} confidence: of 20000 runs each, " in done.stdout
    assert "not refuted, which proves nothing" in done.stdout


def test_too_little_noise_is_refuted_with_exit_code_1(here):
    done = audit("my_mechanism:careless", "--inputs", "[0, 1]", "--epsilon", "1", "--runs", "4000", "--seed", "1")
    assert done.exit_code == 1
    assert "refuted: my_mechanism:careless is not 1-differentially private\n" in done.stdout
    assert done.stdout.startswith("epsilon >= 1.")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--statistic", "my_mechanism:no_statistic"],
            "statistic my_mechanism:no_statistic must take every output, and raises KeyError",
        ),
        (["--json", "absent/report.json"], "json must be a file in a folder that can be written"),
        (["--json", "loop"], "json must be a file in a folder that can be written"),
        (["--json", "/proc/report.json"], "json must be a file in a folder that can be written"),
        (["--runs", "200"], "--runs may be given once, got it 2 times"),
    ],
)
def test_what_is_no_verdict_never_ends_with_the_code_of_one(here, arguments, said):
    """Each of these ended in a traceback, whose code is that of a refuted promise."""
    (here / "loop").symlink_to("loop")
    done = audit("my_mechanism:release", "--inputs", "0, 1", "--epsilon", "1", "--runs", "100", *arguments)
    assert done.exit_code == 2
    assert said in done.output


@pytest.mark.parametrize(("raised", "code"), [(KeyboardInterrupt(), 130), (MemoryError("too large"), 3)])
def test_an_audit_that_is_stopped_or_fails_has_no_verdict(here, monkeypatch, raised, code):
    def fails(*_, **__):
        raise raised

    monkeypatch.setattr(auditor, "audit", fails)
    assert audit("my_mechanism:careless", "--inputs", "0, 1", "--epsilon", "1").exit_code == code


def test_a_file_or_a_mechanism_that_raises_keyboardinterrupt_is_one_line(here):
    (here / "stops.py").write_text("raise KeyboardInterrupt\n")
    done = audit("stops.py:f", "--inputs", "0, 1")
    assert (done.exit_code, done.output) == (2, "Error: mechanism 'stops.py:f' cannot be imported: KeyboardInterrupt\n")
    (here / "later.py").write_text("def f(value, rng):\n    raise KeyboardInterrupt\n")
    done = audit("later.py:f", "--inputs", "0, 1", "--runs", "100")
    assert (done.exit_code, done.output.count("\n")) == (3, 1)
    assert "later.py:f fails in every run: KeyboardInterrupt, for 0" in done.output


def test_without_scikit_learn_an_audit_goes_on_and_says_what_it_lacks(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: None)
    done = audit("my_mechanism:pairs", "--inputs", "0, 1", "--epsilon", "1", "--runs", "2000")
    assert done.exit_code == 1
    assert "scikit-learn is not installed" in done.output


def test_without_a_promise_the_bound_is_all_that_is_said(here):
    done = audit("my_mechanism:careless", "--inputs", "0, 1, 2", "--delta", "0.01", "--runs", "2000")
    assert done.exit_code == 0
    assert done.stdout.count("\n") == 1
    assert "at delta = 0.01" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["my_mechanism", "--inputs", "0, 1"], "mechanism must be written as module:function or file.py:function"),
        (["no_such_module:f", "--inputs", "0, 1"], "cannot be imported: No module named 'no_such_module'"),
        (["absent.py:f", "--inputs", "0, 1"], "cannot be imported"),
        (["my_mechanism:number", "--inputs", "0, 1"], "has none named 'number'"),
        (["my_mechanism:release", "--inputs", "0"], "inputs must be two neighbouring inputs or more"),
        (["my_mechanism:alone", "--inputs", "[[]]"], "or one set of at most 1000 data, such as '[(3, 1, 4)]', got '[[]]'"),
        (
            ["my_mechanism:of_three", "--inputs", "0, 1"],
            "mechanism must take (input, rng), or (input) alone, got (count, rows, ",
        ),
        (["my_mechanism:generator", "--inputs", "0, 1"], "got a generator, which can be read once"),
        (["my_mechanism:opaque", "--inputs", "0, 1"], "got a Table; a statistic can make some of it"),
        (["my_mechanism:itself", "--inputs", "0, 1"], "output must not hold itself"),
        (["my_mechanism:token", "--inputs", "0, 1"], "got texts of which no two are alike"),
        (["my_mechanism:release", "--inputs", "zero, one"], "inputs must be Python literals"),
        (["my_mechanism:release", "--inputs", "0, 1", "--runs", "3"], "runs must be >= 10, got 3"),
        (["my_mechanism:release", "--inputs", "0, 1", "--runs", "1" + "0" * 30], "runs must be <= 100000000, got 1e+30"),
        (["my_mechanism:release", "--inputs", f"0, 0x{'f' * 5000}"], "inputs must be Python literals, such as '0, 1', got"),
        (["my_mechanism:release", "--inputs", "0, 1", "--delta", "2"], "delta must lie in [0, 1), got 2.0"),
        (["my_mechanism:release", "--inputs", "0, 1", "--confidence", "1"], "confidence must lie in (0, 1), got 1.0"),
        (["my_mechanism:release", "--inputs", "0, 0", "--epsilon", "1"], "inputs must differ from each other"),
        (["my_mechanism:release", "--inputs", "0, 1, 0", "--epsilon", "1"], "got 0 twice in '0, 1, 0'"),
        (["my_mechanism:release", "--inputs", "0, 1", "--epsilon", "nan"], "epsilon must be >= 0 and finite, got nan"),
        (["syntax.py:f", "--inputs", "0, 1"], "cannot be imported: SyntaxError: "),
        (["syntax:f", "--inputs", "0, 1"], "cannot be imported: SyntaxError: "),
        (["divides.py:f", "--inputs", "0, 1"], "cannot be imported: ZeroDivisionError: division by zero"),
        (["exits.py:f", "--inputs", "0, 1", "--epsilon", "1"], "cannot be imported: SystemExit: 0"),
    ],
)
def test_mistakes_are_one_clear_line(here, arguments, said):
    done = audit(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error: ")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("broken", "fails in every run: ValueError: count must be a table, for 0"),
        ("missing", "AttributeError: 'int' object has no attribute 'rows', for 0"),
        ("leaves", "leaves fails in every run: SystemExit: 0"),
        ("ends", "ends fails in every run: SystemExit: 1"),
    ],
)
def test_a_mechanism_that_fails_in_every_run_is_neither_refuted_nor_used_wrongly(here, target, said):
    done = audit(f"my_mechanism:{target}", "--inputs", "0, 1", "--epsilon", "1", "--runs", "100")
    assert done.exit_code == 3
    assert said in done.stderr
    assert not done.stdout


def test_a_domain_is_searched_and_a_statistic_is_what_events_are_made_of(here):
    done = audit(
        "my_mechanism:total", "--domain", "(0, 0, 0), (0, 0, 1), (0, 5, 1), (0, 5, 0)", "--epsilon", "1", "--runs", "1000"
    )
    assert done.exit_code == 1
    assert "(0, 5, " in done.stdout
    blind = audit("my_mechanism:careless", "--inputs", "0, 1", "--statistic", "my_mechanism:nothing", "--runs", "200")
    assert blind.stdout.startswith("epsilon >= 0: in 200 runs")


def test_floating_point_is_a_verdict_of_its_own(here):
    done = audit("my_mechanism:release", "--inputs", "0, 1", "--epsilon", "1", "--floating-point", "--runs", "2000")
    assert done.exit_code == 1
    assert "epsilon = 1 is not refuted" in done.stdout
    assert "floating point: the digits tell the inputs apart" in done.stdout
    whole = audit("my_mechanism:integers", "--inputs", "0, 1", "--epsilon", "1", "--floating-point", "--runs", "2000")
    assert whole.exit_code == 0
    assert "the digits were not seen to tell the inputs apart" in whole.stdout


def test_an_output_that_is_nested_too_deep_is_refused_by_what_would_work(here):
    done = audit("my_mechanism:deep", "--inputs", "0, 1", "--runs", "10")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "Error: my_mechanism:deep: output must not be nested hundreds of levels deep; a statistic can make some of it\n"
    )


@pytest.mark.parametrize("target", ["generator", "opaque"])
def test_a_statistic_looks_into_what_an_audit_cannot(here, target):
    statistic = ["--statistic", "my_mechanism:first_of"]
    assert audit(f"my_mechanism:{target}", "--inputs", "0, 1", "--epsilon", "1", "--runs", "100", *statistic).exit_code == 1


def test_a_function_with_its_own_randomness_is_run_on_the_neighbours_of_one_set_of_data(here):
    done = audit("my_mechanism:alone", "--inputs", "[(3, 1, 4)]", "--epsilon", "1", "--runs", "1000")
    assert done.exit_code == 1
    assert "times for (3, 1, 4) and" in done.stdout or "times for (3, 1) and" in done.stdout, "4 moves the sum most"


def test_tables_are_looked_into_and_what_says_nothing_is_called_so(here):
    assert audit("my_mechanism:frame", "--inputs", "0, 1", "--epsilon", "1", "--runs", "200").exit_code == 1
    assert audit("my_mechanism:forks", "--inputs", "0, 1", "--epsilon", "1", "--runs", "10").exit_code == 0
    done = audit("my_mechanism:constant", "--inputs", "0, 1", "--epsilon", "1", "--runs", "200")
    assert done.stdout.startswith("epsilon >= 0: in 200 runs each nothing was found that tells 0 and 1 apart")


def test_digits_know_which_inputs_a_number_can_come_from(here):
    """As many digits after the point say nothing here; that a released number is the input itself says all."""
    asked = features.digits([0.25, 0.75])
    assert asked(0.25)[0][0] == asked(0.75)[0][0]
    assert asked(0.25) != asked(0.75)
    assert asked([0.25 + 0.5, 7, float("nan")]) == [asked(0.75)[0], (-1,), (-1,)]
    tiny = 2.0**-60  # a sum with 0.25 has no such digit
    assert asked(tiny)[0][2] == 0
    assert features.digits([0.0])(tiny)[0][2] == 1


def test_a_report_for_machines_is_written(here):
    arguments = ["--inputs", "0, 1", "--epsilon", "1", "--runs", "500", "--json", "found.json"]
    assert audit("my_mechanism:careless", *arguments).exit_code == 1
    found = json.loads((here / "found.json").read_text())
    assert found["refuted"] is True
    assert found["at_least"] > found["promised"] == 1.0


@pytest.mark.parametrize(("target", "kind"), [("picky", "IndexError"), ("leaves_for_one", "SystemExit")])
def test_a_mechanism_that_fails_for_one_input_alone_is_refuted(here, target, kind):
    done = audit(f"my_mechanism:{target}", "--inputs", "0, 1", "--epsilon", "3", "--runs", "500")
    assert done.exit_code == 1
    assert f"my_mechanism:{target} is not 3-differentially private" in done.stdout
    assert f"it raised in 1000 of 2000 runs, counted as outputs of their own; first {kind}" in done.stdout


def test_failures_that_tell_nothing_are_counted_and_said(here):
    done = audit("my_mechanism:rarely", "--inputs", "0, 1", "--epsilon", "1", "--runs", "1000")
    assert done.exit_code == 0
    assert "of 4000 runs, counted as outputs of their own; first RuntimeError: overflow, for " in done.stdout
    assert "not refuted" in done.stdout
