"""Imports: mechanisms need numpy and scipy, a command what it uses; and an installed copy works."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support import REPOSITORY

PAPERS = ("heavy_hitters", "evolving", "continual_mean", "sparse_vector")
ABSENT = ("psutil", "yaml", "pydantic", "papermill", "distributed", "matplotlib", "seaborn", "sklearn", "nltk", "click")
EVERY_MECHANISM = f"""
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys({ABSENT!r}))  # importing one of them raises ModuleNotFoundError
for paper in {PAPERS!r}:
    package = importlib.import_module(f"evolvingdp.{{paper}}")
    names = [f"evolvingdp.{{paper}}.{{module.name}}" for module in pkgutil.iter_modules(package.__path__)]
    for name in names:
        if not name.endswith(".experiments"):
            importlib.import_module(name)
    assert package.__all__ == sorted(package.__all__)
    assert all(getattr(package, name) is not None for name in package.__all__)
import evolvingdp.core.checks, evolvingdp.core.noise, evolvingdp.core.accounting
import evolvingdp.audit, evolvingdp.streams
assert len(evolvingdp.streams.read_counts("inaugural").dates) == 59
print(len(sys.modules))
"""
WHAT_A_COMMAND_IMPORTS = """
import sys
from evolvingdp.book.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    print(end.code or 0, *sorted({name.partition(".")[0] for name in sys.modules}))
"""
SLOW = {"pydantic", "scipy", "pandas", "matplotlib", "seaborn", "papermill", "distributed", "pyarrow", "sklearn", "IPython"}


def python(*arguments: str, cwd: Path = REPOSITORY, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=os.environ | environment, capture_output=True, text=True
    )


def test_every_public_mechanism_is_imported_where_only_numpy_scipy_and_pandas_are():
    done = python("-c", EVERY_MECHANISM)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("command", "code", "needed"),
    [
        (["--help"], 0, {"click"}),
        (["plan", "--help"], 0, {"click", "scipy"}),
        (["plan", "mean", "--epsilon", "-1"], 2, {"click", "scipy"}),
        (["run", "heavy_hitters/treehist", "-p", "epsilom", "1"], 2, {"click"}),
        (["run", "heavy_hitters/bitstogram", "-p", "epsilon", "-1"], 2, {"click"}),
        (["run", "evolving/thresh", "-p", "n_users", "many"], 2, {"click"}),
        (["run", "continual_mean/past_the_paper", "-p", "delta", "2"], 2, {"click"}),
        (["run", "sparse_vector/shifting_heavy_hitters", "--preset", "huge"], 2, {"click"}),
        (["run", "audit/verified_privacy", "--seed", "-1"], 2, {"click"}),
        (["sweep", "evolving/thresh", "--grid", "epsilon=-1", "--out", "x"], 2, {"click"}),
        (["params", "heavy_hitters/treehist"], 0, {"click", "tabulate"}),
    ],
)
def test_help_and_a_refused_parameter_wait_for_nothing_large(command, code, needed):
    done = python("-c", WHAT_A_COMMAND_IMPORTS, *command)
    status, *imported = done.stdout.splitlines()[-1].split()
    assert int(status) == code, done.stderr
    assert needed <= set(imported)
    assert not SLOW - needed & set(imported)
    assert "numpy" not in imported or command != ["--help"]


def test_who_runs_notebooks_waits_for_nothing_that_only_notebooks_need():
    imported = set(python("-c", "import sys, evolvingdp.book.running; print(*sys.modules)").stdout.split())
    assert not {"papermill", "nbformat", *SLOW} & imported


def test_a_plan_waits_for_no_laws_of_scipy_stats():
    """Which take half as long to load as all the rest. Seen to fail with nbinom's quantiles in a monitor's price."""
    ask = (
        "import sys; from evolvingdp.planning import Question, plan; asked = 'hot curator', 'hot shuffler', 'words curator';"
        "[plan(Question(*each.split(), users=50_000, periods=4)) for each in asked]; print(*sys.modules)"
    )
    assert "scipy.stats" not in python("-c", ask).stdout.split()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an ordinary, not editable, installation puts beside other packages."""
    folder = tmp_path_factory.mktemp("wheel")
    done = python("-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(sources(folder)))
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def sources(folder: Path) -> Path:
    """A copy, since building writes beside its sources; with what an earlier build left of a module that is gone."""
    copy = folder / "sources"
    (copy / "build" / "lib" / "evolvingdp").mkdir(parents=True)
    (copy / "build" / "lib" / "evolvingdp" / "gone.py").touch()
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=REPOSITORY, capture_output=True, text=True)
    for name in names.stdout.splitlines():
        if (name.startswith(("lib/", "data/")) or "/" not in name) and (REPOSITORY / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((REPOSITORY / name).read_bytes())
    return copy


def test_an_installed_library_has_its_data_audits_and_plans(installed, tmp_path):
    assert not (installed / "evolvingdp" / "gone.py").exists()
    script = "import evolvingdp; from evolvingdp.core import brown; print(evolvingdp.__file__, len(brown.words()))"
    done = python("-c", script, cwd=tmp_path, PYTHONPATH=str(installed))
    assert done.stdout.split() == [str(installed / "evolvingdp" / "__init__.py"), "25992"], done.stderr
    (tmp_path / "mine.py").write_text("def release(value, rng):\n    return value + rng.laplace()\n")
    command = ["audit", "mine.py:release", "--inputs", "0, 1", "--epsilon", "1", "--runs", "1000"]
    done = python("-m", "evolvingdp", *command, cwd=tmp_path, PYTHONPATH=str(installed))
    assert done.returncode == 0, done.stderr
    assert "not refuted" in done.stdout
    done = python("-m", "evolvingdp", "plan", "mean", cwd=tmp_path, PYTHONPATH=str(installed))
    assert "Best: each user once" in done.stdout, done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "run evolving/thresh",
        "sweep evolving/thresh --grid epsilon=1,2 --out x",
        "params evolving/thresh",
        "book",
        "pdf",
        "zip",
        "data",
    ],
)
def test_an_installed_command_that_needs_the_notebooks_says_so_in_one_line(installed, tmp_path, command):
    """Also where only what the library itself asks for is installed beside it."""
    absent = dict.fromkeys(set(ABSENT) - {"click"})
    bare = f"import sys; sys.modules.update({absent}); from evolvingdp.book.cli import main; main()"
    done = python("-c", bare, *command.split(), cwd=tmp_path, PYTHONPATH=str(installed))
    assert done.returncode == 2
    assert done.stderr == (
        "Error: this command needs the book's notebooks, which no installed package has: "
        "clone the repository, run make there\n"
    )
