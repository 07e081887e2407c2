"""Labels are data: hostile and multilingual words through a whole run, its page and its notebook, in a real browser."""

from __future__ import annotations

import csv
import json
import re
import shutil
import zipfile
from functools import partial
from html import unescape

import nbformat
import pandas as pd
import pytest
from accessibility import DESKTOP, PHONE
from bs4 import BeautifulSoup
from hostile import HIT, HOSTILE, LETTERS, WORDS, counted
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from matplotlib import font_manager

from browsing import new_page, ready
from evolvingdp.book.checkout import Project
from evolvingdp.book.executed import read_alone
from evolvingdp.book.labels import Label, families, fenced, spoken, unmarked
from evolvingdp.book.rendering.build import render
from evolvingdp.book.rendering.pdf import joined
from evolvingdp.book.running import Job, export, run
from evolvingdp.book.style import canvas, house
from evolvingdp.core.seeds import stream
from support import REPOSITORY

NOTEBOOK = "streams/two_centuries"
FILE = f'<img src=x onerror="{HIT}"> <b>```{{value}} {{doc}}`a` $x$ \\b مرحبا 中文.csv'


def counts():
    rows = [(year, word, 10 + year % 7 * place) for year in range(2000, 2006) for place, word in enumerate(WORDS)]
    return pd.DataFrame(rows, columns=["date", "word", "count"])


def bits():
    rng = stream(0, "bits")
    rows = [(name, user, int(rng.random() < 0.4)) for name in WORDS for user in range(20 * len(WORDS))]
    return pd.DataFrame(rows, columns=["period", "user", "bit"])


def samples():
    rng = stream(0, "samples")
    users = [WORDS[place] for place in rng.integers(0, len(WORDS), 2000)]
    return pd.DataFrame({"user": users, "value": rng.uniform(40, 160, 2000).round(1)})


def groups():
    who = list(enumerate(f"{number}{word[:40]}" for word in WORDS for number in range(30)))
    held = [(WORDS[-step], user, WORDS[place % 5 + 5 * step]) for step in range(9) for place, user in who]
    return pd.DataFrame(held, columns=["step", "user", "group"])


BOUNDS = {"low": 40, "high": 160}
SMALL = {
    "word": HOSTILE[0], "watch": WORDS, "n_users": 10**5, "n_users_sweep": [10**5, 2 * 10**5], "repetitions": 2,
    "sample_users": 1000, "window": 2, "hot": 0.01,
}  # fmt: skip
MADE = {
    "streams/two_centuries": (counts, SMALL),
    "heavy_hitters/treehist": (lambda: counted(LETTERS), {}),
    "heavy_hitters/bitstogram": (lambda: counted(LETTERS), {}),
    "heavy_hitters/rappor": (lambda: counted(WORDS[::-1]), {}),
    "evolving/thresh": (bits, {}),
    "continual_mean/user_mean": (samples, BOUNDS),
    "continual_mean/past_the_paper": (samples, BOUNDS),
    "sparse_vector/shifting_heavy_hitters": (groups, {}),
}  # every notebook that takes `data`, and a file of the reader's for it
OWN = list(MADE)[1:]  # which then show nothing else


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A book of a page a notebook, what the runs on the words have written, and the notebooks that `run --out` gives."""
    root = tmp_path_factory.mktemp("labels")
    for name in ("_static", "_extra"):
        shutil.copytree(REPOSITORY / "book" / name, root / "book" / name)
    shutil.copyfile(REPOSITORY / "_config.yml", root / "_config.yml")
    for paper in {notebook.split("/")[0] for notebook in MADE}:
        shutil.copytree(REPOSITORY / "notebooks" / paper, root / "notebooks" / paper)
    (root / "book" / "references.bib").write_text("")
    pages = [f"book/{paper}" for paper in ("two_centuries", "continual_mean")]
    for page in ("book/index", *pages):
        (root / f"{page}.md").write_text(f"# {page}\n")
    for path in root.glob("notebooks/*/*.ipynb"):
        if f"{path.parent.name}/{path.stem}" not in MADE:
            path.unlink()
    chapters = "".join(f"      - file: {file}\n" for file in [*pages, *(f"book/results/{notebook}" for notebook in MADE)])
    (root / "_toc.yml").write_text(f"format: jb-book\nroot: book/index\nparts:\n  - chapters:\n{chapters}")
    jobs = {}
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("EVOLVINGDP_CACHE", str(root / ".cache"))
        for notebook, (make, more) in MADE.items():
            source = root / notebook.replace("/", "-") / FILE
            source.parent.mkdir()
            make().to_csv(source, index=False, quoting=csv.QUOTE_ALL)
            jobs[notebook] = job = Job.make(Project(root), notebook, "quick", {"data": str(source), **more})
            run(job)
            export(job, job.project.results / job.paper, as_page=True)
            values = job.store / job.name / "values.json"
            export(job, root / "out", finish=partial(read_alone, notebook=notebook, values=values))
        render(job.project, print)
    assert set(MADE) == {name for name in Project().notebooks() if "data" in Project().params(name).lines}
    return jobs


@pytest.fixture(scope="module")
def seen(ran, browser):
    """What a browser finds on each notebook's page from disk, as the zip has it, and in all of them joined for the PDF."""
    project = ran[NOTEBOOK].project
    html = project.root / "_build" / "html"
    html.with_name("print").mkdir()
    (html.with_name("print") / "book.html").write_text(joined(project))
    found = {}
    for name in [*(f"html/book/results/{notebook}" for notebook in MADE), "print/book"]:
        page, problems = new_page(browser, f"{html.parent.as_uri()}/", DESKTOP, "light")
        page.goto(f"{html.parent.as_uri()}/{name}.html", wait_until="load")
        ready(page)
        facts = page.evaluate(FOUND)
        page.set_viewport_size({"width": PHONE, "height": 900})
        facts["width"] = page.evaluate("document.documentElement.scrollWidth")
        found[name.removeprefix("html/book/results/")] = facts | {"problems": problems}
        page.context.close()
    return found


