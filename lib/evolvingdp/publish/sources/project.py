"""Where things stand in the repository, and which experiment belongs to which notebook."""

from __future__ import annotations

import difflib
import importlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from evolvingdp.book import cell
from evolvingdp.book.params import Metric, Params
from evolvingdp.book.result import Result
from evolvingdp.core.checks import ParameterError
from evolvingdp.publish.sources.digest import checkout, experiment, notebooks_folder

RESULTS = "book/results/"


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
        """The model of the parameters of `notebook`: from its parameters cell, if a module stands beside it."""
        if self.template(notebook).with_suffix(".py").is_file():
            return cell.read(notebook, self.template(notebook))
        return _params_of_package(notebook)

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
        if sorted(shown) != self.notebooks():
            both = set(shown) ^ set(self.notebooks())
            raise ParameterError(
                f"_toc.yml and notebooks/ must name the same notebooks; in one only: {', '.join(sorted(both))}"
            )
        return shown


def params_of(notebook: str) -> type[Params]:
    """The model of the parameters of `notebook` in the checkout."""
    return Project(notebooks_folder().parent).params(notebook)


def metric_of(notebook: str) -> Metric:
    """What a reader asks for first of the values of `notebook`."""
    if experiment(notebook) == cell.module_name(notebook):
        metric: Metric = cell.module_of(notebook).METRIC
        return metric
    return params_of(notebook).metric


def _params_of_package(notebook: str) -> type[Params]:
    """The `Params` of evolvingdp.<paper>.experiments.<name>.params."""
    module = f"{experiment(notebook)}.params"
    try:
        params: type[Params] = importlib.import_module(module).Params
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise ParameterError(f"notebook {notebook} needs the module {module} with Params and run; there is none") from None
    return params


def run_of(notebook: str) -> Callable[[Params, int], Result[Params]]:
    """The `run` of `notebook`: imports all that the experiment needs."""
    if experiment(notebook) == cell.module_name(notebook):
        module = cell.module_of(notebook)
        return lambda params, seed: Result.of(module, params, seed, module.run(params, seed))
    run: Callable[[Params, int], Result[Params]] = importlib.import_module(f"{experiment(notebook)}.run").run
    return run


def cells_of(path: Path) -> tuple[bytes, str]:
    """What of a source notebook decides its output, types, tags and sources of the cells; and all of its code."""
    try:
        cells = json.loads(path.read_text())["cells"]
    except (ValueError, KeyError) as error:
        raise ParameterError(f"{path.name} is not a notebook: {error!r}") from None
    parts = [[cell["cell_type"], cell["metadata"].get("tags", []), "".join(cell["source"])] for cell in cells]
    return json.dumps(parts).encode(), "\n".join(source for kind, _, source in parts if kind == "code")


def _files(node: object) -> list[str]:
    if isinstance(node, list):
        return [file for item in node for file in _files(item)]
    if isinstance(node, dict):
        own = [node["file"]] if "file" in node else []
        return own + [file for key, value in node.items() if key != "file" for file in _files(value)]
    return []
