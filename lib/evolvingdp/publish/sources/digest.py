"""What decides a result: the modules that it imports, the data that they read, the packages as installed.

An edit elsewhere, in another paper, in a package that is only built or tested with, in how pages are rendered, changes no
key and runs no notebook again.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import evolvingdp
from evolvingdp.book import cell
from evolvingdp.book.files import PublishError
from evolvingdp.core.tables import DATA

LIBRARY = Path(evolvingdp.__file__).parent
REPOSITORY = LIBRARY.parents[1]  # an editable install: lib/ stands in the repository
RUNNER = "evolvingdp.book.running"  # every notebook passes through it
PAGE = "evolvingdp.publish.showing.page"  # every notebook imports it
_KERNEL = ("ipykernel",)  # started, not imported
_HOLDS = (ast.stmt, ast.excepthandler, ast.match_case)  # what can hold statements
_WITHOUT = {"evolvingdp", "distributed"}  # its source counts; sharing repetitions between processes changes no number


def checkout() -> Path:
    """The repository that this package is installed from; raises PublishError where it is a copy, without the notebooks."""
    if os.environ.get("EVOLVINGDP_NOTEBOOKS"):
        return notebooks_folder().parent
    if not (REPOSITORY / "_toc.yml").is_file():
        raise PublishError(
            "this command needs the book's notebooks, which no installed package has: clone the repository, run make there"
        )
    return REPOSITORY


def notebooks_folder() -> Path:
    """Where the notebooks are that this process runs."""
    return Path(os.environ.get("EVOLVINGDP_NOTEBOOKS") or REPOSITORY / "notebooks")


def digest_files(paths: Iterable[Path], relative_to: Path) -> str:
    """SHA-256 over the names and contents of `paths`, in order of name."""
    return _digest({path.relative_to(relative_to).as_posix(): path.read_bytes() for path in paths})


def _digest(contents: dict[str, bytes]) -> str:
    total = hashlib.sha256()
    for name in sorted(contents):
        total.update(f"{name}\0".encode())
        total.update(hashlib.sha256(contents[name]).digest())
    return total.hexdigest()


class Library:
    """The package's source as it was read when the object was made."""

    def __init__(self, folder: Path = LIBRARY, notebooks: Path | None = None) -> None:
        self.source = {
            _dotted(where, name, folder): Path(where, name).read_bytes()
            for where, _, files in os.walk(folder)
            for name in files
            if name.endswith(".py")
        }
        for path in (notebooks or notebooks_folder()).glob("*/*.py"):
            self.source[f"evolvingdp.notebooks.{path.parent.name}.{path.stem}"] = path.read_bytes()

    def closure(self, *start: str) -> set[str]:
        """The modules among `start` and all of evolvingdp that they import, at their top or in a function."""
        found, waiting = set[str](), list(start)
        while waiting:
            name = self.behind(waiting.pop())
            if name and name not in found:
                found.add(name)
                waiting += [*self.imports(name), name.rpartition(".")[0]]
        return found

    def imports(self, name: str) -> list[str]:
        """What the module `name` imports of evolvingdp: modules, or names in them."""
        return [named for named in imports(self.source[name]) if named.startswith("evolvingdp.")]

    def behind(self, name: str) -> str:
        """The module called `name`, or that holds it, or that a package's `attach` names for it; empty if there is none."""
        package, dot, attribute = name.rpartition(".")
        name = f"{package}{dot}{_attached(self.source.get(package, b'')).get(attribute, attribute)}"
        while name and name not in self.source:
            name = name.rpartition(".")[0]
        return name

    def digest(self, modules: Iterable[str]) -> str:
        return _digest({name: self.source[name] for name in modules})

    def code(self, modules: Iterable[str]) -> str:
        """Their digest without docstrings, whose words change no number."""
        return _digest({name: _undocumented(self.source[name]) for name in modules})

    def data(self, modules: Iterable[str]) -> str:
        """Digest of the files of data/ that the source of `modules` names."""
        text = b"".join(self.source[name] for name in modules)
        read = [path for path in DATA.glob("*.csv*") if f'"{path.name}"'.encode() in text]
        return digest_files(read, DATA.parent)

    def packages(self, modules: Iterable[str]) -> dict[str, str]:
        """The installed versions of what `modules` import, and of what that needs in turn."""
        top = {entry.partition(".")[0] for name in modules for entry in imports(self.source[name])}
        installed = _distributions()
        named = (installed[name].metadata["Name"] for name in top - _WITHOUT if name in installed)
        return versions(tuple(sorted((*_KERNEL, *named))))


def _dotted(where: str, name: str, folder: Path) -> str:
    inside = where.removeprefix(str(folder)).replace(os.sep, ".")
    return f"{folder.name}{inside}.{name.removesuffix('.py')}".removesuffix(".__init__")


