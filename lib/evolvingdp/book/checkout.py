"""The checkout: where things stand, which module belongs to which notebook, and what decides a result.

What decides it is taken coarsely, by rooms: the notebook's cells, all modules of its paper's folder, and every file of each
room of the library that these import, or that such a room imports in turn; the runner and what draws pages; all of data/;
and the packages that compute and draw.  An edit in another paper, or in how the book is rendered, runs no notebook again.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from evolvingdp.book import cell, params
from evolvingdp.book.files import LIBRARY, REPOSITORY, checkout, notebooks_folder
from evolvingdp.book.params import Params
from evolvingdp.book.result import Result
from evolvingdp.core.checks import ParameterError
from evolvingdp.core.tables import DATA

RESULTS = "book/results/"
COMPUTE = ("numpy", "pandas", "scipy", "scikit-learn")  # the packages on which numbers depend
DRAW = ("matplotlib", "seaborn", "ipykernel", "tabulate", "latexcodec")  # and pages besides
_IMPORTED = re.compile(rb"^\s*(?:from|import) evolvingdp(?:\.| import )(notebooks\.\w+|\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Project:
    """A checkout: notebooks, table of contents, cache, and the results that the book shows."""

    root: Path = field(default_factory=checkout)

    @property
    def cache(self) -> Path:
        return Path(os.environ.get("EVOLVINGDP_CACHE") or self.root / ".cache").absolute() / "runs"

    @property
    def results(self) -> Path:
        return self.root / RESULTS

    def notebooks(self) -> list[str]:
        """Every source notebook as <paper>/<name>, in alphabetical order."""
        folder = self.root / "notebooks"
        return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.glob("*/*.ipynb"))

    def notebook(self, name: str) -> str:
        """The canonical form of `name` (`notebooks/` and `.ipynb` may stand around it); ParameterError if there is none."""
        known = self.notebooks()
        wanted = name.removesuffix(".ipynb").removeprefix("./").removeprefix("notebooks/")
        if wanted not in known:
            near = difflib.get_close_matches(wanted, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise ParameterError(f"no notebook {name!r}; {hint}")
        return wanted

    def template(self, notebook: str) -> Path:
        return self.root / "notebooks" / f"{notebook}.ipynb"

    def params(self, notebook: str) -> type[Params]:
        """The model of the parameters of `notebook`, from its parameters cell; ParameterError without its module."""
        if not self.template(notebook).with_suffix(".py").is_file():
            raise ParameterError(f"notebook {notebook} needs the module notebooks/{notebook}.py beside it; there is none")
        return params.read(notebook, self.template(notebook))

    def contents(self) -> list[str]:
        """The files that `_toc.yml` names, in its order."""
        try:
            toc = yaml.safe_load((self.root / "_toc.yml").read_text())
        except yaml.YAMLError as error:
            raise ParameterError(f"_toc.yml is not YAML: {' '.join(str(error).split())}") from None
        return [toc["root"], *_files(toc)]

    def pages(self) -> list[str]:
        """The notebooks whose results the book shows; every notebook must have its page and every page its notebook."""
        shown = [file.removeprefix(RESULTS).removesuffix(".ipynb") for file in self.contents() if file.startswith(RESULTS)]
        both = set(shown) ^ set(self.notebooks())
        if both or len(set(shown)) < len(shown):
            raise ParameterError(
                f"_toc.yml and notebooks/ must name the same notebooks; in one only: {', '.join(sorted(both))}"
            )
        return shown


def _files(node: object) -> list[str]:
    if isinstance(node, list):
        return [file for item in node for file in _files(item)]
    if isinstance(node, dict):
        own = [node["file"]] if "file" in node else []
        return own + [file for key, value in node.items() if key != "file" for file in _files(value)]
    return []


def params_of(notebook: str) -> type[Params]:
    """The model of the parameters of `notebook` in the checkout."""
    return Project(notebooks_folder().parent).params(notebook)


def run_of(notebook: str) -> Callable[[Params, int], Result]:
    """The `run` of `notebook`: imports all that the experiment needs."""
    module = cell.module_of(notebook)
    return lambda params, seed: Result.of(module, params, seed, module.run(params, seed))


# What decides a result


def key(project: Project, notebook: str, params: dict[str, Any], seed: int) -> str:
    """What decides the output of `notebook` with the parameters `params`, as JSON has them, as one hash."""
    cells = json.dumps(cell.cells(project.template(notebook))).encode()
    parts = {
        "cells": hashlib.sha256(cells).hexdigest(),
        "notebook": notebook,
        "params": params,
        "seed": seed,
        "made of": made_of(notebook, project.root / "notebooks", COMPUTE + DRAW),
        "python": list(sys.version_info[:2]),
        "citation": digest_files([REPOSITORY / "CITATION.cff"], REPOSITORY),
        "version": metadata.version("evolvingdp"),
        **of_files(params),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def made_of(notebook: str, notebooks: Path | None = None, packages: Iterable[str] = COMPUTE) -> dict[str, Any]:
    """Digests of the library and of the data behind `notebook`, and the versions of `packages`."""
    code = rooms({f"notebooks.{notebook.split('/')[0]}"}, notebooks)
    installed = {name: _version(name) for name in packages}
    return {
        "library": digest(code | _sources(LIBRARY / "book", "*.py")),
        "data": digest_files(DATA.glob("*.csv*"), DATA.parent),
        "packages": {name: found for name, found in installed.items() if found},
    }


def rooms(names: set[str], notebooks: Path | None = None) -> dict[str, bytes]:
    """The source of the rooms `names` ("core", "notebooks.evolving") and of all that they import, but for `book`."""
    found, waiting, seen = dict[str, bytes](), set(names), {"book"}
    while waiting - seen:
        room = min(waiting - seen)
        seen.add(room)
        for name, source in _room(room, notebooks or notebooks_folder()).items():
            found[name] = source
            waiting |= imported(source)
    return found


def imported(source: bytes) -> set[str]:
    """The rooms that `source` imports."""
    return {named.decode() for named in _IMPORTED.findall(source)}


def all_rooms() -> set[str]:
    """Every room of the library."""
    return {path.parent.name for path in LIBRARY.glob("*/__init__.py")} - {"notebooks"}


def _room(room: str, notebooks: Path) -> dict[str, bytes]:
    if not room.startswith("notebooks."):
        return _sources(LIBRARY / room, "**/*.py")
    folder = notebooks / room.removeprefix("notebooks.")
    return {f"evolvingdp.{room}.{path.stem}": path.read_bytes() for path in folder.glob("*.py")}


def _sources(folder: Path, pattern: str) -> dict[str, bytes]:
    return {path.relative_to(LIBRARY).as_posix(): path.read_bytes() for path in folder.glob(pattern)}


def digest_files(paths: Iterable[Path], relative_to: Path) -> str:
    """SHA-256 over the names and contents of `paths`, in order of name."""
    return digest({path.relative_to(relative_to).as_posix(): path.read_bytes() for path in paths})


def digest(contents: Mapping[str, bytes]) -> str:
    total = hashlib.sha256()
    for name in sorted(contents):
        total.update(f"{name}\0".encode())
        total.update(hashlib.sha256(contents[name]).digest())
    return total.hexdigest()


def of_files(params: dict[str, Any]) -> dict[str, str]:
    """SHA-256 of the reader's files that parameters name, by their full names; most runs have none."""
    files = [Path(value) for value in params.values() if isinstance(value, str) and value.startswith(os.sep)]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.is_file()}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
