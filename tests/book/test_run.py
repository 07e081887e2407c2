"""Running notebooks: validated first, cached by what decides the output, whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pandas as pd
import papermill
import pytest
from click.testing import CliRunner
from serial import TABLES, alone, sweep

from evolvingdp.experiment import ParameterError, engine
from evolvingdp.publish.cli import main
from evolvingdp.publish.errors import NotebookError
from evolvingdp.publish.running import execute, kernels
from evolvingdp.publish.running.compute import compute
from evolvingdp.publish.running.folders import check_writable
from evolvingdp.publish.running.job import MANIFEST, Job, file_digest, read_manifest, touched
from evolvingdp.publish.showing import bundle
from evolvingdp.publish.sources import digest
from evolvingdp.publish.sources.project import Project, cells_of, params_of
from support import REPOSITORY

NOTEBOOK = "heavy_hitters/frequency_oracle"
TINY = {
    "n_users": "2000",
    "rows": "3",
    "width": "16",
    "repetitions": "2",
    "n_users_sweep": "1000,2e3",
    "epsilon_sweep": "[1, 2]",
    "width_sweep": "8, 16",
}
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
PARAMETERS = "\n".join(f"{name} = {value!r}" for name, value in params_of(NOTEBOOK).make().model_dump(mode="json").items())


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A project whose one notebook runs what a test says, with the real parameters."""
    monkeypatch.setenv("EVOLVINGDP_CACHE", str(tmp_path / "cache"))

    def make(*cells: str) -> Project:
        parameters = nbformat.v4.new_code_cell(PARAMETERS, id="parameters", metadata={"tags": ["parameters"]})
        body = [nbformat.v4.new_code_cell(source, id=f"cell-{number}") for number, source in enumerate(cells)]
        notebook = nbformat.v4.new_notebook(cells=[parameters, *body], metadata={"kernelspec": KERNEL})
        path = tmp_path / "notebooks" / f"{NOTEBOOK}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
        return Project(tmp_path)

    return make


def test_parameters_arrive_typed_the_kernel_looks_for_no_garbage_and_the_second_run_is_free(project):
    checked = project(
        "assert n_users == 10_000_000 and isinstance(n_users, int), n_users",
        "import gc\nassert epsilon == 1e-06 and not gc.isenabled()",
        "seed",
    )
    job = Job.make(checked, NOTEBOOK, "quick", {"n_users": "1e7", "epsilon": "1e-6"}, "3")
    assert execute.run(job) > 0
    executed = nbformat.read(job.store / "frequency_oracle.ipynb", as_version=4)
    assert executed.cells[-1].outputs[0].data["text/plain"] == "3"
    assert execute.run(job) == 0.0


def test_the_key_changes_with_everything_that_decides_the_output(project, monkeypatch):
    def key(here=None, preset="quick", overrides=None, seed=0):
        return Job.make(here or project("1"), NOTEBOOK, preset, overrides, seed).key

    keys = [key(), key(project("2")), key(project("1"), "paper"), key(overrides={"epsilon": 3}), key(seed=1)]
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]
    assert key(overrides={"epsilon": "2.0"}) == keys[0]  # what is typed in another way is the same