def _statements(source: bytes) -> Iterator[ast.AST]:
    """The module and every statement in it, without the expressions in these, which are most of it."""
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, _HOLDS)]


@cache
def _undocumented(source: bytes) -> bytes:
    lines = source.splitlines(keepends=True)
    for node in _statements(source):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            first, last = node.body[0].lineno, node.body[0].end_lineno or node.body[0].lineno
            lines[first - 1 : last] = [b""] * (last - first + 1)
    return b"".join(lines)


@cache
def imports(source: bytes) -> tuple[str, ...]:
    """The dotted names that `source` imports, at its top or in a function: of `from a import b` it is a.b."""
    named = []
    for node in _statements(source):
        if isinstance(node, ast.ImportFrom):
            named += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            named += [alias.name for alias in node.names]
    return tuple(named)


@cache
def _attached(source: bytes) -> dict[str, str]:
    """name -> module, of a package whose `__init__` calls `core.public.attach`."""
    if b"attach" not in source:  # as in most files
        return {}
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    attach = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "attach"]
    return {name: str(entry.arg) for call in attach for entry in call.keywords for name in ast.literal_eval(entry.value)}


@cache
def _distributions() -> dict[str, metadata.Distribution]:
    """What can be imported -> what is installed that has it, as metadata.packages_distributions says more slowly."""
    found: dict[str, metadata.Distribution] = {}
    for one in metadata.distributions():
        named = (one.read_text("top_level.txt") or "").split()
        record = (one.read_text("RECORD") or "").splitlines()  # PATH,DIGEST,SIZE
        for name in named or {file.partition("/")[0] for line in record if (file := line.partition(".py,")[0]) != line}:
            found.setdefault(name, one)
    return found


@cache
def versions(names: tuple[str, ...]) -> dict[str, str]:
    """name -> installed version, of the distributions `names` and all that they require."""
    found, waiting = dict[str, str](), list(names)
    while waiting:
        name, version, needed = _installed(waiting.pop())
        if name and name not in found:
            found[name] = version
            waiting += needed
    return dict(sorted(found.items()))


@cache
def _installed(asked: str) -> tuple[str, str, list[str]]:
    """Name and version of the distribution `asked`, and what it requires; the name is empty where it is not installed."""
    from packaging.requirements import Requirement

    try:
        distribution = metadata.distribution(asked)
    except metadata.PackageNotFoundError:  # required on other systems
        return "", "", []
    told = distribution.metadata
    needed = map(Requirement, told.get_all("Requires-Dist") or [])
    return (
        told["Name"],
        told["Version"],
        [one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})],
    )


def key(cells: bytes, code: str, notebook: str, params: dict[str, Any], seed: int, notebooks: Path | None = None) -> str:
    """What decides a notebook's output, as one hash.

    Its `cells`, parameters (as JSON) and seed, all that its `code` and the runner import, the data that this reads, the
    packages as installed, Python's minor version, and CITATION.cff and the version, which results print.
    """
    library = Library(notebooks=notebooks)
    modules = library.closure(RUNNER, *imports(code.encode()))
    parts = {
        "template": hashlib.sha256(cells).hexdigest(),
        "notebook": notebook,
        "params": params,
        "seed": seed,
        "library": library.digest(modules),
        "data": library.data(modules),
        "packages": library.packages(modules),
        "python": list(sys.version_info[:2]),
        "citation": digest_files([REPOSITORY / "CITATION.cff"], REPOSITORY),
        "version": metadata.version("evolvingdp"),
        **of_files(params),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def of_files(params: dict[str, Any]) -> dict[str, str]:
    """SHA-256 of the reader's files that parameters name, by their full names; most runs have none."""
    files = [Path(value) for value in params.values() if isinstance(value, str) and value.startswith(os.sep)]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.is_file()}


def of_results(notebook: str) -> dict[str, Any]:
    """What decides table, claims and figures of `notebook`: digests of library and data, and packages with versions."""
    library, package = Library(), experiment(notebook)
    return _told(library, library.closure(RUNNER, PAGE, *(name for name in library.source if name.startswith(package))))


def of_numbers(notebook: str, library: Library) -> dict[str, Any]:
    """What decides its table and claims alone, which is all that a sweep keeps, in the source `library`."""
    run = f"{experiment(notebook)}.run"
    return _told(library, library.closure(run if run in library.source else experiment(notebook)))


def _told(library: Library, modules: set[str]) -> dict[str, Any]:
    return {"library": library.digest(modules), "data": library.data(modules), "packages": library.packages(modules)}


def experiment(notebook: str) -> str:
    """The module beside a notebook, or the package with all of one."""
    paper, name = notebook.split("/")
    module = f"evolvingdp.notebooks.{paper}.{name}"
    if module in cell.SENT or (notebooks_folder() / f"{notebook}.py").is_file():
        return module
    return f"evolvingdp.{paper}.experiments.{name}"
