"""The comparison with other packages: the harness runs, the page says what the tables say, no peer is passed over."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import replace

import compare
import job
import numpy as np
import pandas as pd
import pytest
import with_ours
from sphinx.application import Sphinx

from evolvingdp.book.rendering import peers
from support import REPOSITORY

RESULTS = REPOSITORY / "benchmarks" / "results"
TASKS = {task.name: task for task in compare.TASKS}

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
    script.write_text(FAKE.format(folder=str(compare.PEERS)))
    return (sys.executable, str(script))


@pytest.fixture(scope="module")
def runs():
    return peers.read(REPOSITORY, "peers")


def small(task: str, repetitions: int, *methods: tuple[str, str, str]) -> compare.Task:
    settings = {"sizes": (20, 40, 80), "repetitions": repetitions}
    return replace(TASKS[task], **settings, methods=tuple(compare.Method(*method) for method in methods))


@pytest.mark.parametrize("method", with_ours.METHODS, ids=" ".join)
def test_our_side_of_every_comparison_answers_what_is_measured(method, tmp_path):
    task, n = TASKS[method[0]], 60
    data = task.data(n, np.random.default_rng(0))
    np.save(tmp_path / "data.npy", data)
    settings = {"task": method[0], "method": method[1], "n": n, "seed": 1, "data": str(tmp_path / "data.npy")}
    easy = {"epsilon": 9.0} if method[0] == "heavy hitters" else {}  # little noise, few candidates
    done = job.run(with_ours.METHODS, job.Job(**settings | dict(task.settings) | easy))
    error, score = task.error(data, done["answer"], task.settings)
    assert 0 < error < 1000
    assert np.isfinite(score)
    assert 0 <= done["cpu"] < 60
    assert 10 < done["memory"] < 10_000  # MB


def test_methods_take_turns_and_what_fails_is_a_note(fake):
    methods = ("fake", "truth", "OLH"), ("fake", "broken", "OLH"), ("absent", "method", "OLH")
    rows = pd.DataFrame(compare.compare(small("frequency", 2, *methods), {"fake": fake}))
    truth = rows[rows["method"] == "truth"]
    assert truth["n"].tolist() == [20, 20, 40, 40, 80, 80]
    assert truth["error"].tolist() == [0] * 6
    assert set(rows["package"]) == {"fake"}
    notes = rows[rows["method"] == "broken"]["note"]
    assert notes.tolist() == ["not run from n = 20: ValueError: no such oracle"] * 3
    assert rows["method"].tolist()[:3] == ["truth", "broken", "truth"]


def test_a_method_that_would_take_too_long_is_not_run_further(fake, monkeypatch):
    monkeypatch.setattr(compare, "LIMIT", 0.0)
    rows = pd.DataFrame(compare.compare(small("frequency", 1, ("fake", "truth", "OLH")), {"fake": fake}))
    assert rows["cpu"].notna().tolist() == [True, False, False]
    assert rows["note"].tolist()[1] == "not run beyond n = 20: about 0 s expected"


def test_the_peak_memory_is_the_process_s_own_and_not_its_parent_s():
    held = np.ones(40_000_000)  # 320 MB
    script = "import job, numpy; before = job.peak(); held = numpy.ones(10_000_000); print(before, job.peak())"
    done = subprocess.run([sys.executable, "-c", script], cwd=compare.PEERS, capture_output=True, text=True, check=True)
    before, after = map(float, done.stdout.split())
    assert before < 200 < held.nbytes / 1e6
    assert 75 < after - before < 100


def test_times_are_those_of_one_stream(monkeypatch):
    answer = {"cpu": 8.0, "wall": 16.0, "memory": 1.0, "numpy": "2", "answer": np.zeros((4, 16_000)).tolist()}
    monkeypatch.setattr(compare, "ask", lambda command, job: answer)
    task = TASKS["counting"]
    row = compare._one(task, 16_000, task.methods[0], (), task.data(16_000, np.random.default_rng(0)), 0)
    assert (row["cpu"], row["wall"]) == (2.0, 4.0)


def test_the_largest_epsilon_of_noise_for_too_small_a_sensitivity_is_exact():
    assert compare._spent(1.0, gaussian=True) == pytest.approx(1.0, rel=1e-6)
    assert compare._spent(1.5, gaussian=False) == 1.5
    twice = compare._spent(2.0, gaussian=True)
    mu = compare.accounting.gaussian_mu(1.0, 1e-6)
    assert compare.accounting.delta_of_gaussian(2 * mu, twice) == pytest.approx(1e-6, rel=1e-6)


def test_every_pinned_package_has_rows_or_a_stated_reason(runs):
    facts = peers.read(REPOSITORY, "peers_packages").set_index("package")
    assert sorted(facts.index) == compare.packages()
    assert "://" not in "".join((compare.PEERS / f"{package}.txt").read_text() for package in compare.packages())
    for package, fact in facts.iterrows():
        assert str(fact["version"]) == compare.version(package), f"{package}: pins and results differ; run `make peers`"
        measured = runs[runs["package"] == package]["cpu"].notna().any()
        assert measured or fact["problem"], f"{package} has neither rows nor a reason"
        assert (compare.PEERS / f"with_{package.replace('-', '_')}.py").is_file()


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


def test_a_peer_is_called_better_where_the_table_says_so_and_nowhere_else(runs):
    for task in compare.TASKS:
        said = " ".join(peers.sentences(runs, task.name))
        part = runs[(runs["task"] == task.name) & runs["cpu"].notna()]
        for method in [method for method in task.methods if method.package != peers.OURS]:
            theirs = part[(part["package"] == method.package) & (part["method"] == method.name)]
            ours = part[(part["package"] == peers.OURS) & (part["method"] == method.against)]
            both = theirs.merge(ours, on=["n", "repetition"], suffixes=("", "_ours"))
            both = both[both["n"] == both["n"].max()]
            for measure, word in peers.BETTER.items():
                left, right = both[measure].to_numpy(), both[f"{measure}_ours"].to_numpy()
                middle = (lambda x: np.sqrt((x**2).mean())) if measure == "error" else np.median
                better = len(both) and (left < right).all() and middle(left) * 1.1 < middle(right)
                claim = f"**{method.package} {method.name} is {word}** than our {method.against}:"
                assert (claim in said) == bool(better), claim


def table(*rows: tuple[str, str, str, int, int, float, float]) -> pd.DataFrame:
    names = ["package", "method", "against", "n", "repetition", "cpu", "error"]
    return pd.DataFrame(rows, columns=names).assign(task="frequency", memory=100.0, note="")


def test_a_peer_that_is_better_only_sometimes_or_hardly_is_not_called_so():
    ours = [("ours", "OLH", "", n, r, n / 100, 10.0) for n in (10, 100, 1000) for r in range(3)]
    quick = [("p", "quick", "OLH", n, r, n / 1000, 10.0) for n in (10, 100) for r in range(3)]
    shaky = [("p", "shaky", "OLH", 1000, r, (1.0, 1.0, 11.0)[r], 9.5) for r in range(3)]
    runs = table(*ours, *quick, *shaky)
    said = peers.sentences(runs, "frequency")
    assert said[0] == "**p quick is faster** than our OLH: 0.10 times ours at n = 100."
    assert "At the largest n that both ran, no peer is smaller in memory than its counterpart of ours." in said
    assert "At the largest n that both ran, no peer is more accurate than its counterpart of ours." in said
    assert not [sentence for sentence in said if "shaky is" in sentence]
    assert "Least time of all at n = 1,000, within a tenth: p shaky." in said
    assert "Least error of all at n = 1,000, within a tenth: our OLH, p shaky." in said
    assert peers.rows(runs, "frequency")[0] == ["p quick / OLH", "100", "0.10", "1.0", "1.0", "– / 1.0"]


def test_a_broken_budget_is_named_with_its_number_and_a_kept_one_is_not():
    budget = pd.DataFrame(
        [("p", "a", 2.0, 3.95, "at least (never)"), ("p", "b", 2.0, 1.9, "at least"), ("q", "c", 1.0, 0.8, "exact")],
        columns=["package", "method", "stated", "spent", "how"],
    )
    assert peers.broken(budget) == [
        "**p a spends more than it states**: epsilon ≥ 3.95 where it states 2 (never).",
        "Noisier than needed on a short stream: q c (0.80 of 1).",
        "Of 3 methods looked at, 2 were not seen to break their promise.",
    ]


def test_the_page_asks_for_every_task_and_types_no_number(runs):
    page = (REPOSITORY / "book" / "performance.md").read_text().split("## Against what people")[1]
    assert set(re.findall(r"```\{peers\} (.+)", page)) == {"better", "packages", "budget", *runs["task"]}
    prose = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    names = r"4-ary|arXiv"
    assert not re.findall(r"\d", re.sub(names, "", prose)), "numbers come from the tables"


def test_the_rendered_page_shows_every_sentence_and_every_cell(tmp_path, runs):
    for folder in ("book", "benchmarks"):
        (tmp_path / folder).mkdir()
    shutil.copy(REPOSITORY / "book" / "performance.md", tmp_path / "book" / "index.md")
    shutil.copytree(REPOSITORY / "benchmarks", tmp_path / "benchmarks", dirs_exist_ok=True)
    for name in re.findall(r"\{doc\}`(\w+)`", (tmp_path / "book" / "index.md").read_text()):  # what it refers to
        (tmp_path / "book" / f"{name}.md").write_text(f"---\norphan: true\n---\n# {name}\n")
    (tmp_path / "conf.py").write_text(
        "from evolvingdp.book.rendering.drawn_ext import Peers\n"
        "from evolvingdp.book.rendering.ext import Loop, Measured, Timings\n"
        "extensions = ['myst_parser', 'sphinx_design']\n"
        "myst_enable_extensions = ['dollarmath', 'colon_fence']\nroot_doc = 'book/index'\n"
        "def setup(app):\n    app.add_directive('peers', Peers)\n    app.add_role('measured', Measured())\n"
        "    app.add_directive('timings', Timings)\n    app.add_directive('loop', Loop)\n"
    )
    places = [str(tmp_path), str(tmp_path), str(tmp_path / "out"), str(tmp_path / "trees")]
    app = Sphinx(*places, "text", status=None, warningiserror=True)
    app.build()
    shown = " ".join((tmp_path / "out" / "book" / "index.txt").read_text().split())
    for task in compare.TASKS:
        for sentence in peers.sentences(runs, task.name):
            assert " ".join(sentence.split()) in shown
        for row in peers.rows(runs, task.name):
            assert row[1] in shown
    for sentence in peers.broken(peers.read(REPOSITORY, "peers_budget")):
        assert sentence in shown
