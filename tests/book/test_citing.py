"""What citers take away: BibTeX, bundles of figures, PDFs at printed widths, and tables in LaTeX."""

from __future__ import annotations

import csv
import datetime
import html
import io
import math
import re
import unicodedata
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fontTools.ttLib import TTFont
from pikepdf import Page, Pdf
from pybtex.database import Entry, parse_file, parse_string
from pypdfium2 import PdfDocument, raw

from drawn import titles
from evolvingdp.book import bundle, citing, latex
from evolvingdp.book.checkout import Project
from evolvingdp.book.printed import _fitted
from evolvingdp.book.rendering.ext import Linked
from evolvingdp.book.result import Figure
from evolvingdp.book.style import COLUMN, INCHES, LETTERS, canvas, house, names_beside
from support import REPOSITORY

RECORD = {
    "notebook": "paper/some_notebook",
    "command": "evolvingdp run x",
    "version": "0.1.0",
    "python": "3.11.5",
    "commit": "a" * 40,
}


def entries(text: str) -> dict[str, Entry]:
    """What a bibliography program reads: every entry, each key once (pybtex raises otherwise)."""
    return dict(parse_string(text, "bibtex").entries.items())


# BibTeX


def test_every_paper_says_where_it_is_and_its_title_leads_there():
    references = parse_file(REPOSITORY / "book" / "references.bib").entries
    lacking = {key for key, entry in references.items() if not {"doi", "url"} & set(entry.fields)}
    assert lacking == set(), "each entry has a doi or a stable url"
    assert not {
        key
        for key, entry in references.items()
        if entry.fields.get("url", "http").partition("://")[0] not in ("http", "https")
    }
    for entry in Linked().format_entries(references.values()):
        cited = references[entry.key]
        title = re.sub(r"[{}\\]", "", cited.fields["title"]).lower()
        links = re.findall(r'<a href="([^"]*)">(.*?)</a>', entry.text.render_as("html"))
        plain = {re.sub(r"<.*?>", "", text).lower().rstrip("."): link for link, text in links}
        assert plain[html.escape(title, quote=False)] == citing.address(cited.fields), entry.key


def test_every_title_is_the_one_that_a_page_was_found_to_give_it():
    def letters(title: str) -> str:
        return re.sub(r"[^a-z0-9]", "", unicodedata.normalize("NFKD", title).lower())

    references = parse_file(REPOSITORY / "book" / "references.bib").entries
    with (REPOSITORY / "book" / "references.csv").open(newline="") as file:
        rows = {row["key"]: row for row in csv.DictReader(file)}
    assert list(rows) == list(references)
    for key, row in rows.items():
        assert datetime.date.fromisoformat(row["date"])
        if row["page"]:
            assert row["page"] in ("own", "version", "other", "citing"), key
            assert row["found"].startswith("http"), key
            assert letters(row["title"]) == letters(references[key].fields["title"]), key
        else:
            assert row["found"] == row["title"] == "", key
    said = titles.compared(REPOSITORY)
    assert f"{sum(bool(row['title']) for row in rows.values())} of {len(rows)} titles were compared" in said


def test_the_book_s_bibtex_has_authors_title_version_and_year():
    (entry,) = entries(citing.book()).values()
    facts_of = citing.citation()
    assert entry.type == "software"
    assert [str(person) for person in entry.persons["author"]] == ["{Evolving Privacy contributors}"]
    assert entry.fields["title"] == f"{{{facts_of['title']}}}"
    assert entry.fields["version"] == facts_of["version"]
    assert entry.fields["year"] == str(facts_of["date-released"])[:4]
    assert entry.fields["date"] == str(facts_of["date-released"])
    assert entry.fields.get("url") == facts_of.get("url")


def test_a_figure_s_bibtex_names_the_figure_the_version_and_the_commit():
    ((key, entry),) = entries(citing.figure("hh-oracle-words", RECORD)).items()
    assert key == "evolving-privacy-hh-oracle-words"
    assert entry.fields["title"].startswith("Figure hh-oracle-words of ")
    assert entry.fields["howpublished"] == f"Version 0.1.0, commit {'a' * 40}"
    assert {"author", "title", "howpublished", "year", "date"} == {*entry.fields, *entry.persons} - {"url"}


# bundles


