"""Running notebooks: validated first, cached by what decides the output, whole or not at all."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd
import papermill
import pytest
import toy
from click.testing import CliRunner
from serial import TABLES, alone, refused, sweep
from toy import PARAMETERS, PRESETS

from evolvingdp.book import bundle, checkout, params, running
from evolvingdp.book.checkout import Project, params_of
from evolvingdp.book.cli import main
from evolvingdp.book.files import NotebookError
from evolvingdp.book.result import read_claims
from evolvingdp.book.running import MANIFEST, Job, compute, file_digest, read_manifest, touched
from evolvingdp.core import tables
from evolvingdp.core.checks import ParameterError
from support import REPOSITORY, TOY

TINY = {"epsilon": "1", "n_users": "2000", "widths": "8, 16"}
MODEL = params.model(TOY, PARAMETERS, PRESETS)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A project whose one notebook runs what a test says."""

    def make(*cells: str) -> Project:
        toy.write(tmp_path, *cells)
        return toy.enter(tmp_path, monkeypatch)

    return make


def test_parameters_arrive_typed_and_the_second_run_is_free(project):
    checked = project("assert n_users == 10_000_000 and isinstance(n_users, int)", "assert epsilon == 1e-06", "seed")
    job = Job.make(checked, TOY, "quick", {"n_users": "1e7", "epsilon": "1e-6"}, "3")
    assert running.run(job) > 0
    executed = nbformat.read(job.store / "line.ipynb", as_version=4)
    assert executed.cells[-1].outputs[0].data["text/plain"] == "3"
    assert running.run(job) == 0.0


def test_the_key_changes_with_everything_that_decides_the_output(project, monkeypatch):
    def key(here=None, preset="quick", overrides=None, seed=0):
        return Job.make(here or project("1"), TOY, preset, overrides, seed).key

    keys = [key(), key(project("2")), key(project("1"), "paper"), key(overrides={"epsilon": 3}), key(seed=1)]
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]
    assert key(overrides={"epsilon": "2.0"}) == keys[0]  # what is typed in another way is the same


EDITS = {
    "module": ("notebooks/evolving/thresh.py", True),
    "another notebook's module": ("notebooks/evolving/choosing.py", True),
    "another paper": ("lib/evolvingdp/heavy_hitters/tree_hist.py", False),
    "another paper's notebook": ("notebooks/heavy_hitters/treehist.py", False),
    "look of figures": ("lib/evolvingdp/book/style.py", True),
    "how the book is rendered": ("lib/evolvingdp/book/rendering/pdf.py", False),
    "numbers": ("lib/evolvingdp/evolving/thresh.py", True),
    "core": ("lib/evolvingdp/core/noise.py", True),
}


def test_an_edit_runs_again_its_paper_s_notebooks_and_no_others(tmp_path, monkeypatch):
    """The key of evolving/thresh, before and after an edit."""
    for name in ("lib", "notebooks"):
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    monkeypatch.setattr(checkout, "LIBRARY", tmp_path / "lib" / "evolvingdp")
    before = Job.make(Project(tmp_path), "evolving/thresh", "quick").key
    for edit, (place, changes) in EDITS.items():
        source = (tmp_path / place).read_text()
        (tmp_path / place).write_text(f"{source}\n# edited\n")
        assert (Job.make(Project(tmp_path), "evolving/thresh", "quick").key != before) == changes, edit
        (tmp_path / place).write_text(source)


def test_a_chapter_of_all_papers_depends_on_each():
    """`streams` has no paper of its own: what its notebook imports brings their rooms in."""
    made = checkout.rooms({"notebooks.streams"})
    assert {name.split("/")[0] for name in made if "/" in name} >= {
        "core",
        "streams",
        "continual_mean",
        "evolving",
        "sparse_vector",
    }


def test_a_failed_notebook_shows_its_traceback_and_leaves_nothing_behind(project, tmp_path):
    job = Job.make(project("half = 1", "raise RuntimeError('the third term diverged')"), TOY, "quick")
    with pytest.raises(NotebookError, match="RuntimeError: the third term diverged") as caught:
        running.run(job)
    assert "toy/line failed" in str(caught.value)
    assert not job.cached
    assert list((tmp_path / ".cache" / "runs").iterdir()) == []


