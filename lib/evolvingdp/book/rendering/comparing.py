"""`evolvingdp book --preset mine.yaml`: a reader's results beside ours.

    base: paper            # or quick: what the rest is compared with
    seed: 7                # of the notebooks below
    heavy_hitters/frequency_oracle: {epsilon: 1, n_users: 1e6}

The pages are those of a copy of the book's sources in _build/yours/<name>/source, with a page more for each notebook that
the file names; our own book and results are not touched.  Parameters, claims
and their values stand in tables, figures side by side; every difference is yours - ours.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import shutil
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from evolvingdp.book.checkout import Project
from evolvingdp.book.labels import Label, fenced
from evolvingdp.book.result import in_words
from evolvingdp.book.running import Job, export, problems
from evolvingdp.core.checks import ParameterError

OURS = ("paper", "quick")
EXAMPLE = "evolving/thresh: {epsilon: 2}"
YOURS, RECORD = "book/yours", "preset.json"
SOURCES = ("_config.yml", "_toc.yml", "CITATION.cff", "book", "notebooks", "benchmarks", "data", "tests", "lib")
_NAME = re.compile(r"\w[\w.-]*\.ya?ml", re.ASCII)  # a folder is called so, and removed when the pages are made again

# The file


@dataclass(frozen=True)
class Preset:
    """A reader's file, validated: a pair of runs, ours and the reader's, for each notebook that it names."""

    file: str
    base: str
    ours: dict[str, Job]
    yours: dict[str, Job]

    def differing(self, notebook: str) -> list[tuple[str, Any, Any]]:
        """(name, ours, yours) for each parameter that differs, the seed first."""
        here, there = (
            {"seed": job.seed} | job.params.model_dump(mode="json") for job in (self.ours[notebook], self.yours[notebook])
        )
        return [(name, here[name], there[name]) for name in here if here[name] != there[name]]


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
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except FileNotFoundError:
        raise ParameterError(f"there is no such file in {str(path.parent)!r}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"cannot be read: {getattr(error, 'strerror', None) or 'it is not text'}") from None
    except yaml.YAMLError as error:
        raise ParameterError(f"is not YAML: {' '.join(str(error).split())}") from None
    if not content:
        raise ParameterError(f"is empty; it must name a notebook, such as {EXAMPLE}")
    if not isinstance(content, dict):
        raise ParameterError(f"must hold a line per notebook, such as {EXAMPLE}, got {str(content)[:60]!r}")
    return content


def _checked(project: Project, file: str, content: dict[str, Any]) -> Preset:
    base, seed = content.pop("base", "paper"), content.pop("seed", 0)
    if base not in OURS:
        raise ParameterError(f"base must be one of {', '.join(OURS)}, got {base!r}")
    if not content:
        raise ParameterError(f"names no notebook; try {EXAMPLE}")
    yours: dict[str, Job] = {}
    for name, values in content.items():
        near = difflib.get_close_matches(name, ("base", "seed"), n=1)
        if near:
            raise ParameterError(f"unknown entry {name!r}; did you mean {near[0]!r}?")
        notebook = project.notebook(name)
        if notebook in yours:
            raise ParameterError(f"{notebook} stands twice")
        if values and not isinstance(values, dict):
            raise ParameterError(f"{notebook} must hold parameters, such as {{epsilon: 2}}, got {values!r}")
        try:
            yours[notebook] = Job.make(project, notebook, base, values or {}, seed)
        except ParameterError as error:
            raise ParameterError(f"{notebook}: {error}") from None
    return Preset(file, base, {notebook: Job.make(project, notebook, base) for notebook in yours}, yours)


def home(project: Project, chosen: Preset, path: Path) -> Path:
    """The folder of the pages of `chosen`, which stands at `path`; raises ParameterError where they are another file's."""
    folder, whose = project.root / "_build" / "yours" / Path(chosen.file).stem, str(path.resolve())
    owner = folder / "preset.txt"
    if owner.is_file() and owner.read_text() != whose and Path(owner.read_text()).is_file():
        raise ParameterError(f"{chosen.file}: {str(folder)!r} has the pages of {owner.read_text()!r}; rename one of them")
    folder.mkdir(parents=True, exist_ok=True)
    owner.write_text(whose)
    return folder


