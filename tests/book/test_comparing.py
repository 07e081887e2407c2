"""A preset of the reader's own: refused in one line or computed, and shown beside ours with every difference."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from bs4 import BeautifulSoup
from click.testing import CliRunner
from sphinx.errors import ExtensionError

from evolvingdp.book.checkout import Project, params_of
from evolvingdp.book.cli import main
from evolvingdp.book.rendering import build, comparing
from evolvingdp.book.rendering.build import build_yours
from evolvingdp.book.rendering.ext import refuse_stale_pages
from evolvingdp.core.checks import ParameterError
from support import CACHE

NOTEBOOK = "toy/line"

BAD = {
    "missing": (None, "there is no such file in"),
    "empty": ("", "is empty; it must name a notebook, such as evolving/thresh: {epsilon: 2}"),
    "only a comment": ("# nothing\n", "is empty"),
    "not YAML": ("base: [", "is not YAML: while parsing"),
    "not text": (b"\xff\xfe\x00", "cannot be read: it is not text"),
    "sixtieths": ("evolving/thresh: {epsilon: '1:30'}\n", "evolving/thresh: epsilon must be a number, got '1:30'"),
    "a list": ("- evolving/thresh", "must hold a line per notebook, such as"),
    "no notebook": ("base: quick\nseed: 3\n", "names no notebook; try evolving/thresh: {epsilon: 2}"),
    "unknown base": ("base: huge\nevolving/thresh: {}\n", "base must be one of paper, quick, got 'huge'"),
    "base is a list": ("base: [quick]\nevolving/thresh: {}\n", "base must be one of paper, quick, got ['quick']"),
    "bad seed": ("seed: lucky\nevolving/thresh: {}\n", "evolving/thresh: seed must be an integer >= 0, got 'lucky'"),
    "seed with a typo": ("sead: 3\nevolving/thresh: {}\n", "unknown entry 'sead'; did you mean 'seed'?"),
    "unknown notebook": ("evolving/tresh: {}\n", "no notebook 'evolving/tresh'; did you mean 'evolving/thresh'?"),
    "unknown parameter": ("evolving/thresh: {epsilom: 1}\n", "evolving/thresh: unknown parameter 'epsilom'; did you mean"),
    "bad value": ("evolving/thresh: {epsilon: -1}\n", "evolving/thresh: epsilon must be >"),
    "no value": ("evolving/thresh: {epsilon: }\n", "evolving/thresh: epsilon must be a number, got ''"),
    "nan": ("evolving/thresh: {epsilon: .nan}\n", "evolving/thresh: epsilon must be a number, got '.nan'"),
    "no parameters": ("evolving/thresh: 3\n", "evolving/thresh must hold parameters, such as {epsilon: 2}, got '3'"),
    "twice": ("evolving/thresh: {}\nevolving/thresh: {}\n", "'evolving/thresh' stands twice, again in line 2"),
    "an alias": ("a: &a [1, 2]\nevolving/thresh: {epsilon: [*a, *a]}\n", "*a in line 2 is no value; write its value out"),
    "a parameter twice": ("evolving/thresh: {epsilon: 1, epsilon: 2}\n", "'epsilon' stands twice, again in line 1"),
    "twice by two names": ("evolving/thresh: {}\nnotebooks/evolving/thresh.ipynb: {}\n", "evolving/thresh stands twice"),
    "the second is wrong": (
        "evolving/thresh: {}\nevolving/heavy_thresh: {x: 1}\n",
        "evolving/heavy_thresh: unknown parameter",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_wrong_preset_is_one_line_with_the_file_s_name_before_anything_runs(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "compute", lambda *_, **__: pytest.fail("it ran"))
    content, message = BAD[kind]
    path = tmp_path / "mine.yaml"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = CliRunner().invoke(main, ["book", "--preset", str(path)])
    assert result.exit_code == 1, result.output
    assert result.stderr.startswith(f"Error: mine.yaml: {message}")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


@pytest.mark.parametrize("name", ["...yaml", ".yaml", "a b.yaml", "-x.yaml"])
def test_a_preset_s_name_is_a_folder_s_and_nothing_else_is_removed(name, tmp_path):
    path = tmp_path / name
    path.write_text("evolving/thresh: {}\n")
    with pytest.raises(ParameterError, match=r"must be called like mine.yaml"):
        comparing.read(Project(), path)


def test_presets_of_one_name_do_not_replace_each_other_s_pages(tmp_path):
    project = Project(tmp_path)
    files = [tmp_path / name for name in ("mine.yaml", "mine.yml", "other/mine.yaml")]
    (tmp_path / "other").mkdir()
    for file in files:
        file.write_text("evolving/thresh: {}\n")
    mine, *others = [(comparing.read(Project(), file), file) for file in files]
    for _ in range(2):
        assert comparing.home(project, *mine) == tmp_path / "_build" / "yours" / "mine"
    for other in others:
        with pytest.raises(ParameterError, match=r"has the pages of .*mine.yaml'; rename one of them"):
            comparing.home(project, *other)
    files[0].unlink()  # nobody can make its pages any more
    assert comparing.home(project, *others[0]).name == "mine"


def test_a_preset_is_read_as_people_write_it(small_book, tmp_path):
    path = tmp_path / "mine.yml"
    path.write_text(f"seed: 7\n{NOTEBOOK}: {{n_users: 1e5, epsilon: 1e-1, widths: '4, 8'}}\n")
    chosen = comparing.read(small_book, path)
    assert chosen.base == "paper"
    (job,) = chosen.yours.values()
    assert (job.seed, job.params.n_users, job.params.epsilon) == (7, 10**5, 0.1)
    assert job.params.widths == (4, 8)
    assert job.params.rows == params_of(NOTEBOOK).make("paper").rows  # the rest is the base's
    assert chosen.ours[NOTEBOOK].params == params_of(NOTEBOOK).make("paper")
    names = [name for name, _, _ in chosen.differing(NOTEBOOK)]
    assert names[0] == "seed"
    assert {"n_users", "epsilon", "widths"} <= set(names)
    assert "rows" not in names


@pytest.mark.parametrize(("name", "whose"), [("quick", False), ("paper", False), ("mine.yaml", True), ("a/mine.yml", True)])
def test_our_presets_are_not_taken_for_files(name, whose):
    assert comparing.is_file(name) is whose


def test_claims_meet_by_sentence_then_but_for_its_numbers_and_others_stand_alone():
    ours, yours = (
        [{"claim": sentence} for sentence in side]
        for side in (["At n = 1,000", "and exact", "and exact", "Ours"], ["Yours", "and exact", "At n = 2e6", "and exact"])
    )
    pairs = comparing.claims(ours, yours)
    assert pairs[:3] == [(ours[0], yours[2]), (ours[1], yours[1]), (ours[2], yours[3])]
    assert pairs[3:] == [(ours[3], None), (None, yours[0])]


@pytest.fixture(scope="module")
def small(small_book):
    """The small book with a reader's file that has half its epsilon, and the first page of both."""
    path = small_book.root / "mine.yaml"
    path.write_text(f"base: quick\nseed: 7\n{NOTEBOOK}: {{epsilon: 1}}\n")
    return small_book, build_yours(small_book, path, print)