@house
def drawing() -> Figure:
    """Three panels with a scale of their own, long words, and a legend that covers much of the first."""
    figure, axes = canvas(10.0, 3.8, columns=3)
    x = np.arange(1, 6)
    for ax in axes:
        for number in range(5):
            ax.plot(x, x**number, marker="o", label=f"a method with a long name, {number}")
        ax.set(yscale="log", xlabel="a label that is longer than a panel, in users of $n$", ylabel="error", title="title")
    axes[0].legend()
    return Figure("xx-drawing", figure, pd.DataFrame({"x": x}), "A caption.", "A drawing.")


def test_a_bundle_is_one_zip_whose_bytes_the_result_decides(tmp_path, monkeypatch):
    written = []
    for name, clock in (("first", 1.6e9), ("second", 1.7e9)):
        monkeypatch.setattr("time.time", lambda clock=clock: clock)
        (tmp_path / name).mkdir()
        bundle.write(tmp_path / name, drawing(), RECORD)
        written.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert written[0] == written[1]
    assert set(written[0]) == set(bundle.names("xx-drawing", column=False).values())
    archive = zipfile.ZipFile(io.BytesIO(written[0]["xx-drawing.zip"]))
    inside = {name: archive.read(name) for name in archive.namelist()}
    assert list(inside) == sorted(inside)
    beside = {name: content for name, content in written[0].items() if not name.endswith(".zip")}
    assert {name: inside[name] for name in beside} == beside
    assert set(inside) - set(beside) == {"README.txt", "xx-drawing.bib"}
    assert list(entries(inside["xx-drawing.bib"].decode())) == ["evolving-privacy-xx-drawing"]
    for words in ("A caption.", "A drawing.", RECORD["command"], RECORD["commit"]):
        assert words in inside["README.txt"].decode()


def test_in_a_printed_column_names_beside_lines_become_a_legend_that_tells_grey_lines_apart():
    """Also under names that no line bears: the line of that colour that ends there."""
    token, ends = COLUMN.set("some-figure"), {"s": 0.0, "D": 1.0, "dashed": 2.0, "dotted": 3.0, "black": 4.0}
    try:
        figure, ax = canvas()
        for place, (marker, dashes) in enumerate([("s", ""), ("D", ""), ("v", "--"), ("^", ":")]):
            ax.plot([1, 2], [9, place], marker + dashes, label=marker, color="0.5")
        names_beside(ax, ends, dict.fromkeys(ends, "0.5") | {"black": "black"})
    finally:
        COLUMN.reset(token)
    looks = [(handle.get_marker(), handle.get_linestyle()) for handle in figure.named.values()]
    assert looks == [("None", "-"), ("^", ":"), ("v", "--"), ("D", "None"), ("s", "None")], "highest first"


def test_beside_a_line_whose_colour_another_one_has_stands_its_marker():
    _, ax = canvas()
    for place, (name, marker) in enumerate({"first": "s", "second": "D"}.items()):
        ax.plot([1, 2], [9, place], marker, label=name, color="0.5")
    names_beside(ax, {"first": 0.0, "second": 1.0, "alone": 3.0}, {"first": "0.5", "second": "0.5", "alone": "black"})
    assert [text.get_text() for text in ax.texts] == ["■ first", "◆ second", "alone"]


def test_in_a_printed_column_lines_of_two_panels_that_look_alike_have_one_entry():
    figure, (first, second) = canvas(columns=2)
    for ax, name in ((first, "k = 1"), (second, "groups A")):
        ax.plot([1, 2], "o--", color="red", label=name)
    second.plot([2, 1], "o-", color="red", label="groups B")
    for ax in (first, second):
        ax.legend()
    (legend,) = _fitted(figure).legends
    assert [text.get_text() for text in legend.texts] == ["k = 1; groups A", "groups B"]


def test_every_printed_figure_has_its_width_embedded_fonts_and_letters_of_a_printed_size_inside_the_page(built_book):
    paths = sorted(built_book.results.rglob("*-column.pdf"))
    assert len(paths) == len(list(built_book.results.glob("*/*/*.png")))
    seen = 0
    for path in paths:
        with PdfDocument(path) as document, Pdf.open(path) as file:
            (page,) = document
            assert abs(page.get_width() / 72 / INCHES - 1) < 0.01, path.name
            _all_fonts_embedded(file.pages[0], path)
            letters = page.get_textpage()
            for item in page.get_objects([raw.FPDF_PAGEOBJ_TEXT], textpage=letters):
                text, place = item.extract().strip(), item.get_matrix()
                size = item.get_font_size() * math.hypot(place.a, place.b)
                if any(character.isalnum() for character in text):  # indices have 0.7 of their size, roots any
                    assert 0.69 * LETTERS[0] <= size <= LETTERS[1] + 0.01, (path.name, text, size)
                if text:
                    left, bottom, right, top = item.get_bounds()
                    assert -1 <= left <= right <= page.get_width() + 1, (path.name, text)
                    assert -1 <= bottom <= top <= page.get_height() + 1, (path.name, text)
                    seen += 1
    assert seen > 30 * len(paths)