# Whose a book is


@dataclass(frozen=True)
class Yours(Project):
    """A copy of the book seen from the reader's side: its results are the reader's."""

    @property
    def results(self) -> Path:
        return self.root / YOURS


def record(root: Path) -> dict[str, Any]:
    """What `stage` wrote about the reader's preset below `root`; empty in a book that is ours alone."""
    path = root / YOURS / RECORD
    content: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return content


def stale(root: Path) -> list[str]:
    """Why results of the reader's may not be shown; see `running.problems`."""
    pages = record(root).get("pages", {})
    return [problem for page in pages for problem in problems(Yours(root), page.removeprefix("book/results/"))]


# The differences


def number(value: float) -> str:
    """`value` in four digits; a dash for nan."""
    return "–" if math.isnan(value) else f"{value:.4g}"


def claims(ours: list[dict[str, Any]], yours: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """Each claim of ours with the reader's of the same sentence, or of one that differs in its numbers alone; None where a
    side does not make it."""
    left, pairs = list(yours), []
    for mine in ours:
        same = [claim for form in (str, _numberless) for claim in left if form(claim["claim"]) == form(mine["claim"])]
        if same:
            left.remove(same[0])
        pairs.append((mine, same[0] if same else None))
    return pairs + [(None, claim) for claim in left]


def _numberless(sentence: str) -> str:
    return re.sub(r"\d[\d,._]*(?:e[+-]?\d+)?", "#", sentence)


def _percent(share: float) -> str:
    return number(share) if math.isnan(share) else "0" if share == 0 else f"{100 * share:.3g} %"


# The pages


def stage(project: Project, chosen: Preset, others: list[Job], folder: Path) -> Project:
    """Write the sources of the reader's book to `folder`: ours, the results of both, and the pages that compare them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in SOURCES:
        source = project.root / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=_made)
        elif source.exists():
            shutil.copyfile(source, folder / name)
    copy, yours = Project(folder), Yours(folder)
    for job in others:
        export(job, copy.results / job.paper, as_page=True)
    pages, settings, verdicts = {}, [], []
    for notebook, job in chosen.yours.items():
        export(job, yours.results / job.paper)
        slug = notebook.replace("/", "-")
        pages[f"book/results/{notebook}"] = f"{YOURS}/{slug}"
        pairs = claims(*(json.loads((side.results / notebook / "claims.json").read_text()) for side in (copy, yours)))
        (yours.results / f"{slug}.md").write_text(_page(copy, yours, chosen, notebook, pairs))
        link = f"[{_title(copy, notebook)}]({slug}.md)"
        changed = [pair for pair in pairs if _verdict(pair[0]) != _verdict(pair[1])]
        told = ", ".join(f"{name} = {_plain(value)}" for name, _, value in chosen.differing(notebook))
        settings.append([link, told or "the same as ours", str(len(pairs)), str(len(changed))])
        verdicts += [[link, (mine or other)["claim"], _verdict(mine), _verdict(other)] for mine, other in changed]
    changes = (
        _table(["notebook", "claim", "ours", "yours"], verdicts) if verdicts else "None: every claim has the same verdict."
    )
    (yours.results / "index.md").write_text(f"""# Yours beside ours

{Label(chosen.file).markdown} changes {len(pages)} of the book's notebooks.
**Ours** is the preset `{chosen.base}` with seed 0.
Everything else in this book, and every number in the text of its chapters, is ours: only the pages below show what your
file computes.

{_table(["notebook", "your settings", "claims", "verdicts changed"], settings)}

## Claims whose verdict changed

{changes}
""")
    shown = {"file": chosen.file, "base": chosen.base, "pages": pages}
    (yours.results / RECORD).write_text(json.dumps(shown, indent=1) + "\n")
    toc = yaml.safe_load((project.root / "_toc.yml").read_text())
    chapter = {"file": f"{YOURS}/index", "sections": [{"file": page} for page in pages.values()]}
    part = {"caption": f"Yours: {Label(chosen.file).plain}", "chapters": [chapter]}
    (folder / "_toc.yml").write_text(yaml.safe_dump(toc | {"parts": [part, *toc["parts"]]}, sort_keys=False))
    return copy


def _made(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__" or Path(folder, name).parts[-2:] == ("book", "results")]


def _page(copy: Project, yours: Project, chosen: Preset, notebook: str, pairs: list[tuple[Any, Any]]) -> str:
    ours, folder = copy.results / notebook, yours.results / notebook
    ids = sorted({path.stem for side in (ours, folder) for path in side.glob("*.svg")})
    differing = [[f"`{setting}`", _plain(here), _plain(there)] for setting, here, there in chosen.differing(notebook)]
    command = json.loads((folder / "provenance.json").read_text())["command"]
    names = ("results.csv", "claims.json", "provenance.json")
    files = ", ".join(f"{{download}}`{file} <{notebook}/{file}>`" for file in names)
    return f"""---
html_theme.sidebar_secondary.remove: true
---

# Yours: {_title(copy, notebook)}

What {Label(chosen.file).markdown} makes of {{doc}}`/book/results/{notebook}`.
**Ours** is the preset `{chosen.base}` with seed 0; a difference is yours - ours,
a relative one is divided by the size of ours.

{_table(["parameter", "ours", "yours"], differing) if differing else "No parameter differs: the same run."}

## Claims

{_table(["claim", "ours", "yours", "difference", "relative"], [_claim(*pair) for pair in pairs])}

## Figures

{"".join(_figure(ours, folder, notebook, name) for name in ids)}
## Compute yours again

{fenced(command, "bash")}

All numbers: {files}, {{download}}`the executed notebook <{notebook}.ipynb>`.
"""


def _claim(mine: Any, other: Any) -> list[str]:
    told = [
        f"{number(claim['value'])} ({in_words(claim['relation'], claim['bound'])}): {_verdict(claim)}"
        if claim
        else "not made"
        for claim in (mine, other)
    ]
    gap = other["value"] - mine["value"] if mine and other else float("nan")
    relative = 0.0 if gap == 0 else gap / abs(mine["value"]) if mine and mine["value"] else float("nan")
    return [(mine or other)["claim"], *told, number(gap), _percent(relative)]


def _figure(ours: Path, yours: Path, notebook: str, figure_id: str) -> str:
    sides = [("Ours", ours, f"../results/{notebook}"), ("Yours", yours, notebook)]
    items = "".join(_drawing(*side, figure_id) for side in sides)
    return f"### `{figure_id}`\n\n::::{{grid}} 1 1 2 2\n:gutter: 3\n:class-container: beside\n\n{items}::::\n\n"


def _drawing(title: str, folder: Path, link: str, figure_id: str) -> str:
    if not (folder / f"{figure_id}.svg").exists():
        return f":::{{grid-item}}\n**{title}**: none\n:::\n\n"
    words = json.loads((folder / f"{figure_id}.json").read_text())
    alt = json.dumps(" ".join(f"{title}: {words['alt']}".split()), ensure_ascii=False)
    return (
        f":::{{grid-item}}\n**{title}**\n\n```{{image}} {link}/{figure_id}.svg\n:alt: {alt}\n:width: 100%\n```\n\n"
        f"{words['caption']} ({{download}}`CSV <{link}/{figure_id}.csv>`)\n:::\n\n"
    )


def _table(header: list[str], rows: list[list[str]]) -> str:
    """A markdown table; a bar in a cell is escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _verdict(claim: Any) -> str:
    return "not made" if claim is None else "holds" if claim["holds"] else "**does not hold**"


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return Label(value).markdown if isinstance(value, str) else str(value)


def _title(project: Project, notebook: str) -> str:
    first = "".join(json.loads(project.template(notebook).read_text())["cells"][0]["source"]).splitlines()[0]
    return first.removeprefix("# ") if first.startswith("# ") else notebook
