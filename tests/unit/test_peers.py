"""The comparison with other packages: the harness runs, the page says what the tables say, no peer is passed over."""

from __future__ import annotations

import sys
from dataclasses import replace

import compare
import job
import numpy as np
import others
import ours
import pandas as pd
import pytest

from drawn import peers
from support import REPOSITORY

RESULTS = REPOSITORY / "benchmarks" / "results"
TASKS = {task.name: task for task in compare.TASKS}

MOST = {"counting": 4, "accounting": 1000}

FAKE = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
from job import serve

def truth(job):
    held = job.load()
    return lambda: np.bincount(held, minlength=job.domain)

def broken(job):
    raise ValueError("no such oracle")

serve({{("frequency", "truth"): truth, ("frequency", "broken"): broken}})
"""


@pytest.fixture
def fake(tmp_path):
    script = tmp_path / "fake.py"
    script.write_text(FAKE.format(folder=str(compare.HERE)))
    return (sys.executable, str(script))


@pytest.fixture(scope="module")
def runs():
    return peers.read(REPOSITORY, "peers")


@pytest.mark.parametrize("method", ours.METHODS, ids=" ".join)
def test_our_side_of_every_comparison_answers_what_is_measured(method, tmp_path):
    task, n = TASKS[method[0]], 60
    data = task.data(n, np.random.default_rng(0))
    np.save(tmp_path / "data.npy", data)
    settings = {"task": method[0], "method": method[1], "n": n, "seed": 1, "data": str(tmp_path / "data.npy")}
    easy = {"epsilon": 9.0} if method[0] in ("heavy hitters", "counting") else {}  # little noise, few candidates
    done = job.run(ours.METHODS, job.Job(**settings | dict(task.settings) | easy))
    assert 0 < task.error(data, done["answer"], task.settings) < MOST.get(method[0], 25)
    assert 0 <= done["cpu"] < 60
    assert 10 < done["memory"] < 10_000  # MB


def test_methods_take_turns_and_what_fails_is_a_note(fake):
    methods = ("fake", "truth", "OLH"), ("fake", "broken", "OLH"), ("absent", "method", "OLH")
    small, methods = (
        replace(TASKS["frequency"], sizes=(20, 40, 80), repetitions=2),
        [compare.Method(*one) for one in methods],
    )
    rows = pd.DataFrame(compare.compare(small, methods, {"fake": fake}))
    truth = rows[rows["method"] == "truth"]
    assert truth["n"].tolist() == [20, 20, 40, 40, 80, 80]
    assert truth["error"].tolist() == [0] * 6
    assert set(rows["package"]) == {"fake"}
    notes = rows[rows["method"] == "broken"]["note"]
    assert notes.tolist() == ["not run from n = 20: ValueError: no such oracle"] * 3
    assert rows["method"].tolist()[:3] == ["truth", "broken", "truth"]


def test_every_pinned_package_has_rows_or_a_stated_reason(runs):
    facts = peers.read(REPOSITORY, "peers_packages").set_index("package")
    assert sorted(facts.index) == compare.packages()
    assert "://" not in "".join((compare.PEERS / f"{package}.txt").read_text() for package in compare.packages())
    for package, fact in facts.iterrows():
        assert str(fact["version"]) == compare.version(package), f"{package}: pins and results differ; run `make peers`"
        measured = runs[runs["package"] == package]["cpu"].notna().any()
        assert measured or fact["problem"], f"{package} has neither rows nor a reason"
        assert package in {theirs for _, theirs, *_ in others.METHODS}


def test_the_results_are_those_of_the_tasks_as_they_are(runs):
    for task in compare.TASKS:
        part = runs[runs["task"] == task.name]
        asked = {(method.package, method.name, method.against) for method in task.methods}
        assert set(zip(part["package"], part["method"], part["against"], strict=True)) == asked
        assert set(part["n"]) == set(task.sizes)
        assert part.groupby(["package", "method", "n"])["repetition"].nunique().max() >= 3
        silent = part[part["cpu"].isna() & (part["note"] == "")]
        assert silent.empty, "a run without a time and without a reason"
    settings = peers.read(REPOSITORY, "peers_tasks").set_index("task")["settings"]
    assert settings.to_dict() == {task.name: compare.described(task) for task in compare.TASKS}