BAD = {
    "unknown name": (["-p", "epsilom", "1"], "unknown parameter 'epsilom'; did you mean 'epsilon'?"),
    "wrong type": (["-p", "n_users", "many"], "n_users must be an integer, got 'many'"),
    "digits of another script": (["-p", "n_users", "١٢٣٤"], "n_users must be an integer, got '١٢٣٤'"),
    "nan": (["-p", "epsilon", "nan"], "epsilon must be a finite number, got 'nan'"),
    "zero in a list": (["-p", "widths", "1,0"], "widths must be >= 1, got '0'"),
    "out of range": (["-p", "epsilon", "21"], "epsilon must be <= 20, got '21'"),
    "no such choice": (["-p", "sent", "zip"], "sent must be one of 'bit' or 'signs', got 'zip'"),
    "too large": (["-p", "width", str(2**19)], "rows must be at most 1 to fit here: lower rows or width, got 3"),
    "twice": (["-p", "rows", "3", "-p", "rows", "4"], "each parameter may be set once, rows is set twice"),
    "a value twice": (["-p", "widths", "2,1,2"], "widths must hold each value once, got 2, 1, 2"),
    "nan in a list": (["-p", "widths", "8,nan"], "Error: widths must be an integer, got 'nan'\n"),
    "a long name": (["--out", "a" * 300], "out must be a folder that can be written, such as --out my-run, got"),
    "an empty item": (["-p", "widths", "1,,2"], "widths must have a value between any two commas and none at its ends, got"),
    "an option twice": (["--seed", "1", "--seed", "2"], "--seed may be given once, got it 2 times"),
    "a loop of links": (["--out", "loop"], "out must be a folder that can be written, such as --out my-run, got"),
    "a link to nothing": (["--out", "gone/mine"], "out must be a folder that can be written, such as --out my-run, got"),
    "empty out": (["--out", ""], "out must name a folder"),
    "out among the sources": (["--out", "notebooks/toy"], "out must lie outside the book's own sources"),
    "unknown preset": (["--preset", "huge"], "preset must be one of quick, paper, got 'huge'"),
    "bad seed": (["--seed", "-1"], "seed must be an integer >= 0, got -1"),
    "unwritable out": (["--out", "notebooks/toy/line.py/inside"], "out must lie outside"),
}


@pytest.mark.parametrize("kind", BAD)
def test_run_refuses_bad_input_with_one_line_before_anything_runs(kind, project, monkeypatch):
    monkeypatch.chdir(project().root)
    Path("loop").symlink_to("loop")
    Path("gone").symlink_to("nowhere")
    monkeypatch.setattr(running, "run", lambda job: pytest.fail("it ran"))
    arguments, message = BAD[kind]
    assert message in refused("run", TOY, *arguments)


def test_a_comment_goes_on_in_the_lines_below_it():
    lines = [
        "n: int = 3  # users of the",
        "#     example ($n$, users) in",
        "#     [1, 10]",
        "",
        "# of nothing",
        "m: int = 2  # steps",
    ]
    model = params.model(TOY, "\n".join(lines))
    assert [model.lines[name].meaning for name in ("n", "m")] == ["users of the example", "steps"]
    with pytest.raises(ParameterError, match=r"n must be .*10"):
        model.make(overrides={"n": "11"})


def test_what_people_type_is_understood():
    made = MODEL.make(overrides={"epsilon": " 1e-1 ", "n_users": "2e3", "widths": "[8, 1_000]"})
    assert (made.epsilon, made.n_users, made.widths) == (0.1, 2000, (8, 1000))
    with pytest.raises(ParameterError, match="epsilon must be a number, got True"):
        MODEL.make(overrides={"epsilon": True})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("epsilon: float = 1.0", "cannot be read at epsilon: "),
        ("epsilon = 1.0  # a loss", "must be name: type = value, got 'epsilon = 1.0'"),
        ("epsilon: real = 1.0  # a loss", "cannot be read at epsilon: 'real'"),
        ("epsilon: float = 1.0  # a loss in (0, many]", "its range must be two numbers, got '(0, many]'"),
        ("epsilon: float = half  # a loss", "cannot be read at epsilon: malformed node"),
    ],
)
def test_a_line_that_says_too_little_is_refused_by_its_name(line, said):
    with pytest.raises(ParameterError, match=re.escape(said)):
        params.model(TOY, line)


