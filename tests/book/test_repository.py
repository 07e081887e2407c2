"""What the repository promises about itself: layers, notebooks, data, lock, errata."""

from __future__ import annotations

import ast
import graphlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable

import pytest

from evolvingdp.book import data as datasets
from evolvingdp.book.checkout import Project, params_of
from support import REPOSITORY

LIBRARY = REPOSITORY / "lib" / "evolvingdp"
SOURCES = sorted(LIBRARY.rglob("*.py"))
NOTEBOOKS = Project().notebooks()
PAPERS = {"heavy_hitters", "evolving", "continual_mean", "sparse_vector"}
LAYERS = {
    "core": {"core"},
    "book": {"core", "book", "notebooks", "planning", "streams", "audit", *PAPERS},
    **{paper: {"core", paper} for paper in PAPERS},
    "audit": {"core", "audit", "streams", *PAPERS},
    "planning": {"core", "planning", *PAPERS},
    "streams": {"core", "streams", *PAPERS},
}


def imports(nodes: Iterable[ast.AST]) -> set[str]:
    """Modules of evolvingdp that `nodes` import, or names in them, as dotted names below evolvingdp."""
    names = []
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return {name.removeprefix("evolvingdp.") for name in names if name.startswith("evolvingdp.")}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(LIBRARY)))
def test_imports_run_one_way(path):
    layer, *rest = path.relative_to(LIBRARY).parts
    named = imports(ast.walk(ast.parse(path.read_text())))
    if layer in LAYERS:
        assert {name.split(".")[0] for name in named} <= LAYERS[layer]
    if layer == "book" and rest[0] not in ("rendering", "cli.py"):
        assert not [name for name in named if name.startswith("book.rendering")], "a run does not wait for what renders"


def test_no_modules_import_each_other_in_a_circle():
    modules = {path.relative_to(LIBRARY).with_suffix("").as_posix().replace("/", "."): path for path in SOURCES}
    graph = {}
    for module, path in modules.items():
        named = imports(ast.parse(path.read_text()).body)
        graph[module] = {
            next((name for name in (each, each.rpartition(".")[0]) if name in modules), module) for each in named
        }
    circles = {name: found - {name} for name, found in graph.items()}
    assert set(graphlib.TopologicalSorter(circles).static_order()) == set(modules)  # raises CycleError


