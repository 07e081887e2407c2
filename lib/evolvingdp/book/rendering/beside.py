"""The book with the reader's results beside ours: a copy of its sources with a page per notebook that the reader changed.

The copy stands in _build/yours/<name>/source, its pages in _build/yours/<name>/html; our book and results are not touched.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from evolvingdp.book.checkout import Project
from evolvingdp.book.labels import Label, fenced
from evolvingdp.book.rendering import compare, preset
from evolvingdp.book.rendering.preset import Preset
from evolvingdp.book.rendering.whose import RECORD, YOURS, Yours
from evolvingdp.book.running import Job, export

# what pages are made of or look up
SOURCES = ("_config.yml", "_toc.yml", "CITATION.cff", "book", "notebooks", "benchmarks", "data", "tests")


def stage(project: Project, chosen: Preset, others: list[Job], folder: Path) -> Project:
    """Write the sources of the reader's book to `folder`: ours, the results of both, and the pages that compare them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in SOURCES:
        source = project.root / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=lambda where, _: ["results"] if Path(where).name == "book" else [])
        elif source.exists():
            shutil.copyfile(source, folder / name)
    copy, yours = Project(folder), Yours(folder)
    for job in others:
        export(job, copy.results / job.paper, as_page=True)
    for job in chosen.yours.values():
        export(job, yours.results / job.paper)
    tables = {notebook: _claims(copy, yours, notebook) for notebook in chosen.yours}
    for notebook in chosen.yours:
        (yours.results / f"{_slug(notebook)}.md").write_text(_page(copy, yours, chosen, notebook, tables[notebook]))
    (yours.results / "index.md").write_text(_summary(copy, chosen, tables))
    pages = {f"book/results/{notebook}": f"{YOURS}/{_slug(notebook)}" for notebook in chosen.yours}
    (yours.results / RECORD).write_text(
        json.dumps({"file": chosen.file, "base": chosen.base, "pages": pages}, indent=1) + "\n"
    )
    (folder / "_toc.yml").write_text(_contents(yaml.safe_load((project.root / "_toc.yml").read_text()), chosen))
    return copy


def _contents(toc: dict[str, Any], chosen: Preset) -> str:
    sections = [{"file": f"{YOURS}/{_slug(notebook)}"} for notebook in chosen.yours]
    part = {"caption": f"Yours: {Label(chosen.file).plain}", "chapters": [{"file": f"{YOURS}/index", "sections": sections}]}
    return yaml.safe_dump(toc | {"parts": [part, *toc["parts"]]}, sort_keys=False)


def _claims(copy: Project, yours: Project, notebook: str) -> pd.DataFrame:
    ours, theirs = (json.loads((side.results / notebook / "claims.json").read_text()) for side in (copy, yours))
    return compare.claims(ours, theirs)


def _summary(copy: Project, chosen: Preset, tables: dict[str, pd.DataFrame]) -> str:
    rows, verdicts = [], []
    for notebook, table in tables.items():
        changed = compare.changed(table)
        link = f"[{_title(copy, notebook)}]({_slug(notebook)}.md)"
        settings = ", ".join(f"{name} = {_plain(value)}" for name, _, value in _differing(chosen, notebook))
        rows.append([link, settings or "the same as ours", str(len(table)), str(len(changed))])
        verdicts += [
            [link, claim["claim"], *(_verdict(claim[side]) for side in ("our_verdict", "your_verdict"))]
            for _, claim in changed.iterrows()
        ]
    changes = (
        _table(["notebook", "claim", "ours", "yours"], verdicts) if verdicts else "None: every claim has the same verdict."
    )
    return f"""# Yours beside ours

{Label(chosen.file).markdown} changes {len(tables)} of the book's notebooks.
**Ours** is the preset `{chosen.base}` with seed 0. Everything else in
this book, and every number in the text of its chapters, is ours: only the pages below show
what your file computes.

{_table(["notebook", "your settings", "claims", "verdicts changed"], rows)}

## Claims whose verdict changed

{changes}
"""


def _page(copy: Project, yours: Project, chosen: Preset, notebook: str, table: pd.DataFrame) -> str:
    ours, folder = copy.results / notebook, yours.results / notebook
    figures = [_figure(ours, folder, notebook, figure) for figure in _figures(ours, folder)]
    differing = [[f"`{setting}`", _plain(here), _plain(there)] for setting, here, there in _differing(chosen, notebook)]
    changes = _table(["parameter", "ours", "yours"], differing) if differing else "No parameter differs: the same run."
    command = json.loads((folder / "provenance.json").read_text())["command"]
    files = ", ".join(
        f"{{download}}`{file} <{notebook}/{file}>`" for file in ("results.csv", "claims.json", "provenance.json")
    )
    return f"""---
html_theme.sidebar_secondary.remove: true
---

# Yours: {_title(copy, notebook)}

What {Label(chosen.file).markdown} makes of {{doc}}`/book/results/{notebook}`.
**Ours** is the preset `{chosen.base}` with seed 0; a difference is yours - ours, a relative one
is divided by the size of ours, RMS is the root of the mean square.

{changes}

## Claims

{_claims_table(table)}

## Figures

{"".join(figures)}
## Compute yours again

{fenced(command, "bash")}

All numbers: {files}, {{download}}`the executed notebook <{notebook}.ipynb>`.
"""