def shown(first: Path, page: str) -> BeautifulSoup:
    return BeautifulSoup((first.parents[2] / f"{page}.html").read_text(), "html.parser").article


def rows(table) -> list[list[str]]:
    return [[" ".join(cell.get_text().split()) for cell in row.select("th, td")] for row in table.select("tr")]


def test_yours_stand_beside_ours_with_every_difference(small):
    _, first = small
    page = shown(first, "book/yours/toy-line")
    settings, claims = (rows(table) for table in page.select("table"))
    assert settings == [["parameter", "ours", "yours"], ["seed", "0", "7"], ["epsilon", "2.0", "1.0"]]
    assert claims[1:] == [
        ["Epsilon is small | no", "2 (at most 1.5): does not hold", "1 (at most 1.5): holds", "-1", "-50 %"],
        ["Nothing", "0 (at most 0): holds", "0 (at most 0): holds", "0", "0"],
    ]
    images = [image["src"] for image in page.select("img")]
    assert len(set(images)) == 2
    assert all((first.parent / image).is_file() for image in images)
    assert "--seed 7 -p epsilon 1.0" in page.get_text()


def test_the_summary_names_what_was_changed_and_the_claims_whose_verdict_did(small):
    notebooks, verdicts = (rows(table) for table in shown(small[1], "book/yours/index").select("table"))
    assert notebooks[1:] == [["A line", "seed = 7, epsilon = 1.0", "2", "1"]]
    assert verdicts[1:] == [["A line", "Epsilon is small | no", "does not hold", "holds"]]