NOTEBOOKS = set(Project().notebooks())
LEDGER = "audit/verified_privacy"
RAPPOR, HEAVY_THRESH = "heavy_hitters/rappor", "evolving/heavy_thresh"
TREEHIST = "heavy_hitters/treehist"
BROWN = {*(name for name in NOTEBOOKS if name.startswith("heavy_hitters/")), HEAVY_THRESH}
BROWN |= {"sparse_vector/shifting_heavy_hitters", LEDGER}  # the ledger follows streams of any kind; their module reads it
EDITS = {
    "a mechanism": ("module", "evolvingdp.sparse_vector.adversary", {"sparse_vector/threshold_monitor", LEDGER}),
    "a mechanism of several notebooks": ("module", "evolvingdp.heavy_hitters.rappor", {RAPPOR, TREEHIST, LEDGER}),
    "an experiment's figures": ("module", "evolvingdp.heavy_hitters.experiments.frequency_oracle.figures", {NOTEBOOK}),
    "a notebook's module": ("module", "evolvingdp.notebooks.evolving.heavy_thresh", {HEAVY_THRESH}),
    "the named streams": ("module", "evolvingdp.core.seeds", NOTEBOOKS),
    "the look of figures": ("module", "evolvingdp.book.style", NOTEBOOKS),
    "what a page shows": ("module", "evolvingdp.publish.showing.page", NOTEBOOKS),
    "a bundle's BibTeX": ("module", "evolvingdp.publish.showing.citing", NOTEBOOKS),
    "how notebooks run": ("module", "evolvingdp.publish.running.execute", NOTEBOOKS),
    "how many run at once": ("module", "evolvingdp.publish.running.compute", set()),
    "rendering": ("module", "evolvingdp.publish.rendering.book", set()),
    "sweeping": ("module", "evolvingdp.publish.sweeping.grid", set()),
    "the command line": ("module", "evolvingdp.publish.cli", set()),
    "a table of Brown": ("file", "data/brown_words.csv.gz", BROWN),
    "the list of data": ("file", "data/README.md", set()),
    "the citation": ("file", "CITATION.cff", NOTEBOOKS),
    "the lock": ("file", "requirements.lock", set()),
    "numpy": ("package", "numpy", NOTEBOOKS),
    "what figures are drawn with": ("package", "pillow", NOTEBOOKS),
    "a package of one mechanism": ("package", "scikit-learn", {RAPPOR, TREEHIST, LEDGER}),
    "what it needs": ("package", "threadpoolctl", {RAPPOR, TREEHIST, LEDGER}),
    "a package of the tests": ("package", "hypothesis", set()),
    "a linter": ("package", "ruff", set()),
    "the book's theme": ("package", "sphinx-book-theme", set()),
    "the version": ("package", "evolvingdp", NOTEBOOKS),
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """The files outside of the library that a key may depend on."""
    copy = tmp_path_factory.mktemp("checkout")
    shutil.copytree(REPOSITORY / "data", copy / "data")
    for name in ("CITATION.cff", "requirements.lock"):
        shutil.copyfile(REPOSITORY / name, copy / name)
    return copy


def keys() -> dict[str, str]:
    return {notebook: Job.make(Project(REPOSITORY), notebook, "quick").key for notebook in NOTEBOOKS}


@pytest.fixture(scope="module")
def before(checkout) -> dict[str, str]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(digest, "REPOSITORY", checkout)
        return keys()


@pytest.mark.parametrize("edit", EDITS)
def test_each_kind_of_edit_runs_again_what_it_can_change_and_nothing_else(edit, checkout, before, monkeypatch):
    kind, name, expected = EDITS[edit]
    library, real = digest.Library(), metadata.version
    monkeypatch.setattr(digest, "REPOSITORY", checkout)
    monkeypatch.setattr(digest, "Library", lambda **_: library)
    if kind == "module":
        assert name in library.source
        library.source[name] += b"\n# edited\n"
    elif kind == "file":
        path = checkout / name
        content = path.read_bytes()
        path.write_bytes(content + b"\n")
    else:
        assert real(name)
        installed = digest.versions

        def bumped(names: tuple[str, ...]) -> dict[str, str]:
            return {package: "0" if package == name else found for package, found in installed(names).items()}

        monkeypatch.setattr(digest, "versions", bumped)
        monkeypatch.setattr(metadata, "version", lambda asked: "0" if asked == name else real(asked))
    try:
        after = keys()
    finally:
        if kind == "file":
            path.write_bytes(content)
    assert {notebook for notebook in NOTEBOOKS if before[notebook] != after[notebook]} == expected


def test_provenance_says_what_was_installed():
    made_of = digest.of_results(NOTEBOOK)
    assert {name: made_of["packages"][name] for name in ("numpy", "matplotlib", "papermill", "ipykernel")} == {
        name: metadata.version(name) for name in ("numpy", "matplotlib", "papermill", "ipykernel")
    }
    assert not {"ruff", "sphinx", "distributed", "galois"} & set(made_of["packages"])


def test_what_is_imported_belongs_to_the_package_that_python_says():
    imported = {name.partition(".")[0] for source in digest.Library().source.values() for name in digest.imports(source)}
    found = {name: one.metadata["Name"] for name, one in digest._distributions().items() if name in imported}
    assert found == {name: had[0] for name, had in metadata.packages_distributions().items() if name in imported}
    assert {"numpy": "numpy", "sklearn": "scikit-learn", "yaml": "PyYAML"}.items() <= found.items()


def test_a_failed_notebook_shows_its_traceback_and_leaves_nothing_behind(project, tmp_path):
    job = Job.make(project("half = 1", "raise RuntimeError('the third term diverged')"), NOTEBOOK, "quick")
    with pytest.raises(NotebookError, match="RuntimeError: the third term diverged") as caught:
        execute.run(job)
    assert "heavy_hitters/frequency_oracle failed" in str(caught.value)
    assert not job.cached
    assert list((tmp_path / "cache" / "runs").iterdir()) == []


def test_a_failed_notebook_fails_the_build_after_the_others_have_ended(project, capfd):
    broken = Job.make(project("assert epsilon != 3.0, 'three is broken'"), NOTEBOOK, "quick", {"epsilon": 3})
    fine = Job.make(broken.project, NOTEBOOK, "quick", {"epsilon": 4})
    with pytest.raises(NotebookError, match="1 of 2 notebooks failed: heavy_hitters/frequency_oracle"):
        compute([broken, fine], print, workers=2)
    assert fine.cached
    said = capfd.readouterr().out
    assert "failed after" in said
    assert "three is broken" in said
    assert "done in" in said
    assert "2 notebooks, 2 executed" in said


def test_a_result_that_stands_is_not_touched_by_a_failed_run(project, tmp_path):
    good = Job.make(project("1"), NOTEBOOK, "quick")
    execute.run(good)
    execute.export(good, tmp_path / "out")
    before = (tmp_path / "out" / "frequency_oracle.ipynb").read_bytes()
    with pytest.raises(NotebookError):
        execute.run(Job.make(project("1/0"), NOTEBOOK, "quick"))
    assert (tmp_path / "out" / "frequency_oracle.ipynb").read_bytes() == before


BAD = {
    "unknown name": (["-p", "epsilom", "1"], "unknown parameter 'epsilom'; did you mean 'epsilon'?"),
    "wrong type": (["-p", "n_users", "many"], "n_users must be an integer, got 'many'"),
    "half a user": (["-p", "n_users", "1000.5"], "n_users must be an integer, got '1000.5'"),
    "nan": (["-p", "epsilon", "nan"], "epsilon must be a finite number, got 'nan'"),
    "negative": (["-p", "epsilon", "-1"], "epsilon must be >= 1e-06, got '-1'"),
    "zero": (["-p", "rows", "0"], "rows must be >= 1, got '0'"),
    "zero in a list": (["-p", "epsilon_sweep", "1,0"], "epsilon_sweep must be >= 1e-06, got '0'"),
    "out of range": (["-p", "epsilon", "21"], "epsilon must be <= 20, got '21'"),
    "no power of two": (["-p", "width", "1000"], "width must be a power of two, got 1000; 512 or 1024 would work"),
    "no such choice": (["-p", "compression", "zip"], "compression must be one of 'none' or 'hadamard', got 'zip'"),
    "too large": (["-p", "width", str(2**40)], "fit here: lower rows or width"),
    "twice": (["-p", "rows", "3", "-p", "rows", "4"], "each parameter may be set once, rows is set twice"),
    "seed twice": (["-p", "seed", "3", "--seed", "5"], "each parameter may be set once, seed is set twice"),
    "a value twice": (["-p", "epsilon_sweep", "2,1,2"], "epsilon_sweep must hold each value once, got 2.0, 1.0, 2.0"),
    "nan in a list": (["-p", "width_sweep", "8,nan"], "Error: width_sweep must be an integer, got 'nan'\n"),
    "no commas": (["-p", "width_sweep", "8 16"], "width_sweep must be values separated by commas, got '8 16'"),
    "power in a list": (["-p", "width_sweep", "8,9"], "width_sweep[1] must be a power of two, got 9; 8 or 16 would work"),
    "huge": (["-p", "n_users", "1e300"], "n_users must be <= 1e+10, got 1e+300"),
    "too small a sweep": (["-p", "n_users_sweep", "1,2"], "n_users_sweep must be >= 1000, got '1'"),
    "too many runs": (["-p", "repetitions", "1e12"], "repetitions must be <= 10000, got 1000000000000"),
    "hundreds of digits": (["-p", "n_users", "1" + "0" * 400], "must be <= 1e+10, got '1000"),
    "a long name": (["--out", "a" * 300], "File name too long: "),
    "no name": (["-p", "", "1"], "unknown parameter ''; there are n_users, epsilon"),
    "empty out": (["--out", ""], "out must name a folder"),
    "out among the sources": (["--out", "notebooks/heavy_hitters"], "out must lie outside the book's own sources"),
    "unknown preset": (["--preset", "huge"], "preset must be one of quick, paper, got 'huge'"),
    "bad seed": (["--seed", "-1"], "seed must be an integer >= 0, got -1"),
    "empty seed": (["--seed", ""], "seed must be an integer >= 0, got ''"),
    "word for a seed": (["--seed", "lucky"], "seed must be an integer >= 0, got 'lucky'"),
    "no address": (["--scheduler", "", "--seed", "987654"], "got '' (no address)"),
    "two engines": (["--workers", "2", "--scheduler", "tcp://h:1"], "workers are those of the scheduler tcp://h:1"),
    "unwritable out": (["--out", "README.md/inside"], "out must be a folder that can be written, got"),
}


@pytest.mark.parametrize("kind", BAD)
def test_run_refuses_bad_input_with_one_line_before_anything_runs(kind, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr(execute, "run", lambda job: pytest.fail("it ran"))
    arguments, message = BAD[kind]
    result = CliRunner().invoke(main, ["run", NOTEBOOK, *arguments])
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_missing_notebook_is_told_the_nearest_one():
    result = CliRunner().invoke(main, ["run", "heavy_hitters/frequency_orakel"])
    assert result.exit_code == 1
    assert result.stderr == (
        "Error: no notebook 'heavy_hitters/frequency_orakel'; did you mean 'heavy_hitters/frequency_oracle'?\n"
    )


@pytest.mark.parametrize("name", [f"notebooks/{NOTEBOOK}.ipynb", f"./notebooks/{NOTEBOOK}.ipynb", NOTEBOOK])
def test_a_notebook_may_be_named_by_its_path(name):
    assert Project().notebook(name) == NOTEBOOK


def test_what_people_type_is_understood():
    params = params_of(NOTEBOOK).make(overrides=TINY | {"epsilon": " 1e-1 "})
    assert params.epsilon == 0.1
    assert params.n_users_sweep == (1000, 2000)
    assert params.epsilon_sweep == (1.0, 2.0)
    with pytest.raises(ParameterError, match="epsilon must be a number, got True"):
        params_of(NOTEBOOK).make(overrides={"epsilon": True})


def test_params_shows_every_parameter_with_symbol_range_and_both_presets():
    result = CliRunner().invoke(main, ["params", NOTEBOOK])
    assert result.exit_code == 0
    for name in params_of(NOTEBOOK).model_fields:
        assert name in result.stdout
    for word in ("symbol", "range", "unit", "default", "paper", "meaning", "$n$", ">= 100", "10000000"):
        assert word in result.stdout


@pytest.mark.parametrize("command", ["", "run", "sweep", "params", "book", "pdf", "zip", "audit", "data", "data brown"])
def test_every_command_has_help_with_an_example(command):
    result = CliRunner().invoke(main, [*command.split(), "--help"])
    assert result.exit_code == 0
    assert "Example:" in result.stdout


@pytest.fixture(scope="module")
def twice(tmp_path_factory) -> tuple[list[Path], Path, str]:
    """What a run wrote, twice: as typed, and by the command of a sweep's point. And the sweep's folder, and the point."""
    root = tmp_path_factory.mktemp("twice")
    swept, fixed = root / "swept", [word for pair in list(TINY.items())[:-2] for word in ("-p", *pair)]
    grid = ["--grid", "epsilon_sweep=1,2;2,4", "--grid", "width_sweep=4,8;8,16", *fixed, "--seed", "3"]
    with pytest.MonkeyPatch.context() as monkeypatch:
        alone(monkeypatch)
        assert sweep(NOTEBOOK, *grid, "--out", swept).exit_code == 0
    values = pd.read_parquet(swept / "values.parquet")
    (point,) = values[(values.param_epsilon_sweep == "1.0,2.0") & (values.param_width_sweep == "8,16")].point
    table = pd.read_parquet(swept / "sweep.parquet")
    (command,) = table[table.point == point].command.unique()
    typed = ["run", NOTEBOOK, *(word for pair in TINY.items() for word in ("-p", *pair)), "--seed", "3"]
    outs = []
    for arguments in (typed, shlex.split(command)[1:]):
        outs.append(root / f"out-{len(outs)}")
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setenv("EVOLVINGDP_CACHE", str(root / f"cache-{len(outs)}"))
            result = CliRunner().invoke(main, [*arguments, "--out", str(outs[-1])])
        assert result.exit_code == 0, result.output
    return outs, swept, point


def test_a_real_run_writes_everything_and_twice_the_same(twice):
    outs, *_ = twice
    names = sorted(path.relative_to(outs[0]).as_posix() for path in outs[0].rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(outs[1]).as_posix() for path in outs[1].rglob("*") if path.is_file())
    figures = {name.split("/")[1].rsplit(".", 1)[0] for name in names if name.endswith(".svg")}
    assert len(figures) == 5
    for figure in figures:
        assert {f"frequency_oracle/{file}" for file in bundle.names(figure).values()} <= set(names)
    for name in names:
        first, second = (out.joinpath(name).read_text(errors="replace") for out in outs)
        if name.endswith(("manifest.json", "provenance.json", ".ipynb")):  # run times may differ, nothing else
            first, second = (_without_run_times(text, name) for text in (first, second))
        assert first == second, name
    claims = json.loads((outs[0] / "frequency_oracle" / "claims.json").read_text())
    assert {"claim", "holds", "value", "bound"} <= set(claims[0])
    record = json.loads((outs[0] / "frequency_oracle" / "provenance.json").read_text())
    assert record["params"]["n_users"] == 2000
    assert record["seed"] == 3
    assert "-p rows 3" in record["command"]
    cells = nbformat.read(outs[0] / "frequency_oracle.ipynb", as_version=4).cells
    shown = [output.data for cell in cells for output in cell.get("outputs", []) if "data" in output]
    assert sum("<strong>Figure <code>" in data.get("text/html", "") for data in shown) == 5, "captions"
    assert sum("<table>" in data.get("text/html", "") for data in shown) == 2
    assert not any("text/x-myst" in data or "text/markdown" in data for data in shown)
    assert not any("{value}" in cell.source for cell in cells)


def _without_run_times(text: str, name: str) -> str:
    if name.endswith("manifest.json"):
        manifest = json.loads(text)
        return json.dumps([manifest["key"], [file for file in manifest["files"] if file.endswith("csv")]])
    return re.sub(r'"run_seconds": [\d.]+|in \d+ s\.', "", text)


def test_a_point_of_a_sweep_is_what_its_own_command_computes(twice):
    (_, out), swept, point = twice
    table, values, claims = (rows[rows.point == point] for rows in (pd.read_parquet(swept / name) for name in TABLES))
    (command,) = table.command.unique()
    assert " --seed 3 " in command
    assert "-p n_users 2000" in command
    assert "-p width_sweep 8,16" in command
    run = out / "frequency_oracle"
    columns = pd.read_csv(run / "results.csv", nrows=0).columns
    assert table[columns].to_csv(index=False, lineterminator="\n") == (run / "results.csv").read_text()
    theirs = json.loads((run / "values.json").read_text())
    assert values.iloc[0][list(theirs)].to_dict() == theirs
    verdicts = [(claim["claim"], claim["value"], claim["holds"]) for claim in json.loads((run / "claims.json").read_text())]
    assert list(zip(claims.claim, claims.value, claims.holds, strict=True)) == verdicts


def test_papermill_by_hand_works_and_shows_the_figures(tmp_path):
    values = {name: (value if name != "epsilon_sweep" else [1.0, 2.0]) for name, value in TINY.items()}
    done = papermill.execute_notebook(
        str(Project().template(NOTEBOOK)), str(tmp_path / "out.ipynb"), values, progress_bar=False, kernel_name="python3"
    )
    shown = [output for cell in done.cells if cell.cell_type == "code" for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in shown) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["out.ipynb"]


def test_papermill_by_hand_is_told_what_is_wrong(tmp_path):
    """Papermill only warns of a name that the notebook does not have: the notebook itself refuses it."""
    values, out = {"epsilon": -1, "epsilom": 3, "seed": 2}, str(tmp_path / "out.ipynb")
    said = "epsilon must be >= 1e-06, got -1; unknown parameter 'epsilom'; did you mean 'epsilon'?"
    with pytest.raises(papermill.PapermillExecutionError, match=re.escape(said)):
        papermill.execute_notebook(str(Project().template(NOTEBOOK)), out, values, progress_bar=False)


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
    params = params_of(NOTEBOOK)
    namespace = params.make().model_dump() | {"epsilom": 3, "row": 3, "half": 1, "seed": 1, "In": ["", PARAMETERS, cell]}
    if refused:
        with pytest.raises(ParameterError, match=r"unknown parameter '(epsilom|row)'"):
            params.from_namespace(namespace)
    else:
        assert params.from_namespace(namespace) == params.make()


def test_what_evolvingdp_did_not_write_is_not_replaced(project, tmp_path):
    out = tmp_path / "out"
    (out / "frequency_oracle").mkdir(parents=True)
    (out / "frequency_oracle" / "notes.txt").write_text("mine")
    with pytest.raises(ParameterError, match=r"out holds .*frequency_oracle', which evolvingdp did not write"):
        check_writable(out, name="frequency_oracle")
    job = Job.make(project("1"), NOTEBOOK, "quick")
    execute.run(job)
    execute.export(job, tmp_path / "ours")
    check_writable(tmp_path / "ours", name="frequency_oracle")  # ours may be replaced


def test_results_of_another_run_are_not_replaced(tmp_path, monkeypatch):
    """The command refuses before it computes; the same run, and one beside it of another name, may be written."""
    out, ran = tmp_path / "out", []
    monkeypatch.setattr(execute, "run", lambda job, **_: ran.append(job) or 0.0)
    monkeypatch.setattr(execute, "export", lambda job, out, **_: None)
    earlier = Job.make(Project(), NOTEBOOK, "quick", {"rows": 5}, 3)
    folder = out / "frequency_oracle"
    folder.mkdir(parents=True)
    manifest = {"key": "", "notebook": NOTEBOOK, "params": earlier.params.model_dump(mode="json"), "seed": 3, "files": {}}
    (folder / MANIFEST).write_text(json.dumps(manifest))

    def run(*arguments, notebook=NOTEBOOK):
        return CliRunner().invoke(main, ["run", notebook, *arguments, "--out", str(out)])

    for arguments, there, here in (
        (["-p", "rows", "7", "--seed", "3"], "rows 5", "rows 7"),
        (["-p", "rows", "5"], "seed 3", "seed 0"),
        (["-p", "rows", "7"], "rows 5, seed 3", "rows 7, seed 0"),
    ):
        done = run(*arguments)
        assert done.exit_code == 1
        told = f"out holds another run in {str(folder)!r}, with {there} where this one has {here}; choose another folder"
        assert done.stderr.startswith(f"Error: {told}")
        assert done.stderr.count("\n") == 1
    assert ran == []
    assert run("-p", "rows", "5", "--seed", "3").exit_code == 0
    assert run(notebook="evolving/thresh").exit_code == 0
    assert len(ran) == 2


@pytest.mark.parametrize("damage", ["notebook", "manifest", "missing"])
def test_a_damaged_cache_entry_is_computed_again(project, damage):
    job = Job.make(project("1 + 1"), NOTEBOOK, "quick")
    execute.run(job)
    broken = {"notebook": "frequency_oracle.ipynb", "manifest": "manifest.json"}.get(damage)
    if broken:
        (job.store / broken).write_text("{")
    else:
        (job.store / "frequency_oracle.ipynb").unlink()
    assert not job.cached
    assert execute.run(job) > 0
    assert job.cached


def test_a_notebook_that_changes_while_it_runs_is_not_cached(project, tmp_path):
    template = tmp_path / "notebooks" / f"{NOTEBOOK}.ipynb"
    change = f"from pathlib import Path; p = Path({str(template)!r}); p.write_text(p.read_text().replace('1 + 1', '1 + 2'))"
    job = Job.make(project(change, "1 + 1"), NOTEBOOK, "quick")
    with pytest.raises(NotebookError, match="sources changed while it ran"):
        execute.run(job)
    assert not job.cached


def test_mistakes_in_the_repository_are_one_line(tmp_path):
    (tmp_path / "_toc.yml").write_text("root: [")
    with pytest.raises(ParameterError, match=r"_toc.yml is not YAML"):
        Project(tmp_path).contents()
    with pytest.raises(ParameterError, match=r"needs the module evolvingdp.heavy_hitters.experiments.nothing"):
        params_of("heavy_hitters/nothing")
    broken = tmp_path / "broken.ipynb"
    broken.write_text("{")
    with pytest.raises(ParameterError, match=r"broken.ipynb is not a notebook"):
        cells_of(broken)


def test_run_tells_the_notebook_which_cluster_to_share_its_repetitions_over(project, tmp_path, monkeypatch):
    asked = []

    @contextmanager
    def connected(*what):
        asked.append(what)
        yield SimpleNamespace(scheduler=SimpleNamespace(address="tcp://here:1"))

    shown = project("import os", "print('shared over', os.environ.get('EVOLVINGDP_SCHEDULER'))")
    monkeypatch.setattr("evolvingdp.publish.sources.project.Project", lambda: shown)
    monkeypatch.setattr("evolvingdp.publish.sweeping.cluster.connected", connected)
    for _ in range(2):  # the second time it is computed already: no cluster is started
        command = ["run", NOTEBOOK, "--workers", "3", "--out", str(tmp_path / "out")]
        assert CliRunner().invoke(main, command).exit_code == 0
    assert asked == [(None, 3, NOTEBOOK)]
    assert "shared over tcp://here:1" in (tmp_path / "out" / "frequency_oracle.ipynb").read_text()
    assert engine.SCHEDULER not in os.environ


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
    compute([Job.make(shown, NOTEBOOK, "quick", seed=seed) for seed in (0, 1)], print, workers=2)  # by new processes


@pytest.mark.parametrize("forks", [True, False])
def test_kernels_have_what_all_import_and_read_the_library_s_files_themselves(forks, project, monkeypatch):
    if not forks:
        monkeypatch.setattr(kernels, "_LAUNCHER", ["another kernel"])
    told = "import sys\nloaded = set(sys.modules)\n{'pandas', 'scipy.stats', 'matplotlib.figure'} <= loaded"
    own = "{name for name in loaded if name.startswith('evolvingdp.') and '.publish' not in name}"
    job = Job.make(project(told, own, "', '.join(filter(None, sys.path))"), NOTEBOOK, "quick")
    execute.run(job)
    cells = nbformat.read(job.store / "frequency_oracle.ipynb", as_version=4).cells[-3:]
    asked = [sys.executable, "-P", "-c", "import sys; print(', '.join(filter(None, sys.path)))"]
    path = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    assert [cell.outputs[0].data["text/plain"] for cell in cells] == [str(forks), "set()", repr(path)]


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_a_kernel_needs_no_port_that_another_process_may_take(transport, project, tmp_path, monkeypatch):
    if transport == "tcp":  # where a file for a socket would have too long a name
        (tmp_path / ("t" * 100)).mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / ("t" * 100)))
    told = "import ipykernel, json\njson.loads(ipykernel.get_connection_info())['transport']"
    job = Job.make(project(told), NOTEBOOK, "quick")
    execute.run(job)
    executed = nbformat.read(job.store / "frequency_oracle.ipynb", as_version=4)
    assert executed.cells[-1].outputs[0].data["text/plain"] == repr(transport)


