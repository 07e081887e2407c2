"""`evolvingdp book --preset mine.yaml`: a reader's results beside ours, on a page of their own.

    base: paper            # or quick: what the rest is compared with
    seed: 7                # of the notebooks below
    heavy_hitters/frequency_oracle: {epsilon: 1, n_users: 1e6}

Of each notebook that the file names: parameters, claims and their values in tables, figures side by side.  Only these
notebooks are run; our own book and results are not touched.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from evolvingdp.book.checkout import Project
from evolvingdp.book.executed import read_alone, resolved
from evolvingdp.book.files import scratch
from evolvingdp.book.labels import Label, fenced
from evolvingdp.book.numerals import markdown
from evolvingdp.book.rendering.build import render
from evolvingdp.book.result import in_words
from evolvingdp.book.running import Job, Say, compute, export
from evolvingdp.core.checks import ParameterError

OURS = ("paper", "quick")
SIDES = ("ours", "yours")
EXAMPLE = "evolving/thresh: {epsilon: 2}"
_NAME = re.compile(r"\w[\w.-]*\.ya?ml", re.ASCII)  # a folder is called so, and removed when the pages are made again

# The file


@dataclass(frozen=True)
class Preset:
    """A reader's file, validated: ours and the reader's run of each notebook that it names."""

    file: str
    base: str
    pairs: dict[str, tuple[Job, Job]]

    def differing(self, notebook: str) -> list[tuple[str, Any, Any]]:
        """(name, ours, yours) for each parameter that differs, the seed first."""
        ours, yours = ({"seed": job.seed} | job.params.as_json() for job in self.pairs[notebook])
        return [(name, ours[name], yours[name]) for name in ours if ours[name] != yours[name]]


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


class _Loader(yaml.BaseLoader):
    """YAML whose values stay text, which parameters read as people write numbers, and in which a key may stand once."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):  # a few of them write a list of a billion values
            alias: Any = self.peek_event()  # type: ignore[no-untyped-call]
            raise ParameterError(f"*{alias.anchor} in line {alias.start_mark.line + 1} is no value; write its value out")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names = [key.value for key, _ in node.value]
        twice = next((key for place, (key, _) in enumerate(node.value) if key.value in names[:place]), None)
        if twice is not None:
            raise ParameterError(f"{twice.value!r} stands twice, again in line {twice.start_mark.line + 1}")
        return super().construct_mapping(node, deep)