def _claims_table(table: pd.DataFrame) -> str:
    rows = []
    for _, claim in table.iterrows():
        sides = [
            f"{compare.number(claim[value])} ({claim[bound]}): {_verdict(claim[verdict])}" if claim[bound] else "not made"
            for value, bound, verdict in (("ours", "our_bound", "our_verdict"), ("yours", "your_bound", "your_verdict"))
        ]
        rows.append([claim["claim"], *sides, compare.number(claim["difference"]), _percent(claim["relative"])])
    return _table(["claim", "ours", "yours", "difference", "relative"], rows)


def _figures(*folders: Path) -> list[str]:
    """The figures of both sides, each once."""
    return sorted({path.stem for folder in folders for path in folder.glob("*.svg")})


def _figure(ours: Path, yours: Path, notebook: str, figure: str) -> str:
    sides = [("Ours", ours, f"../results/{notebook}"), ("Yours", yours, notebook)]
    items = "".join(_drawing(title, folder, link, figure) for title, folder, link in sides)
    lacking = [title.lower() for title, folder, _ in sides if not (folder / f"{figure}.csv").exists()]
    if lacking:
        numbers = f"Nothing to compare: {lacking[0]} has no such figure."
    else:
        here, there = (compare.read(folder / f"{figure}.csv") for folder in (ours, yours))
        numbers = _difference(compare.figure(here, there, preset.settings(notebook)))
    return f"### `{figure}`\n\n::::{{grid}} 1 1 2 2\n:gutter: 3\n:class-container: beside\n\n{items}::::\n\n{numbers}\n\n"


def _drawing(title: str, folder: Path, link: str, figure: str) -> str:
    if not (folder / f"{figure}.svg").exists():
        return f":::{{grid-item}}\n**{title}**: none\n:::\n\n"
    words = json.loads((folder / f"{figure}.json").read_text())
    alt = json.dumps(" ".join(f"{title}: {words['alt']}".split()), ensure_ascii=False)
    return (
        f":::{{grid-item}}\n**{title}**\n\n```{{image}} {link}/{figure}.svg\n:alt: {alt}\n:width: 100%\n```\n\n"
        f"{words['caption']} ({{download}}`CSV <{link}/{figure}.csv>`)\n:::\n\n"
    )


def _difference(difference: compare.Difference) -> str:
    keys = ", ".join(f"`{key}`" for key in difference.keys) or "their place alone"
    order = "; where these leave rows alike, in their order" if difference.in_order and difference.keys else ""
    alone = [
        f"{count} only {side}" for count, side in ((difference.only_ours, "ours"), (difference.only_yours, "yours")) if count
    ]
    said = f"{difference.matched} rows matched by {keys}{order}{''.join(f'; {text}' for text in alone)}."
    rows = [
        [
            f"`{column['column']}`",
            f"{column['rows']}" + (f" ({column['lacking']} more on one side only)" if column["lacking"] else ""),
            f"{column['unequal']}",
            *(compare.number(column[size]) for size in ("largest", "rms")),
            *(_percent(column[size]) for size in ("largest_relative", "rms_relative")),
        ]
        for _, column in difference.columns.iterrows()
    ]
    header = ["column", "rows", "that differ", "largest", "RMS", "largest, relative", "RMS, relative"]
    return f"{said}\n\n{_table(header, rows)}" if rows else said


def _differing(chosen: Preset, notebook: str) -> list[tuple[str, Any, Any]]:
    return preset.differing(chosen.ours[notebook], chosen.yours[notebook])


def _table(header: list[str], rows: list[list[str]]) -> str:
    """A markdown table; a bar in a cell is escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _percent(share: float) -> str:
    return compare.NONE if pd.isna(share) else "0" if share == 0 else f"{100 * share:.3g} %"


def _verdict(holds: bool | None) -> str:
    return "not made" if holds is None else "holds" if holds else "**does not hold**"


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return Label(value).markdown if isinstance(value, str) else str(value)


def _title(project: Project, notebook: str) -> str:
    cells = json.loads(project.template(notebook).read_text())["cells"]
    first = "".join(cells[0]["source"]).splitlines()[0]
    return first.removeprefix("# ") if first.startswith("# ") else notebook


def _slug(notebook: str) -> str:
    return notebook.replace("/", "-")
