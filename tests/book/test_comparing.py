"""A preset of the reader's own: refused in one line or computed, and shown beside ours with every difference."""

from __future__ import annotations

import os

import pytest
from bs4 import BeautifulSoup
from serial import refused

from evolvingdp.book.checkout import Project, params_of
from evolvingdp.book.rendering import comparing
from evolvingdp.core.checks import ParameterError
from support import TOY

BAD = {
    "missing": (None, "there is no such file in"),
    "empty": ("# nothing\n", "names no notebook; try evolving/thresh: {epsilon: 2}"),
    "not YAML": ("base: [", "is not YAML: while parsing"),
    "not text": (b"\xff\xfe\x00", "cannot be read: it is no text in UTF-8"),
    "sixtieths": ("evolving/thresh: {epsilon: '1:30'}\n", "evolving/thresh: epsilon must be a number, got '1:30'"),
    "a list": ("- evolving/thresh", "must hold a line per notebook, such as"),
    "unknown base": ("base: huge\nevolving/thresh: {}\n", "base must be one of paper, quick, got 'huge'"),
    "base is a list": ("base: [quick]\nevolving/thresh: {}\n", "base must be one of paper, quick, got ['quick']"),
    "bad seed": ("seed: lucky\nevolving/thresh: {}\n", "evolving/thresh: seed must be an integer >= 0, got 'lucky'"),
    "unknown notebook": ("evolving/tresh: {}\n", "no notebook 'evolving/tresh'; did you mean 'evolving/thresh'?"),
    "unknown parameter": ("evolving/thresh: {epsilom: 1}\n", "evolving/thresh: unknown parameter 'epsilom'; did you mean"),
    "no value": ("evolving/thresh: {epsilon: }\n", "evolving/thresh: epsilon must be a number, got ''"),
    "no parameters": ("evolving/thresh: 3\n", "evolving/thresh must hold parameters, such as {epsilon: 2}, got '3'"),
    "very deep": (b"[" * 5000, "must not be nested hundreds of levels deep; try evolving/thresh"),
    "an alias": ("a: &a [1, 2]\nevolving/thresh: {epsilon: [*a, *a]}\n", "*a in line 2 is no value; write its value out"),
    "twice": ("evolving/thresh: {}\nevolving/thresh: {}\n", "'evolving/thresh' stands twice, again in line 2"),
    "twice by two names": ("evolving/thresh: {}\nnotebooks/evolving/thresh.ipynb: {}\n", "evolving/thresh stands twice"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_wrong_preset_is_one_line_with_the_file_s_name_before_anything_runs(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(comparing, "compute", lambda *_, **__: pytest.fail("it ran"))
    content, message = BAD[kind]
    path = tmp_path / "mine.yaml"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert refused("book", "--preset", path).startswith(f"Error: mine.yaml: {message}")


def test_a_preset_that_is_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "mine.yaml")
    with pytest.raises(ParameterError, match=r"^mine.yaml: must be a file with evolving/thresh: .* which is none$"):
        comparing.read(Project(), tmp_path / "mine.yaml")


@pytest.mark.parametrize("name", ["...yaml", ".yaml", "a b.yaml", "-x.yaml"])
def test_a_preset_s_name_is_a_folder_s_and_nothing_else_is_removed(name, tmp_path):
    (tmp_path / name).write_text("evolving/thresh: {}\n")
    with pytest.raises(ParameterError, match=r"must be called like mine.yaml"):
        comparing.read(Project(), tmp_path / name)


def test_a_preset_is_read_as_people_write_it(small_book, tmp_path):
    path = tmp_path / "mine.yml"
    path.write_text(f"seed: 7\n{TOY}: {{n_users: 1e5, epsilon: 1e-1, widths: '4, 8'}}\n")
    chosen = comparing.read(small_book, path)
    assert chosen.base == "paper"
    ours, yours = chosen.pairs[TOY]
    assert (yours.seed, yours.params.n_users, yours.params.epsilon, yours.params.widths) == (7, 10**5, 0.1, (4, 8))
    assert yours.params.rows == params_of(TOY).make("paper").rows  # the rest is the base's
    assert ours.params == params_of(TOY).make("paper")
    assert [name for name, _, _ in chosen.differing(TOY)] == ["seed", "epsilon", "n_users", "widths"]


def test_yours_stand_beside_ours_with_every_difference(small_book):
    path = small_book.root / "mine.yaml"
    path.write_text(f"base: quick\nseed: 7\n{TOY}: {{epsilon: 1}}\n")
    first = comparing.build(small_book, path, print)
    page = BeautifulSoup(first.read_text(), "html.parser").article
    tables = [
        [[" ".join(cell.get_text().split()) for cell in row.select("th, td")] for row in table.select("tr")]
        for table in page.select("table")
    ]
    notebooks, settings, claims = tables
    assert notebooks[1:] == [["A line", "seed = 7, epsilon = 1.0", "1 of 2"]]
    assert settings == [["parameter", "ours", "yours"], ["seed", "0", "7"], ["epsilon", "2.0", "1.0"]]
    assert claims[1:] == [
        ["Epsilon is small | no (verdict changed)", "2 (≤ 1.5): does not hold", "1 (≤ 1.5): holds", "-1"],
        ["Nothing", "0 (≤ 0): holds", "0 (≤ 0): holds", "0"],
    ]
    files = [image["src"] for image in page.select("img")] + [link["href"] for link in page.select("a.download")]
    assert len(set(files)) == 4 + 2 + 8  # pictures for light and dark pages, tables, files of both runs
    assert all((first.parent / file).is_file() for file in files)
    assert "--seed 7 -p epsilon 1.0" in page.get_text()
    assert [path.name for path in first.parents[1].iterdir()] == ["html"], "what it was made of is gone"