def test_the_library_never_makes_a_generator_but_in_seeds():
    def makes(path):
        nodes = ast.walk(ast.parse(path.read_text()))  # a message may name what would work
        return any("default_rng" in (getattr(node, "id", ""), getattr(node, "attr", ""), *names(node)) for node in nodes)

    def names(node):
        return [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []

    makers = [path for path in SOURCES if makes(path) and path.name != "seeds.py"]
    assert makers == []


def code(notebook: str) -> list[dict]:
    """The notebook's cells of code."""
    cells = json.loads(Project().template(notebook).read_text())["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_notebooks_hold_no_outputs(notebook):
    assert not [cell for cell in code(notebook) if cell["outputs"] or cell["execution_count"]]


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_lines_of_code_are_as_wide_as_a_page_shows_at_1400_px(notebook):
    assert [line for cell in code(notebook) for line in cell["source"] if len(line.rstrip("\n")) > 88] == []


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_no_import_of_a_notebook_hides_a_parameter(notebook):
    trees = [ast.parse("".join(cell["source"])) for cell in code(notebook)]
    imported = {name.asname or name.name for tree in trees for name in ast.walk(tree) if isinstance(name, ast.alias)}
    assert imported & {*params_of(notebook).lines, "seed"} == set()


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_a_notebook_s_own_defaults_are_the_quick_preset(notebook):
    (parameters,) = [cell for cell in code(notebook) if "parameters" in cell["metadata"].get("tags", [])]
    namespace: dict = {}
    exec("".join(parameters["source"]), namespace)
    seed = namespace.pop("seed")
    params = params_of(notebook)
    given = {name for name in namespace if not name.startswith("__")}
    assert given == set(params.lines)
    assert params.from_namespace(namespace) == params.make("quick")
    assert seed == 0


def test_every_file_of_the_table_of_contents_exists_or_is_a_notebook_s_page():
    project = Project()
    assert set(project.pages()) == set(NOTEBOOKS)
    for file in project.contents():
        if not file.startswith("book/results/"):
            assert (REPOSITORY / f"{file}.md").is_file()


def test_the_lock_is_hashed_holds_no_address_and_covers_what_is_required():
    lock = (REPOSITORY / "requirements.lock").read_text()
    assert "://" not in lock
    blocks = re.split(r"\n(?=[a-z0-9])", lock.split("make lock\n")[1])
    assert all("--hash=sha256:" in block for block in blocks)
    locked = {re.match(r"[a-z0-9._-]+", block)[0] for block in blocks}
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    required = project["project"]["dependencies"] + [
        name for group in groups.values() for name in group if isinstance(name, str)
    ]
    assert {re.match(r"[A-Za-z0-9._-]+", name)[0].lower() for name in required} <= locked


def test_a_changed_table_is_caught(tmp_path):
    for name in ("README.md", *datasets.check(REPOSITORY / "data")):
        (tmp_path / name).write_bytes((REPOSITORY / "data" / name).read_bytes())
    (tmp_path / "brown_readings.csv").write_text("reading\n")
    with pytest.raises(datasets.PublishError, match=r"brown_readings.csv has sha256 .*, data/README.md says"):
        datasets.check(tmp_path)


def test_a_missing_corpus_without_a_network_is_one_clear_line(tmp_path):
    script = (
        "import nltk, sys; nltk.data.path[:] = []\n"
        "nltk.download = lambda *a, print_error_to=sys.stderr, **k: print('no network', file=print_error_to)\n"
        "from evolvingdp.book.cli import main; main(['data', 'brown', '--out', 'tables'])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 3
    assert done.stderr.startswith("Error: the Brown corpus was not found and could not be downloaded; set NLTK_DATA")
    assert done.stderr.count("\n") == 1


ERRATUM = re.compile(r"\bE-([A-Z]{2})-(\d+)\b")


def test_errata_code_and_tests_carry_the_same_ids():
    page = (REPOSITORY / "book" / "errata.md").read_text()
    entries = {entry.split(":")[0]: entry for entry in page.split("\n### E-")[1:]}
    entries = {f"E-{erratum}": entry for erratum, entry in entries.items()}
    tests = {
        name: f"E-{match[1]}-{match[2]}"
        for path in (REPOSITORY / "tests").rglob("*.py")
        for name, match in [(m[0], m) for m in re.finditer(r"(?<=def )test_E_([A-Z]{2})_(\d+)_\w+", path.read_text())]
    }
    assert set(entries) == set(tests.values())
    in_code: dict[str, set[str]] = {}
    for path in SOURCES:
        for match in ERRATUM.finditer(path.read_text()):
            in_code.setdefault(match[0], set()).add(path.relative_to(LIBRARY).as_posix())
    folders = {"HH": "heavy_hitters", "EV": "evolving", "CM": "continual_mean", "SV": "sparse_vector"}
    for erratum, entry in entries.items():
        found = re.search(
            r"\n\n:::\{dropdown\} .+\n:class-container: erratum\n\n"
            r"- \*\*Printed:\*\* .+\n- \*\*Used(?:\*\* \((.+?)\):|:\*\*) .+\n- \*\*Why:\*\* .+\n:::\n",
            entry,
        )
        assert found, f"{erratum} lacks what is printed (where), used (in which files) instead, or why"
        listed = {f"{folders[erratum[2:4]]}/{name}" for name in re.findall(r"`([a-z_/]+\.py)`", found[1] or "")}
        assert listed == in_code.get(erratum, set()), f"{erratum}: code that carries the id and code that the page names"
    assert set(in_code) <= set(entries)


def test_errata_are_listed_by_severity_and_located_as_the_papers_are():
    """The index at the top has every erratum once, under one severity; none is located by lines of our text."""
    page = (REPOSITORY / "book" / "errata.md").read_text()
    entries = re.findall(r"^\((e-\w+-\d+)\)=\n### (E-\w+-\d+): .*\n\n:::\{dropdown\} (.*)\n", page, re.MULTILINE)
    assert len(entries) == page.count("\n### E-")
    assert [erratum.lower() for _, erratum, _ in entries] == [anchor for anchor, _, _ in entries]
    index = page.split("## By severity")[1].split("\n(errata-in-common)=")[0]
    assert re.findall(r"^\*\*(\w+)\*\*: ", index, re.MULTILINE) == ["Privacy", "Accuracy", "Proof", "Notation"]
    listed = re.findall(r"\[(E-\w+-\d+)\]\(#(e-\w+-\d+)\)", index)
    assert sorted(listed) == sorted((erratum, anchor) for anchor, erratum, _ in entries)
    text_lines = re.compile(r"\(\d{3}\b|\d{3}-\d{3}|\blines? \d{3}")
    assert not [erratum for _, erratum, place in entries if text_lines.search(place)]


def test_nothing_names_a_path_of_a_machine_or_a_registry():
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in listed.stdout.split():
        path = REPOSITORY / name
        if path.is_file() and path.suffix not in (".gz", ".ico", ".png"):
            assert not re.search(r"/(root|work|home|Users)/\w|pypi\.[o]rg|python[h]osted", path.read_text()), name
