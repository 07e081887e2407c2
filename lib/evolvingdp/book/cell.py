"""A notebook as files: its parameters cell, its module, and what a process without notebooks needs of them."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from pathlib import Path
from types import ModuleType

from evolvingdp.book.files import notebooks_folder
from evolvingdp.core.checks import ParameterError

PRESETS = "presets.yaml"


def module_of(notebook: str) -> ModuleType:
    """The module beside `notebook`: imports all that the experiment needs."""
    return importlib.import_module(f"evolvingdp.notebooks.{notebook.replace('/', '.')}")


def beside(notebook: str) -> dict[str, bytes]:
    """What a process without notebooks needs to run `notebook`: all modules and presets, and itself."""
    folder = notebooks_folder()
    files = [*folder.glob("*/*.py"), *folder.glob(f"*/{PRESETS}"), folder / f"{notebook}.ipynb"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def install(files: dict[str, bytes], into: Path) -> None:
    """Let this process use what a client has sent, and forget what another one had sent; `into` is called notebooks."""
    for name, content in files.items():
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        (into / name).write_bytes(content)
    os.environ["EVOLVINGDP_NOTEBOOKS"] = str(into)
    for name in [name for name in sys.modules if name.startswith("evolvingdp.notebooks")]:
        del sys.modules[name]


def has_check(notebook: str) -> bool:
    """Whether the module has a function `check`: where it has none, nothing need be imported."""
    path = notebooks_folder() / f"{notebook}.py"
    return path.is_file() and re.search(r"^def check\(", path.read_text(), re.MULTILINE) is not None


def cells(path: Path) -> list[tuple[str, list[str], str]]:
    """What of a source notebook decides its output: types, tags and sources of its cells; raises ParameterError."""
    try:
        found = json.loads(path.read_text())["cells"]
        return [(each["cell_type"], each["metadata"].get("tags", []), "".join(each["source"])) for each in found]
    except (ValueError, KeyError) as error:
        raise ParameterError(f"{path.name} is not a notebook: {error!r}") from None


def parameters_of(path: Path) -> str:
    """The source of the notebook's cell that is tagged `parameters`."""
    tagged = [source for _, tags, source in cells(path) if "parameters" in tags]
    if len(tagged) != 1:
        raise ParameterError(f"{path.name} must have one cell that is tagged parameters, got {len(tagged)}")
    return tagged[0]