def test_chapters_stay_ours_and_say_so(small):
    _, first = small
    chapter = shown(first, "book/chapter")
    assert "The loss is 2.00." in chapter.get_text()
    for page, target in (("book/chapter", "index"), (f"book/results/{NOTEBOOK}", "toy-line")):
        (note,) = shown(first, page).select(".whose")
        assert "What stands here is ours (preset quick, seed 0), not yours. What mine.yaml computes is in" in note.get_text()
        assert re.search(rf"yours/{target}\.html$", note.a["href"])
    assert not shown(first, "book/yours/index").select(".whose")


@pytest.mark.parametrize("side", ["book/yours", "book/results"])
def test_results_that_were_touched_are_not_shown(small, side):
    project, _ = small
    copy = project.root / "_build" / "yours" / "mine" / "source"
    path = copy / side / NOTEBOOK / "claims.json"
    before = path.read_text()
    refuse_stale_pages(SimpleNamespace(srcdir=copy))  # as they are they may be shown
    try:
        path.write_text(before.replace('"holds": false', '"holds": true') + "\n")
        with pytest.raises(ExtensionError, match=r"claims.json is not the file that was computed"):
            refuse_stale_pages(SimpleNamespace(srcdir=copy))
    finally:
        path.write_text(before)


def test_the_same_run_differs_by_nothing(small):
    project, _ = small
    path = project.root / "same.yaml"
    path.write_text(f"base: quick\n{NOTEBOOK}:\n")
    chosen = comparing.read(project, path)
    copy = comparing.stage(project, chosen, list(chosen.ours.values()), project.root / "staged")
    text = (copy.root / comparing.YOURS / "toy-line.md").read_text()
    assert "No parameter differs: the same run." in text
    assert "None: every claim has the same verdict." in (copy.root / comparing.YOURS / "index.md").read_text()
    path.write_text("evolving/thresh: {}\n")  # this book has no such notebook
    with pytest.raises(ParameterError, match=r"same.yaml: no notebook 'evolving/thresh'"):
        comparing.read(project, path)


def test_a_preset_renders_on_the_real_book(built_book, tmp_path, monkeypatch):
    """Pages that look up tests, what to cite and results of every notebook find them in the reader's copy.

    All but the library's reference, a third of the time: it shows the library and nothing of a copy.
    """
    monkeypatch.setenv("EVOLVINGDP_CACHE", CACHE)  # the small book has one of its own, without what the whole book ran
    monkeypatch.delenv("EVOLVINGDP_NOTEBOOKS", raising=False)  # and notebooks of its own
    for name in comparing.SOURCES:
        (tmp_path / name).symlink_to(built_book.root / name)
    contents = yaml.safe_load((built_book.root / "_toc.yml").read_text())
    chapters = contents["parts"][-1]["chapters"]
    chapters.remove(next(chapter for chapter in chapters if chapter["file"] == "book/api"))
    (tmp_path / "_toc.yml").unlink()
    (tmp_path / "_toc.yml").write_text(yaml.safe_dump(contents))
    path = tmp_path / "mine.yaml"
    path.write_text("base: quick\nheavy_hitters/trust: {n_users: 2e7, epsilon_sweep: '0.5, 1'}\n")
    first = build_yours(Project(tmp_path), path, print)
    notebooks, *_ = (rows(table) for table in shown(first, "book/yours/index").select("table"))
    assert [row[1] for row in notebooks[1:]] == ["n_users = 20000000, epsilon_sweep = 0.5, 1.0"]
    page = shown(first, "book/yours/heavy_hitters-trust").get_text()
    assert "n_users" in page
    assert "20000000" in page
    assert "rows:" in shown(first, "book/reproduction").get_text()
    assert shown(first, "book/heavy_hitters").select(".whose")
    assert not list((built_book.root / "book").glob("yours"))