CLAIMS = {
    "a / b <= 2  Half": (2.0, "<=", 2, True),
    "max(a, b) ** 2 >= 5  Square": (16.0, ">=", 5, True),
    "1 <= -b + a <= 1.5  Between": (2.0, "within", (1, 1.5), False),
}


def test_a_claim_is_a_line_of_text():
    names = {"a": 4, "b": 2, "lost": float("nan")}
    found = list(read_claims("\n".join(CLAIMS), names))
    assert [(one.value, one.relation, one.bound, one.holds) for one in found] == list(CLAIMS.values())
    assert [one.claim for one in found] == ["Half", "Square", "Between"]
    assert list(read_claims("? lost <= 1  Not a number\n? none <= 1  Not there", names)) == []
    for line in ("lost <= 1  Not a number", "none <= 1  Not there"):
        with pytest.raises(ValueError, match=r"mark it with \? if it may be missing"):
            list(read_claims(line, names))
    for line in ("a <= 2 one blank", "a < 2  Strictly", "a  No relation"):
        with pytest.raises(ValueError, match=r"^a claim"):
            list(read_claims(line, names))


@pytest.fixture(scope="module")
def twice(tmp_path_factory) -> tuple[list[Path], Path, str]:
    """What a run wrote, twice: as typed, and by the command of a sweep's point. And the sweep's folder, and the point."""
    root = toy.write(tmp_path_factory.mktemp("twice"))
    outs, swept = [root / "out-0", root / "out-1"], root / "swept"
    with pytest.MonkeyPatch.context() as monkeypatch:
        toy.enter(root, monkeypatch)
        alone(monkeypatch)
        done = sweep(
            TOY, "--grid", "widths=8,16;4,8", "--grid", "epsilon=1,2", "-p", "n_users", "2e3", "--seed", "3", "--out", swept
        )
        assert done.exit_code == 0, done.output
        values = pd.read_parquet(swept / "values.parquet")
        (point,) = values[(values.param_widths == "8,16") & (values.param_epsilon == 1)].point
        table = pd.read_parquet(swept / "sweep.parquet")
        (command,) = table[table.point == point].command.unique()
        typed = ["run", TOY, *(word for pair in TINY.items() for word in ("-p", *pair)), "--seed", "3"]
        for arguments, out in zip((typed, shlex.split(command)[1:]), outs, strict=True):
            monkeypatch.setenv("EVOLVINGDP_CACHE", f"{out}-cache")
            result = CliRunner().invoke(main, [*arguments, "--out", str(out)])
            assert result.exit_code == 0, result.output
    return outs, swept, point


def test_a_real_run_writes_everything_and_twice_the_same(twice):
    outs, *_ = twice
    names = sorted(path.relative_to(outs[0]).as_posix() for path in outs[0].rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(outs[1]).as_posix() for path in outs[1].rglob("*") if path.is_file())
    assert {f"line/{file}" for file in bundle.names("hh-line").values()} <= set(names)
    for name in names:
        first, second = (out.joinpath(name).read_text(errors="replace") for out in outs)
        if name.endswith(("manifest.json", "provenance.json", ".ipynb")):  # run times may differ, nothing else
            first, second = (_without_run_times(text, name) for text in (first, second))
        assert first == second, name
    claims = json.loads((outs[0] / "line" / "claims.json").read_text())
    assert [(claim["claim"], claim["holds"]) for claim in claims] == [("Epsilon is small | no", True), ("Nothing", True)]
    record = json.loads((outs[0] / "line" / "provenance.json").read_text())
    assert (record["params"]["n_users"], record["seed"]) == (2000, 3)
    assert "-p n_users 2000" in record["command"]
    values = json.loads((outs[0] / "line" / "values.json").read_text())
    assert values["n_users"] == 2000, "parameters are values"
    assert "absent" not in values
    cells = nbformat.read(outs[0] / "line.ipynb", as_version=4).cells
    shown = [output.data for cell in cells for output in cell.get("outputs", []) if "data" in output]
    assert sum("**Figure `" in data.get("text/markdown", "") for data in shown) == 1, "captions"
    assert not any("text/x-myst" in data for data in shown)