def test_a_cache_may_be_named_as_people_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVOLVINGDP_CACHE", "here")
    assert Project().cache == tmp_path / "here" / "runs"
    monkeypatch.setenv("EVOLVINGDP_CACHE", "")
    assert Project().cache == REPOSITORY / ".cache" / "runs"


def test_results_may_be_written_here(project, tmp_path, monkeypatch):
    shown = project("1")
    monkeypatch.setattr("evolvingdp.publish.sources.project.Project", lambda: shown)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    done = CliRunner().invoke(main, ["run", NOTEBOOK, "--out", "."])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "here" / "frequency_oracle" / MANIFEST).is_file()


@pytest.mark.parametrize("step", range(4))
def test_whatever_stops_the_writing_of_results_no_page_is_half_or_of_another_run(step, tmp_path, monkeypatch):
    """The page of an older run gives way to a newer one; the disk is full at one of the steps."""
    monkeypatch.setenv("EVOLVINGDP_CACHE", str(tmp_path / "cache"))
    jobs = [Job.make(Project(), NOTEBOOK, "quick", seed=seed) for seed in (1, 2)]
    for job in jobs:
        (job.store / job.name).mkdir(parents=True)
        (job.store / job.name / "results.csv").write_text(f"{job.seed}\n")
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(f"# Seed {job.seed}", id="title")])
        nbformat.write(notebook, job.store / f"{job.name}.ipynb")
        files = {f"{job.name}/results.csv": file_digest(job.store / job.name / "results.csv")}
        manifest = {"key": job.key, "notebook": NOTEBOOK, "params": job.params.model_dump(mode="json"), "seed": job.seed}
        (job.store / MANIFEST).write_text(json.dumps(manifest | {"files": files}))
    old, new = jobs
    out = tmp_path / "out"
    execute.export(old, out)
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
            execute.export(new, out)
    monkeypatch.undo()
    monkeypatch.setenv("EVOLVINGDP_CACHE", str(tmp_path / "cache"))
    manifest = read_manifest(out / old.name / MANIFEST)
    assert touched(out, manifest) in ([], [f"{old.name}.ipynb"]) if manifest else not (out / f"{old.name}.ipynb").exists()
    execute.export(new, out)
    assert read_manifest(out / new.name / MANIFEST)["seed"] == 2
    assert touched(out, read_manifest(out / new.name / MANIFEST)) == []
    assert {path.name for path in out.iterdir()} == {new.name, f"{new.name}.ipynb"}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "results.csv"), "No space left on device: results.csv"),
        (
            shutil.Error([("a.csv", "b.csv", "[Errno 28] No space left on device: 'b.csv'")]),
            "the results could not be copied: [Errno 28] No space left on device: 'b.csv'",
        ),
    ],
)
def test_a_full_disk_is_one_line(error, said, monkeypatch, tmp_path):
    def full(job):
        raise error

    monkeypatch.setattr(execute, "run", full)
    done = CliRunner().invoke(main, ["run", NOTEBOOK, "-p", "rows", "9", "--out", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert done.stderr == f"Error: {said}\n"