def _load(path: Path) -> dict[str, Any]:
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise ParameterError(f"must be a file with {EXAMPLE}, got {str(path)!r}, which is none")
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except FileNotFoundError:
        raise ParameterError(
            f"there is no such file in {str(path.parent)!r}; preset must be {', '.join(OURS)} or a file with {EXAMPLE}"
        ) from None
    except RecursionError:
        raise ParameterError(f"must not be nested hundreds of levels deep; try {EXAMPLE}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"cannot be read: {getattr(error, 'strerror', None) or 'it is no text in UTF-8'}") from None
    except yaml.YAMLError as error:
        raise ParameterError(f"is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content or {}, dict):
        raise ParameterError(f"must hold a line per notebook, such as {EXAMPLE}, got {str(content)[:60]!r}")
    return content or {}


def _checked(project: Project, file: str, content: dict[str, Any]) -> Preset:
    base, seed = content.pop("base", "paper"), content.pop("seed", 0)
    if base not in OURS:
        raise ParameterError(f"base must be one of {', '.join(OURS)}, got {base!r}")
    if not content:
        raise ParameterError(f"names no notebook; try {EXAMPLE}")
    pairs: dict[str, tuple[Job, Job]] = {}
    for name, values in content.items():
        notebook = project.notebook(name)
        if notebook in pairs:
            raise ParameterError(f"{notebook} stands twice")
        if values and not isinstance(values, dict):
            raise ParameterError(f"{notebook} must hold parameters, such as {{epsilon: 2}}, got {values!r}")
        try:
            pairs[notebook] = Job.make(project, notebook, base), Job.make(project, notebook, base, values or {}, seed)
        except ParameterError as error:
            raise ParameterError(f"{notebook}: {error}") from None
    return Preset(file, base, pairs)


# The page


def build(project: Project, path: Path, say: Say, *, workers: int | None = None) -> Path:
    """Compute what the preset at `path` names, its way and ours, and render both; returns the page.

    Raises ParameterError before anything runs where the file is wrong, NotebookError or PublishError as `build.build` does.
    """
    chosen = read(project, path)
    say(f"ours: preset {chosen.base}, seed 0; yours: {chosen.file}")
    compute(list({job.key: job for pair in chosen.pairs.values() for job in pair}.values()), say, workers=workers)
    home = project.root / "_build" / "yours" / path.stem
    with scratch(home, ".pages-") as work:
        shutil.copytree(project.root / "book" / "_static", work / "book" / "_static")
        shutil.copyfile(project.root / "_config.yml", work / "_config.yml")
        (work / "book" / "_extra").mkdir()
        (work / "book" / "references.bib").touch()
        (work / "_toc.yml").write_text("format: jb-book\nroot: index\n")
        (work / "index.md").write_text(_page(project, chosen, work))
        render(Project(work), say)
        shutil.rmtree(home / "html", ignore_errors=True)
        (work / "_build" / "html").rename(home / "html")
    return home / "html" / "index.html"


def _page(project: Project, chosen: Preset, root: Path) -> str:
    """The page as MyST; what it shows is written beside it."""
    sections, rows = [], []
    for notebook, jobs in chosen.pairs.items():
        for side, job in zip(SIDES, jobs, strict=True):
            values = job.store / job.name / "values.json"
            export(job, root / side / job.paper, finish=partial(read_alone, notebook=notebook, values=values))
        ours, yours = ({claim["claim"]: claim for claim in _json(root / side / notebook, "claims")} for side in SIDES)
        claims = [(sentence, ours.get(sentence), yours.get(sentence)) for sentence in {**ours, **yours}]
        title, label = _title(project, notebook), notebook.replace("/", "-")
        changed = sum(_verdict(mine) != _verdict(other) for _, mine, other in claims)
        told = ", ".join(f"{name} = {_plain(value)}" for name, _, value in chosen.differing(notebook))
        rows.append([f"[{title}](#{label})", told or "the same as ours", f"{changed} of {len(claims)}"])
        sections.append(f"({label})=\n## {title}\n\n{_section(root, chosen, notebook, claims)}")
    return f"""---
html_theme.sidebar_secondary.remove: true
---

# Yours beside ours

**Ours** is the preset `{chosen.base}` with seed 0, **yours** what {Label(chosen.file).markdown} changes of it.

{_table(["notebook", "your settings", "verdicts changed"], rows)}

{"".join(sections)}"""


def _section(root: Path, chosen: Preset, notebook: str, claims: list[tuple[str, Any, Any]]) -> str:
    ids = sorted({path.stem for side in SIDES for path in (root / side / notebook).glob("*.png")})
    differing = [[f"`{setting}`", _plain(here), _plain(there)] for setting, here, there in chosen.differing(notebook)]
    command = _json(root / "yours" / notebook, "provenance")["command"]
    files = [*(f"{notebook}/{name}" for name in ("results.csv", "claims.json", "provenance.json")), f"{notebook}.ipynb"]
    offered = [" ".join(f"{{download}}`{Path(file).name} <{side}/{file}>`" for file in files) for side in SIDES]
    return f"""{_table(["parameter", *SIDES], differing) if differing else "No parameter differs: the same run."}

{_table(["claim", *SIDES, "yours - ours"], [_claim(*each) for each in claims])}

{"".join(_figure(root, notebook, name) for name in ids)}Yours is computed again by

{fenced(command, "bash")}

All of ours: {offered[0]}. All of yours: {offered[1]}.

"""


def _json(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_text())


def _claim(sentence: str, mine: Any, other: Any) -> list[str]:
    told = [
        f"{claim['value']:.4g} ({in_words(claim['relation'], claim['bound'])}): {_verdict(claim)}" if claim else "not made"
        for claim in (mine, other)
    ]
    marked = sentence if _verdict(mine) == _verdict(other) else f"{sentence} **(verdict changed)**"
    return [marked, *told, f"{other['value'] - mine['value']:.4g}" if mine and other else "–"]


def _verdict(claim: Any) -> str:
    return "not made" if claim is None else "holds" if claim["holds"] else "**does not hold**"


def _figure(root: Path, notebook: str, figure_id: str) -> str:
    items = ""
    for side in SIDES:
        folder = root / side / notebook
        if not (folder / f"{figure_id}.svg").exists():
            items += f":::{{grid-item}}\n**{side.capitalize()}**: none\n:::\n\n"
            continue
        words, drawing = _json(folder, figure_id), f"{side}/{notebook}/{figure_id}"
        alt = json.dumps(" ".join(f"{side.capitalize()}: {words['alt']}".split()), ensure_ascii=False)
        caption = resolved(words["caption"], notebook, _json(folder, "values"))
        items += (
            f":::{{grid-item}}\n**{side.capitalize()}**\n\n```{{image}} {drawing}.svg\n:alt: {alt}\n:width: 100%\n```\n\n"
            f"{caption} ({{download}}`CSV <{drawing}.csv>`)\n:::\n\n"
        )
    return f"### `{figure_id}`\n\n::::{{grid}} 1 1 2 2\n:gutter: 3\n:class-container: beside\n\n{items}::::\n\n"


def _table(header: list[str], rows: list[list[str]]) -> str:
    """A markdown table; a bar in a cell is escaped."""
    return markdown(pd.DataFrame(rows, columns=header).map(lambda cell: cell.replace("|", r"\|")))


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return Label(value).markdown if isinstance(value, str) else str(value)


def _title(project: Project, notebook: str) -> str:
    first = "".join(json.loads(project.template(notebook).read_text())["cells"][0]["source"]).splitlines()[0]
    return first.removeprefix("# ")
