"""Labels are data: hostile and multilingual words through a whole run, its page and its notebook, in a real browser."""

from __future__ import annotations

import csv
import json
import re
import shutil
from html import unescape

import nbformat
import pandas as pd
import pytest
from accessibility import DESKTOP, PHONE
from bs4 import BeautifulSoup
from hostile import HOSTILE, WORDS
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from matplotlib import font_manager

from browsing import in_browser, new_page, ready
from evolvingdp.book import latex
from evolvingdp.book.checkout import Project
from evolvingdp.book.executed import read_alone
from evolvingdp.book.labels import Label, families, fenced, spoken, unmarked
from evolvingdp.book.rendering.build import render
from evolvingdp.book.running import Job, export, run
from evolvingdp.book.style import canvas, house
from support import REPOSITORY

NOTEBOOK = "streams/two_centuries"


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The book of one page, what the run on the words has written, and the notebook that `run --out` gives."""
    root = tmp_path_factory.mktemp("labels")
    source = root / "counts <b>```{value} $x$.csv"
    with source.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["date", "word", "count"])
        rows.writerows([year, word, 10 + year % 7 * place] for year in range(2000, 2006) for place, word in enumerate(WORDS))
    for name in ("_static", "_extra"):
        shutil.copytree(REPOSITORY / "book" / name, root / "book" / name)
    shutil.copyfile(REPOSITORY / "_config.yml", root / "_config.yml")
    shutil.copytree(REPOSITORY / "notebooks" / "streams", root / "notebooks" / "streams")
    shared = shutil.ignore_patterns("*.ipynb", "__pycache__")  # what its module imports of those on means
    shutil.copytree(REPOSITORY / "notebooks" / "evolving", root / "notebooks" / "evolving", ignore=shared)
    (root / "book" / "references.bib").write_text("")
    for page in ("index", "two_centuries", "continual_mean"):
        (root / "book" / f"{page}.md").write_text(f"# {page}\n")
    files = ["book/two_centuries", "book/continual_mean", f"book/results/{NOTEBOOK}"]
    chapters = "".join(f"      - file: {file}\n" for file in files)
    (root / "_toc.yml").write_text(f"format: jb-book\nroot: book/index\nparts:\n  - chapters:\n{chapters}")
    changed = {
        "data": str(source), "word": HOSTILE[0], "watch": WORDS, "n_users": 10**5, "n_users_sweep": [10**5, 2 * 10**5],
        "repetitions": 2, "sample_users": 1000, "window": 2, "hot": 0.01,
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("EVOLVINGDP_CACHE", str(root / ".cache"))
        job = Job.make(Project(root), NOTEBOOK, "quick", changed)
        run(job)
        export(job, job.project.results / job.paper, as_page=True)
        render(job.project, print)
        values = job.store / job.name / "values.json"
        export(job, root / "out", finish=lambda executed: read_alone(executed, NOTEBOOK, values))
        yield job


def shown(word: str) -> str:
    return Label(word).plain


def test_no_word_runs_on_the_page_which_shows_each_as_it_is(ran):
    site = f"{(ran.project.root / '_build' / 'html').as_uri()}/"

    def look(browser):
        page, problems = new_page(browser, site, DESKTOP, "light")
        page.goto(f"{site}book/results/{NOTEBOOK}.html", wait_until="load")
        ready(page)
        found = page.evaluate(
            """() => ({hit: window.hit,
              cells: [...document.querySelectorAll("article table")].map(table =>
                [...table.rows].slice(1).map(row => row.cells[0].textContent.trim())),
              captions: [...document.querySelectorAll("article figcaption")].map(node => node.textContent),
              title: document.querySelector("article p").textContent,
              alts: [...document.querySelectorAll("article img")].map(image => image.alt),
              inside: document.querySelectorAll("article .label *").length})"""
        )
        page.set_viewport_size({"width": PHONE, "height": 900})
        return found, problems, page.evaluate("document.documentElement.scrollWidth")

    found, problems, width = in_browser(look)
    assert (problems, found["hit"], found["inside"], width) == ([], None, 0, PHONE)
    (words,) = [cells for cells in found["cells"] if "new york" in cells]
    assert words == [*map(shown, WORDS)], "each word in one cell, every character of it"
    assert f"“{WORDS[0]}”" in found["title"]
    assert sum(f"“{WORDS[0]}”" in caption for caption in found["captions"]) == 3
    assert sum(WORDS[0] in alt for alt in found["alts"]) >= 1
    assert any("counts <b>```{value} $x$.csv" in caption for caption in found["captions"])


def test_the_run_s_notebook_and_files_hold_each_word_as_it_is(ran):
    notebook = nbformat.read(ran.project.root / "out" / "two_centuries.ipynb", 4)
    outputs = [out.get("data", {}).get("text/markdown", "") for cell in notebook.cells for out in cell.get("outputs", [])]
    soup = BeautifulSoup("".join(map(MarkdownIt("commonmark").enable("table").render, outputs)), "html.parser")
    assert not soup.select("script, svg, img, u, b")
    columns = [[row.td.get_text() for row in table.select("tr") if row.td] for table in soup.select("table")]
    assert [*map(shown, WORDS)] in columns
    folder = ran.project.root / "out" / "two_centuries"
    assert set(pd.read_csv(folder / "tc-hot-words.csv", keep_default_na=False)["word"]) <= set(WORDS)
    table = pd.read_csv(folder / "results.csv", keep_default_na=False, low_memory=False)
    listed = [word for cell in table[table.part == "hot"].listed for word in json.loads(cell)]
    assert {"new york", "a, b"} <= set(listed) <= set(WORDS), "a list of words is not joined by a blank"
    command = json.loads((folder / "provenance.json").read_text())["command"]
    assert json.dumps(WORDS, ensure_ascii=False)[:30] in command
    assert sorted(path.name for path in folder.glob("*.pdf")) == sorted(
        f"tc-{name}{kind}.pdf"
        for name in ("newspaper", "guarantees", "hot-words", "running-means")
        for kind in ("", "-column")
    )


texts = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("<>&`$\\{}[]|*_#!\n 1"), min_size=1, max_size=30)


@settings(max_examples=300)
@given(texts)
def test_any_label_is_one_text_in_markdown_in_a_table_and_in_a_drawing(text):
    label = Label(text)
    plain = MarkdownIt("commonmark").enable("table")
    cell = BeautifulSoup(plain.render(f"|a|\n|-|\n|x{unmarked(label.markdown)}x|\n"), "html.parser").td
    assert (cell.get_text(), cell.find_all()) == (f"x{label.plain}x", [])
    assert spoken(f"“{label.markdown}”") == f"“{label.plain}”"
    block = plain.parse(fenced(label.plain, "bash"))
    assert [token.content for token in block] == [f"{label.plain}\n"]
    assert "\n" not in label.plain
    with pytest.raises(TypeError, match="say where"):
        f"{label}"


@house
def drawn(label: Label) -> str:
    figure, ax = canvas(2, 2)
    ax.set_ylabel(f"“{label.mathtext}”")
    figure.canvas.draw()
    return ax.yaxis.label.get_text()


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("word", WORDS)
def test_a_drawing_takes_every_word(word):
    assert drawn(Label(word)).startswith("“")
    assert families()[0] == "DejaVu Sans"
    assert set(families()) <= set(font_manager.get_font_names())


def test_a_table_for_print_takes_every_word():
    table = pd.DataFrame({"word": [Label(word) for word in WORDS], "count": range(len(WORDS))})
    written = latex.table(table, caption="c", label="l", comment="a comment")
    assert "LuaLaTeX" in written
    lines = written.split("\\midrule\n")[1].split("\\bottomrule")[0].splitlines()
    assert len(lines) == len(WORDS)
    for line in lines:  # no character of a word is left that LaTeX would read
        bare = re.sub(r"\\[%$#&_{}]|\\text\w+\{\}|\{[\[\]*]?\}", "", line.removesuffix(" \\\\").strip())
        assert re.fullmatch(r"[^\\$%#_{}^~&]* & \d+", bare), line
    assert "中文标签" in written


def test_hidden_characters_are_shown_by_their_code():
    assert Label("a\u202eb\x07\ue000").plain == "a<U+202E>b<U+0007><U+E000>"
    assert unescape(unmarked(Label("<b> 1").markdown)) == "<b> 1"
    assert Label("x" * 100).mathtext == "x" * 39 + "…"