FOUND = """() => ({hit: window.hit,
  rows: [...document.querySelectorAll("article table")].map(table =>
    [...table.rows].map(row => [...row.cells].map(cell => cell.textContent.trim()))),
  captions: [...document.querySelectorAll("article figcaption")].map(node => node.textContent),
  title: document.querySelector("article p").textContent,
  text: document.querySelector("article").textContent,
  alts: [...document.querySelectorAll("article img")].map(image => image.alt),
  labels: document.querySelectorAll("article .label").length,
  inside: document.querySelectorAll("article .label *").length})"""


def shown(word: str) -> str:
    return Label(word).plain


def test_no_label_runs_where_all_pages_are_joined_for_print(seen):
    found = seen["print/book"]
    assert (found["problems"], found["hit"], found["inside"]) == ([], None, 0)
    assert found["labels"] == sum(page["labels"] for name, page in seen.items() if name in MADE) > 250
    assert sum(FILE in caption for caption in found["captions"]) >= len(MADE)


@pytest.mark.parametrize("notebook", MADE)
def test_no_label_of_a_file_runs_on_a_page_which_shows_it_as_it_is(ran, seen, notebook):
    found, folder = seen[notebook], ran[notebook].project.results / notebook
    assert (found["problems"], found["hit"], found["inside"], found["width"]) == ([], None, 0, PHONE)
    assert any(FILE in caption for caption in found["captions"])
    assert any((FILE if notebook in OWN else HOSTILE[0]) in alt for alt in found["alts"])
    zips = [zipfile.ZipFile(path) for path in folder.glob("*.zip")]
    assert any(FILE in bundle.read("README.txt").decode() for bundle in zips)
    assert len(zips) == len(found["captions"])
    drawn = [BeautifulSoup(path.read_text(), "xml") for path in folder.glob("*.svg")]
    assert not [bad for svg in drawn for bad in svg.select("script, image, a, foreignObject")]
    tables = [path.read_text() for path in folder.glob("*-table-*.tex")]
    for table in tables:
        for line in table.split("\\midrule\n")[1].split("\\bottomrule")[0].splitlines():
            no_command(line)
    assert notebook != NOTEBOOK or any("LuaLaTeX" in table and "中文标签" in table for table in tables)