def _all_fonts_embedded(page: Page, path: Path) -> None:
    fonts = page.Resources.Font
    assert fonts
    for font in fonts.values():
        assert font.Subtype in ("/TrueType", "/Type0"), path.name
        (real,) = font.get("/DescendantFonts", [font])
        tables = TTFont(io.BytesIO(real.FontDescriptor.FontFile2.read_bytes())).keys()
        assert "glyf" in tables, path.name


# tables

HOSTILE = {
    r"100 % of a_b & #1 $5 ^ \ {x}": r"100 \% of a\_b \& \#1 \$5 \textasciicircum \space \textbackslash \space \{x\}",
    "a~b < c > d | e": r"a\textasciitilde b \textless{} c \textgreater{} d \textbar{} e",
    "ε ± ≤ → é Ł “Л”": r"$\epsilon$ $\pm$ $\leq$ $\rightarrow$ {\'e} {\L} ``Л''",
    r"**bold $\epsilon_1$** and *em*": r"\textbf{bold $\epsilon_1$} and \emph{em}",
    "`--preset a_b`": r"\texttt{-{}-preset a\_b}",
    "[E-HH_3](#e-hh-3) {cite}`bassily2020`": r"E-HH\_3 \cite{bassily2020}",
    "[0, 1]": "{[}0, 1{]}",
    "* not a bullet": "{*} not a bullet",
    "$50 % < ε$ and 5 – 6": r"$50 % < ε$ and 5 -- 6",
    "": "",
}


def cell(markdown: str) -> str:
    written = latex.table(pd.DataFrame({"a": [markdown]}), caption="c", label="l", comment="k")
    return written.split("\\midrule\n")[1].split(" \\\\\n\\bottomrule")[0]


@pytest.mark.parametrize("markdown", HOSTILE)
def test_a_cell_of_markdown_is_the_same_cell_in_latex(markdown):
    assert cell(markdown) == HOSTILE[markdown]


def test_a_cell_that_latex_cannot_print_is_an_error_that_shows_it():
    with pytest.raises(ValueError, match=r"a table's cell must .* got .*a/b c"):
        cell("{value}`a/b c`")


def test_numbers_stand_on_the_right_and_words_on_the_left():
    frame = pd.DataFrame({"a": ["x", "y"], "b": ["1,000 (2.5)", ""], "c": ["39 of 40", "1"], "d": ["-1e-5", "12%"]})
    text = latex.table(frame, caption="c", label="tab:x", comment="k")
    assert r"\begin{tabular}{lrlr}" in text
    assert r"x & 1,000 (2.5) & 39 of 40 & -1e-5 \\" in text


@pytest.mark.parametrize("notebook", Project().notebooks())
def test_every_table_of_the_book_is_sound_latex(built_book, notebook):
    paths = sorted((built_book.results / notebook).glob("*.tex"))
    name = notebook.split("/")[1]
    calls = Project().template(notebook).read_text().count("page.table(")
    assert {path.stem for path in paths} == {f"{name}-claims", *(f"{name}-table-{k}" for k in range(1, calls + 1))}
    labels = [re.search(r"\\label\{(tab:[a-z0-9-]+)\}", path.read_text())[1] for path in paths]
    assert len(set(labels)) == len(labels)
    for path in paths:
        _sound(path.read_text(), path.name)


def _sound(text: str, name: str) -> None:
    """Groups and formulas close, every row has its cells, and no special character stands outside of a formula."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert text.isascii(), name
    bare = re.sub(r"\\[\\{}$&%#_]", "", body)
    assert bare.count("{") == bare.count("}"), name
    assert bare.count("$") % 2 == 0, name
    columns = len(re.search(r"\\begin\{tabular\}\{([lr]+)\}", body)[1])
    rows = [line for line in body.splitlines() if line.endswith(r" \\")]
    assert len(rows) >= 2, name
    for row in rows:
        outside = re.sub(r"\$[^$]*\$", "", re.sub(r"\\[{}$&%#_]", "", row))
        assert outside.count("&") == columns - 1, (name, row)
        assert not re.search(r"[%#~^<>|_]", outside), (name, row)