def _without_run_times(text: str, name: str) -> str:
    if name.endswith("manifest.json"):
        manifest = json.loads(text)
        return json.dumps([manifest["key"], [file for file in manifest["files"] if file.endswith("csv")]])
    return re.sub(r'"run_seconds": [\d.]+|in \d+ s\.|, \d+ s: (?=\[results\.csv\])', "", text)


def test_a_point_of_a_sweep_is_what_its_own_command_computes(twice):
    (_, out), swept, point = twice
    table, values, claims = (rows[rows.point == point] for rows in (pd.read_parquet(swept / name) for name in TABLES))
    (command,) = table.command.unique()
    assert " --seed 3 " in command
    assert "-p n_users 2000" in command
    run = out / "line"
    columns = pd.read_csv(run / "results.csv", nrows=0).columns
    assert table[columns].to_csv(index=False, lineterminator="\n") == (run / "results.csv").read_text()
    theirs = json.loads((run / "values.json").read_text())
    assert values.iloc[0][list(theirs)].to_dict() == theirs
    verdicts = [(claim["claim"], claim["value"], claim["holds"]) for claim in json.loads((run / "claims.json").read_text())]
    assert list(zip(claims.claim, claims.value, claims.holds, strict=True)) == verdicts


def test_papermill_by_hand_works_and_shows_the_figures(project, tmp_path):
    template, out = project().template(TOY), tmp_path / "elsewhere" / "out.ipynb"
    out.parent.mkdir()
    done = papermill.execute_notebook(str(template), str(out), {"epsilon": 1.0, "widths": [2, 4]}, progress_bar=False)
    shown = [output for cell in done.cells if cell.cell_type == "code" for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in shown) == 1
    assert [path.name for path in out.parent.iterdir()] == ["out.ipynb"]


def test_papermill_by_hand_is_told_what_is_wrong(project, tmp_path):
    """Papermill only warns of a name that the notebook does not have: the notebook itself refuses it."""
    values, out = {"epsilon": -1, "epsilom": 3, "seed": 2}, str(tmp_path / "out.ipynb")
    said = "epsilon must be >= 1e-06, got -1; unknown parameter 'epsilom'; did you mean 'epsilon'?"
    with pytest.raises(papermill.PapermillExecutionError, match=re.escape(said)):
        papermill.execute_notebook(str(project().template(TOY)), out, values, progress_bar=False)


@pytest.mark.parametrize(
    ("cell", "refused"),
    [
        ("# Parameters\nepsilom = 3", True),
        ("epsilon: float = 1.0  # typed over\nrow: int = 3\nseed = 1", True),
        ("epsilon = 2\nseed = 4", False),
        ("import math\nhalf = 0.5", False),
        ("half = epsilon / 2", False),
        ("%matplotlib inline\nhalf = 1", False),
        ("", False),
    ],
)
def test_a_cell_of_nothing_but_values_sets_parameters(cell, refused):
    own = toy.parameters()
    namespace = MODEL.make().as_json() | {"epsilom": 3, "row": 3, "half": 1, "seed": 1, "In": ["", own, cell]}
    if refused:
        with pytest.raises(ParameterError, match=r"unknown parameter '(epsilom|row)'"):
            MODEL.from_namespace(namespace)
    else:
        assert MODEL.from_namespace(namespace) == MODEL.make()


def test_a_table_that_is_damaged_is_one_line_and_not_the_notebook_s_fault(project, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "DATA", tmp_path)
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"word,count\n" * 100)[:40])
    for name in ("none.csv", "cut.csv.gz"):
        with pytest.raises(tables.TableError, match=f"the table .*{name} cannot be read .*git checkout data"):
            tables.read(name)
    job = Job.make(project("half = 1", "from evolvingdp.core import tables; tables.read('none.csv')"), TOY, "quick")
    with pytest.raises(NotebookError, match=r"^toy/line stopped: the table .*none.csv cannot be read [^\n]*$"):
        running.run(job)


