"""A preset of the reader's own: a YAML file with what differs from one of ours.

    base: paper            # or quick: what the rest is compared with
    seed: 7                # of the notebooks below
    heavy_hitters/frequency_oracle: {epsilon: 1, n_users: 1e6}
    evolving/thresh: {epsilon: 2}

Notebooks that it does not name stay ours.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from evolvingdp.book.checkout import Project, params_of
from evolvingdp.book.running import Job
from evolvingdp.core.checks import ParameterError

EXAMPLE = "evolving/thresh: {epsilon: 2}"
OURS = ("paper", "quick")
_OWN = ("base", "seed")
_NAME = re.compile(r"\w[\w.-]*\.ya?ml", re.ASCII)  # a folder is called so, and removed when the pages are made again


@dataclass(frozen=True)
class Preset:
    """A reader's file, validated: a pair of runs, ours and the reader's, for each notebook that it names."""

    file: str
    base: str
    ours: dict[str, Job]
    yours: dict[str, Job]

    @property
    def name(self) -> str:
        """The file's name without its ending; the folder of the pages is called so."""
        return Path(self.file).stem


def is_file(name: str) -> bool:
    """Whether --preset NAME means a reader's file and not one of our presets."""
    return name.endswith((".yaml", ".yml")) or (name not in OURS and Path(name).is_file())


def read(project: Project, path: Path) -> Preset:
    """The preset at `path`; raises ParameterError, one line that starts with the file's name, before anything runs."""
    try:
        if not _NAME.fullmatch(path.name):
            raise ParameterError("must be called like mine.yaml, in letters, digits, -, _ and ., as its pages are")
        return _checked(project, path.name, _load(path))
    except ParameterError as error:
        raise ParameterError(f"{path.name}: {error}") from None


def home(project: Project, chosen: Preset, path: Path) -> Path:
    """The folder of the pages of `chosen`, which stands at `path`; raises ParameterError where they are another file's."""
    folder, whose = project.root / "_build" / "yours" / chosen.name, str(path.resolve())
    owner = folder / "preset.txt"
    if owner.is_file() and owner.read_text() != whose and Path(owner.read_text()).is_file():
        raise ParameterError(f"{chosen.file}: {str(folder)!r} has the pages of {owner.read_text()!r}; rename one of them")
    folder.mkdir(parents=True, exist_ok=True)
    owner.write_text(whose)
    return folder


def _load(path: Path) -> dict[str, Any]:
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except FileNotFoundError:
        raise ParameterError(f"there is no such file in {str(path.parent)!r}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"cannot be read: {getattr(error, 'strerror', None) or 'it is not text'}") from None
    except ParameterError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date that does not exist
        raise ParameterError(f"is not YAML: {' '.join(str(error).split())}") from None
    if content is None:
        raise ParameterError(f"is empty; it must name a notebook, such as {EXAMPLE}")
    if not isinstance(content, dict):
        raise ParameterError(f"must hold a line per notebook, such as {EXAMPLE}, got {str(content)[:60]!r}")
    return {str(name): value for name, value in content.items()}


def _checked(project: Project, file: str, content: dict[str, Any]) -> Preset:
    base, seed = content.pop("base", "paper"), content.pop("seed", 0)
    if base not in OURS:
        raise ParameterError(f"base must be one of {', '.join(OURS)}, got {base!r}")
    if not content:
        raise ParameterError(f"names no notebook; try {EXAMPLE}")
    yours: dict[str, Job] = {}
    for name, values in content.items():
        notebook = _notebook(project, name)
        if notebook in yours:
            raise ParameterError(f"{notebook} stands twice")
        if not isinstance(values, dict | None):
            raise ParameterError(f"{notebook} must hold parameters, such as {{epsilon: 2}}, got {values!r}")
        overrides = {str(parameter): value for parameter, value in (values or {}).items()}
        try:
            yours[notebook] = Job.make(project, notebook, base, overrides, seed)
        except ParameterError as error:
            raise ParameterError(f"{notebook}: {error}") from None
    return Preset(file, base, {notebook: Job.make(project, notebook, base) for notebook in yours}, yours)


def _notebook(project: Project, name: str) -> str:
    near = difflib.get_close_matches(name, _OWN, n=1)
    if near:
        raise ParameterError(f"unknown entry {name!r}; did you mean {near[0]!r}?")
    return project.notebook(name)


def differing(ours: Job, yours: Job) -> list[tuple[str, Any, Any]]:
    """(name, ours, yours) for each parameter that differs, the seed first."""
    here, there = ({"seed": job.seed} | job.params.model_dump(mode="json") for job in (ours, yours))
    return [(name, here[name], there[name]) for name in here if here[name] != there[name]]


def settings(notebook: str) -> set[str]:
    """The names under which a parameter of `notebook` can stand as a column of its figures' data."""
    names = set(params_of(notebook).model_fields)
    return names | {name.removesuffix("_sweep") for name in names}


class _Loader(yaml.SafeLoader):
    """YAML in which a key may stand once, as the second would silently replace the first, and a number is what it looks."""

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        return int(_as_it_looks(node, super().construct_yaml_int(node)))

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        return float(_as_it_looks(node, super().construct_yaml_float(node)))

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            if name is not None and name in seen:
                raise ParameterError(f"{name!r} stands twice, again in line {key.start_mark.line + 1}")
            seen.add(name)
        return super().construct_mapping(node, deep)


def _as_it_looks(node: yaml.ScalarNode, read: float) -> float:
    """YAML 1.1 reads 1:30 as 90 and 017 as 15."""
    text = str(node.value)
    if ":" in text or (text.lstrip("+-")[:1] == "0" and text.lstrip("+-0_").isdigit() and len(text.lstrip("+-")) > 1):
        raise ParameterError(f"{text!r} in line {node.start_mark.line + 1} would be read as {read:g}; write that number")
    return read


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)
