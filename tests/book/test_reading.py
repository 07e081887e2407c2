"""Numbers as people write them, and a notebook that reads by itself: its own numbers in its sentences."""

from __future__ import annotations

import json
import re

import nbformat
import pytest

from evolvingdp.book.checkout import Project
from evolvingdp.book.executed import page, read_alone
from evolvingdp.book.numerals import grouped, numeric, readable
from evolvingdp.book.result import DRAWN_BY, MYST

ROLE = re.compile(r"\{[\w:]+\}`")


@pytest.mark.parametrize(
    ("printed", "written"),
    [
        ("7.66e+04", "76,600"),
        ("1e-06", "10⁻⁶"),
        ("(1, 1e-06)", "(1, 10⁻⁶)"),
        ("-5.549e-05.", "-5.549·10⁻⁵."),
        ("9.0e+09 queries, n = 10^7, 2^53", "9.0·10⁹ queries, n = 10⁷, 2⁵³"),
        ("at .5, not -.25", "at 0.5, not -0.25"),
        ("1024 epochs, 2363 and 2971, k=1000; in 1976 and 2024", "1,024 epochs, 2,363 and 2,971, k=1,000; in 1976 and 2024"),
        ("RAPPOR-1024, 2400-2500, doi:10.1145/3583, 4.1024", "RAPPOR-1024, 2400-2500, doi:10.1145/3583, 4.1024"),
        ("1024", "1024"),
        ("E-HH-1, 3e7b9, v1.2e5x, 0.5, core.noise, x[1].5", "E-HH-1, 3e7b9, v1.2e5x, 0.5, core.noise, x[1].5"),
    ],
)
def test_numbers_are_written_as_people_write_them(printed, written):
    assert readable(printed) == written
    assert readable(written) == written


def test_a_column_is_set_to_the_right_where_all_its_cells_are_numbers():
    for column in (["1", "2.5", ""], ["1e-06", "-3,000"], ["0.5 ± 0.1", "**2**", "2 (3 %)"], ["inf", "7"], ["12%"]):
        assert numeric(column), column
    for column in ([""], ["holds", "1"], ["1 to 2"], ["2026-11-22"], ["at most 3"]):
        assert not numeric(column), column


def test_long_whole_numbers_of_a_column_have_commas_and_years_alone_have_none():
    assert grouped(["25992", "1005119", "4096", "0.5", ""]) == ["25,992", "1,005,119", "4,096", "0.5", ""]
    assert grouped(["100", "1000", "2000", "5000"]) == ["100", "1,000", "2,000", "5,000"]
    assert grouped(["2020", "1976", "7"]) == ["2020", "1976", "7"]


TEXT = (
    "{cite:t}`bassily2020` ({cite}`ye2018, warner1965`) has {value}`heavy_hitters/x n ,.0f` words, [E-HH-1](#e-hh-1), "
    "{doc}`/book/notation`, {doc}`here </book/evolving>`, {prf:ref}`thm-oracle-error`, `{doc}`, {value}`evolving/thresh n`, "
    "{cite}`dwork2010continual`, {value}`n`, {value}`heavy_hitters/x n ,.f`"
)


def test_a_notebook_that_is_read_alone_has_its_numbers_and_words_for_its_links(tmp_path):
    values = tmp_path / "values.json"
    values.write_text('{"n": 1234.4}')
    data = {"text/markdown": "{value}`heavy_hitters/x n .1f`", "text/plain": "", MYST: "unused"}
    shown = nbformat.v4.new_code_cell("show()", outputs=[nbformat.v4.new_output("display_data", data=data)])
    source = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(TEXT), shown])
    read = read_alone(source, "heavy_hitters/x", values).cells
    assert read[0].source == (
        "Bassily 2020 (Ye 2018, Warner 1965) has 1,234 words, E-HH-1, *notation*, *here*, *thm-oracle-error*, `{doc}`, "
        "{value}`evolving/thresh n`, Dwork 2010, {value}`n`, {value}`heavy_hitters/x n ,.f`"
    )
    assert read[1].outputs[0].data == {"text/markdown": "1234.4", "text/plain": ""}
    assert source.cells[1].outputs[0].data == data, "the cached notebook stays as it is"


@pytest.mark.parametrize("notebook", Project().notebooks())
def test_no_role_is_left_in_any_notebook_that_somebody_runs(built_book, notebook):
    source = nbformat.read(Project().template(notebook), as_version=4)
    read = read_alone(source, notebook, built_book.results / notebook / "values.json")
    text = "\n".join(cell.source for cell in read.cells if cell.cell_type == "markdown")
    assert ROLE.search(json.dumps([cell.source for cell in source.cells]))
    assert not ROLE.findall(text)
    assert "](#" not in text


def test_a_page_shows_pictures_before_code_and_one_menu_below_each():
    """Imports and parameters fold at the end, the folded cells that draw a figure into the menu below it."""
    myst = f"```{{figure}} a.svg\n```\n::::{{dropdown}} Data, code, citation of `a`\n{DRAWN_BY}\n::::"
    shown = [nbformat.v4.new_output("display_data", data={MYST: myst})]
    seen = [nbformat.v4.new_output("display_data", data={"text/plain": "3"})]

    def code(source, *tags, outputs=()):
        return nbformat.v4.new_code_cell(source, metadata={"tags": [*tags]}, outputs=[*outputs])

    cells = [
        nbformat.v4.new_markdown_cell("# Title"), code("epsilon = 1", "parameters"),
        code("epsilon = 2", "injected-parameters"),
        code("import numpy as np"), code("1 + 2", outputs=seen), code("draw(````)", "hide-input"),
        code("page.figure()", "remove-input", outputs=shown), code("draw(more)", "hide-input"), code("page.close()"),
    ]  # fmt: skip
    made = page(nbformat.v4.new_notebook(cells=cells)).cells
    text = [cell.source for cell in made if "remove-cell" not in cell.metadata.get("tags", [])]
    assert text[:3] == ["# Title", "1 + 2", "page.figure()"]
    assert "Drawn by\n\n`````python\ndraw(````)\n`````" in text[3], "the menu has the cell, in a fence that it cannot end"
    assert text[4:6] == ["page.close()", "draw(more)"], "a cell that draws nothing is not lost"
    assert "{dropdown} Parameters and imports\n```python\nepsilon = 2\n\nimport numpy as np\n```" in text[6]
