"""A notebook that runs in a moment, in a folder of its own: parameters of each kind, and numbers that are epsilon's."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest

import evolvingdp.notebooks
from evolvingdp.book import params
from evolvingdp.book.checkout import Project

REPOSITORY, TOY = Path(__file__).parents[1], "toy/line"
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
PARAMETERS = """epsilon: float = 2.0  # privacy loss of a user ($\\epsilon$) in [1e-6, 20]
n_users: int = 1000  # users ($n$, users) in [10, 10^10]
rows: int = 3  # rows of the table (rows) in [1, 100]
width: int = 16  # their width (a number) (cells) in [1, 2^40]
widths: list[int] = [8, 16]  # widths compared (cells) in [1, 2^40], 2 or more
words: list[str] = []  # words that are looked for
sent: str = "bit"  # what a user sends, one of bit, signs
seed: int = 0  # master seed of all random streams"""
PRESETS = "line: {paper: {n_users: 1e6, widths: [8, 16, 32]}}\n"
MODULE = '''"""The toy's experiment."""

import math

import pandas as pd

from evolvingdp.book import engine
from evolvingdp.book.params import Metric
from evolvingdp.core.seeds import stream

METRIC = Metric("noise", "mean of the noise, and epsilon")
CLAIMS = """
loss <= 1.5               Epsilon is small | no
? absent <= 1             Nobody makes this
0 <= 0                    Nothing
"""


def check(params):
    if params.rows * params.width > 10**6:
        raise ValueError(f"rows must be at most {10**6 // params.width} to fit here: lower rows or width, got {params.rows}")


def part(params, seed, rank):
    noise = float(stream(seed, "line", rank).exponential())
    yield {"rank": rank, "mean": rank * params.epsilon, "kept": rank + 4, "noise": noise}


def run(params, seed):
    return pd.DataFrame(engine.rows([(part, params, seed, rank) for rank in (1, 2, 3)]))


def values(params, table):
    return {"loss": params.epsilon, "noise": table.noise.mean() + params.epsilon, "absent": math.nan}
'''
CELLS = (
    """from evolvingdp.book import notebook as book
from evolvingdp.notebooks.toy import line

params = book.parameters(line, globals())
book.use()
table = line.run(params, seed)
page = book.Page.of(line, params, seed, table)
figure, axes = book.canvas(4, 3)
axes.plot("rank", "mean", data=table);""",
    """shown = table[["rank", "mean", "kept"]]
page.figure("hh-line", figure, shown, title="It rises.", caption="A line of slope $\\\\epsilon$.", alt="A line that rises.")
page.claims()
page.close()""",
)


def write(root: Path, *cells: str, module: str = MODULE) -> Path:
    """The notebook with `cells` (usual: those of a page) below `root`/notebooks, and what stands beside it."""
    folder = root / "notebooks" / "toy"
    folder.mkdir(parents=True, exist_ok=True)
    made = [nbformat.v4.new_markdown_cell("# A line", id="title")]
    made.append(nbformat.v4.new_code_cell(PARAMETERS, id="parameters", metadata={"tags": ["parameters"]}))
    made += [nbformat.v4.new_code_cell(source, id=f"cell-{place}") for place, source in enumerate(cells or CELLS)]
    nbformat.write(nbformat.v4.new_notebook(cells=made, metadata={"kernelspec": KERNEL}), folder / "line.ipynb")
    (folder / "line.py").write_text(module)
    (folder / "presets.yaml").write_text(PRESETS)
    return root


def book(root: Path, words: str = "Words.") -> Path:
    """The sources of a book of a page that says `words`, one chapter and the notebook, whose numbers are epsilon."""
    for name in ("_static", "_extra"):
        shutil.copytree(REPOSITORY / "book" / name, root / "book" / name, dirs_exist_ok=True)
    shutil.copyfile(REPOSITORY / "_config.yml", root / "_config.yml")
    (root / "book" / "references.bib").write_text("")
    (root / "book" / "index.md").write_text(f"# A small book\n\n{words}\n")
    (root / "book" / "chapter.md").write_text(f"# A chapter\n\nThe loss is {{value}}`{TOY} loss .2f`.\n")
    sections = f"      - file: book/chapter\n        sections: [{{file: book/results/{TOY}}}]\n"
    (root / "_toc.yml").write_text(f"format: jb-book\nroot: book/index\nparts:\n  - chapters:\n{sections}")
    return write(root)


def enter(root: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The project at `root`, whose notebooks this process and those that it starts find."""
    monkeypatch.setenv("EVOLVINGDP_NOTEBOOKS", str(root / "notebooks"))
    monkeypatch.setenv("EVOLVINGDP_CACHE", str(root / ".cache"))
    monkeypatch.setattr(evolvingdp.notebooks, "__path__", [str(root / "notebooks")])
    monkeypatch.delitem(__import__("sys").modules, "evolvingdp.notebooks.toy.line", raising=False)
    monkeypatch.delitem(__import__("sys").modules, "evolvingdp.notebooks.toy", raising=False)
    return Project(root)


def parameters(**changed: object) -> str:
    """The source of a cell such as papermill injects."""
    values = params.model(TOY, PARAMETERS, PRESETS).make(overrides=changed).as_json()
    return "\n".join(f"{name} = {value!r}" for name, value in values.items())