@pytest.mark.parametrize("notebook", OWN)
def test_a_page_has_the_reader_s_rows_and_one_line_about_them(ran, seen, notebook):
    folder = ran[notebook].project.results / notebook
    values = json.loads((folder / "values.json").read_text())
    released, rows = values["released"], pd.read_csv(folder / "results.csv", keep_default_na=False, dtype=str)
    assert re.fullmatch(r"Released: .+, by .+, under .+differential privacy.+ is for study, and for no release\.", released)
    assert released.partition(", under ")[0] in seen[notebook]["text"]
    told = pd.read_csv(folder / "estimates.csv", keep_default_na=False, dtype=str)
    assert list(told) in ([told.columns[0], "estimate", "low", "high"], ["step", "group"])
    assert len(told) == values["rows"] > 2
    ((_, *cells),) = seen[notebook]["rows"]
    for place, name in enumerate(column for column in told if column in ("word", "period", "step", "group")):
        assert set(told[name]) <= {*WORDS, *LETTERS, *map(str, range(2001))}, "what the file holds, character by character"
        assert [row[place] for row in cells] == [*map(shown, rows[name].head(30))]


def test_two_centuries_release_the_followed_word_and_one_line_without_it(ran, seen):
    folder = ran[NOTEBOOK].project.results / NOTEBOOK
    told = pd.read_csv(folder / "estimates.csv", dtype={"date": str})
    assert list(told) == ["date", "estimate", "low", "high"]
    assert told.date.tolist() == [str(year) for year in range(2000, 2006)]
    assert ((told.low < told.estimate) & (told.estimate < told.high)).all()
    released = json.loads((folder / "values.json").read_text())["released"]
    assert released.startswith(
        "Released: share of the followed word by date, 6 rows, by one report of each user, under pure 1-"
    )
    assert released in seen[NOTEBOOK]["text"]


def test_each_word_that_is_watched_stands_in_one_cell(seen):
    found = seen[NOTEBOOK]
    (words,) = [cells for rows in found["rows"] if "new york" in (cells := [row[0] for row in rows[1:]])]
    assert words == [*map(shown, WORDS)], "every character of it"
    assert f"“{WORDS[0]}”" in found["title"]
    assert sum(f"“{WORDS[0]}”" in caption for caption in found["captions"]) == 3
    assert sum(WORDS[0] in alt for alt in found["alts"]) >= 1


@pytest.mark.parametrize("notebook", MADE)
def test_the_notebook_of_a_run_makes_no_element_of_a_label(ran, notebook):
    job = ran[notebook]
    executed = nbformat.read(job.project.root / "out" / f"{job.name}.ipynb", 4)
    outputs = [out.get("data", {}).get("text/markdown", "") for cell in executed.cells for out in cell.get("outputs", [])]
    soup = BeautifulSoup("".join(map(MarkdownIt("commonmark").enable("table").render, outputs)), "html.parser")
    assert not soup.select("script, svg, img, u, b")
    assert shown(FILE) in soup.get_text()
    if notebook in OWN:
        assert len(executed.cells) <= 5, "nothing else of the notebook is run"
        assert f"own-{job.name.replace('_', '-')}" in json.dumps([cell.get("outputs") for cell in executed.cells])


def test_the_run_s_files_hold_each_word_as_it_is(ran):
    folder = ran[NOTEBOOK].project.root / "out" / "two_centuries"
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


def no_command(line):
    """No character of a cell is left that LaTeX would read, in one row of a table."""
    bare = re.sub(r"\\[%$#&_{}]|\\text\w+(\{\}| )|\{[\[\]*]?\}", "", line.removesuffix(r" \\").strip())
    assert re.fullmatch(r"[^\\$%#_{}^~&]*( & [^\\$%#_{}^~&]*)+", bare), line


def test_hidden_characters_are_shown_by_their_code():
    assert Label("a\u202eb\x07\ue000").plain == "a<U+202E>b<U+0007><U+E000>"
    assert unescape(unmarked(Label("<b> 1").markdown)) == "<b> 1"
    assert Label("x" * 100).mathtext == "x" * 39 + "…"