def test_a_file_where_a_folder_should_be_is_one_line(project, tmp_path, monkeypatch):
    project()
    (tmp_path / "file").touch()
    monkeypatch.setenv("EVOLVINGDP_CACHE", str(tmp_path / "file"))
    said = f"Error: {tmp_path}/file/runs must be a folder, and a file stands in its way\n"
    assert refused("run", TOY, "--out", tmp_path / "out") == said


def test_a_working_folder_that_is_gone_is_one_line(tmp_path):
    (tmp_path / "gone").mkdir()
    script = f"cd {tmp_path}/gone && rmdir {tmp_path}/gone && {sys.executable} -P -m evolvingdp plan mean --users 1000"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith("Error: the folder in which this was started exists no longer")


@pytest.mark.parametrize("broken", [lambda **_: {}["unexpected"], lambda **_: Path("/no/such").read_text()])
def test_the_code_of_a_verdict_is_that_of_nothing_else(monkeypatch, broken):
    monkeypatch.setattr(main.commands["params"], "callback", broken)
    done = CliRunner().invoke(main, ["params", TOY])
    assert (done.exit_code, done.stderr.splitlines()[0]) == (3, "Traceback (most recent call last):")
    said = "Error: Option '--out' requires an argument; example: NLTK_DATA=~/nltk_data evolvingdp data brown\n"
    assert refused("data", "--out") == said
    with subprocess.Popen(
        [sys.executable, "-m", "evolvingdp", "-h"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as unread:
        unread.stdout.close()
        assert unread.wait() == 3


def test_a_user_that_nobody_knows_is_a_path_like_any_other():
    with pytest.raises(ParameterError, match=r"~nobody-here/x.csv does not exist"):
        params_of("streams/two_centuries").make(overrides={"data": "~nobody-here/x.csv"})


def test_set_up_writes_through_no_link_and_into_no_environment_that_is_in_use(tmp_path):
    (tmp_path / ".ci").mkdir()
    shutil.copyfile(REPOSITORY / ".ci" / "setup.py", tmp_path / ".ci" / "setup.py")
    venv, elsewhere = tmp_path / ".venv", tmp_path / "elsewhere"
    (elsewhere / "bin").mkdir(parents=True)
    (elsewhere / "bin" / "python").symlink_to(sys.executable)

    def said() -> str:
        command = [sys.executable, ".ci/setup.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        return done.stderr

    venv.symlink_to(elsewhere)
    assert said() == f".venv is a link to {elsewhere}, where others may work: remove the link, and run this again\n"
    venv.unlink()
    elsewhere.rename(venv)
    with subprocess.Popen([".venv/bin/python", "-c", "input()"], cwd=tmp_path, stdin=subprocess.PIPE) as busy:
        assert f".venv is in use by process {busy.pid} (.venv/bin/python -c): end it" in said()
        busy.communicate(b"\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".ci", ".venv"]


def test_results_of_another_run_are_not_replaced(project, tmp_path, monkeypatch):
    """The command refuses before it computes; the same run may be written."""
    project()
    out, ran = tmp_path / "out", []
    monkeypatch.setattr(running, "run", lambda job, **_: ran.append(job) or 0.0)
    monkeypatch.setattr(running, "export", lambda job, out, **_: (out / job.name / "values.json").write_text("{}"))
    earlier = Job.make(Project(), TOY, "quick", {"rows": 5}, 3)
    folder = out / "line"
    folder.mkdir(parents=True)
    manifest = {"key": "", "notebook": TOY, "params": earlier.params.as_json(), "seed": 3, "files": {}}
    (folder / MANIFEST).write_text(json.dumps(manifest))

    for arguments, there, here in (
        (["-p", "rows", "7", "--seed", "3"], "rows 5", "rows 7"),
        (["-p", "rows", "5"], "seed 3", "seed 0"),
        (["-p", "rows", "7"], "rows 5, seed 3", "rows 7, seed 0"),
    ):
        told = f"out holds another run in {str(folder)!r}, with {there} where this one has {here}; choose another folder"
        said = f"Error: {told}, such as --out out-2, or remove that one\n"
        assert refused("run", TOY, *arguments, "--out", out) == said
    assert ran == []
    assert CliRunner().invoke(main, ["run", TOY, "-p", "rows", "5", "--seed", "3", "--out", str(out)]).exit_code == 0
    assert len(ran) == 1


def test_a_damaged_cache_entry_is_computed_again(project):
    job = Job.make(project("1 + 1"), TOY, "quick")
    for damage in (None, "line.ipynb", MANIFEST):
        if damage:
            (job.store / damage).write_text("{")
        assert not job.cached
        assert running.run(job) > 0
        assert job.cached


def test_a_notebook_that_changes_while_it_runs_is_not_cached(project, tmp_path):
    template = tmp_path / "notebooks" / f"{TOY}.ipynb"
    change = f"from pathlib import Path; p = Path({str(template)!r}); p.write_text(p.read_text().replace('1 + 1', '1 + 2'))"
    job = Job.make(project(change, "1 + 1"), TOY, "quick")
    with pytest.raises(NotebookError, match="sources changed while it ran"):
        running.run(job)
    assert not job.cached


def test_a_notebook_without_its_module_is_one_line():
    with pytest.raises(ParameterError, match=r"needs the module notebooks/heavy_hitters/nothing.py"):
        params_of("heavy_hitters/nothing")


def test_the_user_s_own_settings_do_not_change_our_figures(project, tmp_path, monkeypatch):
    home = tmp_path / "home"
    for file, text in {
        ".config/matplotlib/matplotlibrc": "figure.facecolor: yellow\nsvg.fonttype: none\n",
        "matplotlibrc": "figure.facecolor: red\n",
        ".ipython/profile_default/startup/mine.py": "epsilon_of_mine = 1\n",
        ".jupyter/jupyter_config.json": '{"IPKernelApp": {"exec_lines": ["epsilon_of_mine = 1"]}}',
    }.items():
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_text(text)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MATPLOTLIBRC", str(home / "matplotlibrc"))
    monkeypatch.delenv("MPLCONFIGDIR", raising=False)
    shown = project(
        "import matplotlib as mpl\nassert mpl.rcParams['figure.facecolor'] == 'white', mpl.matplotlib_fname()",
        "assert 'epsilon_of_mine' not in globals()",
    )
    compute([Job.make(shown, TOY, "quick", seed=seed) for seed in (0, 1)], print, workers=2)  # by new processes


@pytest.mark.parametrize("step", range(4))
def test_whatever_stops_the_writing_of_results_no_page_is_half_or_of_another_run(step, project, tmp_path, monkeypatch):
    """The page of an older run gives way to a newer one; the disk is full at one of the steps."""
    project()
    jobs = [Job.make(Project(), TOY, "quick", seed=seed) for seed in (1, 2)]
    for job in jobs:
        (job.store / job.name).mkdir(parents=True)
        (job.store / job.name / "results.csv").write_text(f"{job.seed}\n")
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(f"# Seed {job.seed}", id="title")])
        nbformat.write(notebook, job.store / f"{job.name}.ipynb")
        files = {f"{job.name}/results.csv": file_digest(job.store / job.name / "results.csv")}
        manifest = {"key": job.key, "notebook": TOY, "params": job.params.as_json(), "seed": job.seed}
        (job.store / MANIFEST).write_text(json.dumps(manifest | {"files": files}))
    old, new = jobs
    out = tmp_path / "out"
    running.export(old, out)
    taken = 0

    def full(real):
        def stopped(*arguments, **options):
            nonlocal taken
            taken += Path(arguments[1]).is_relative_to(out)
            if taken == step + 1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*arguments, **options)

        return stopped

    with monkeypatch.context() as disk:
        for name in ("rename", "replace"):
            disk.setattr(os, name, full(getattr(os, name)))
        disk.setattr(shutil, "copyfile", full(shutil.copyfile))
        with pytest.raises(OSError, match="No space"):
            running.export(new, out)
    manifest = read_manifest(out / old.name / MANIFEST)
    assert touched(out, manifest) in ([], [f"{old.name}.ipynb"]) if manifest else not (out / f"{old.name}.ipynb").exists()
    running.export(new, out)
    assert read_manifest(out / new.name / MANIFEST)["seed"] == 2
    assert touched(out, read_manifest(out / new.name / MANIFEST)) == []
    assert {path.name for path in out.iterdir()} == {new.name, f"{new.name}.ipynb"}
