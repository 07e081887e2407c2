"""Building a book again: what has not changed is not run, what is stale or wrong is not shown."""

from __future__ import annotations

import pytest

from evolvingdp.publish.errors import BookError
from evolvingdp.publish.rendering.book import build, render
from evolvingdp.publish.rendering.copies.offline import UNFINISHED, check_rendered
from evolvingdp.publish.rendering.forked import REPOSITORY
from evolvingdp.publish.running.execute import export, run
from evolvingdp.publish.running.job import Job
from support import TOY


@pytest.fixture(scope="module")
def book(small_book):
    build(small_book, "quick", print)
    return small_book


def test_nothing_is_executed_when_nothing_has_changed(book, capsys):
    build(book, "quick", print)
    said = capsys.readouterr().out
    assert f"{TOY}: unchanged" in said
    assert " 0 executed" in said
    assert "nothing has changed: " in said
    assert "rendered in" not in said


@pytest.mark.parametrize("changed", ["a source", "a page", "the address of a fork"])
def test_what_has_changed_is_rendered_again(changed, book, capsys, monkeypatch):
    chapter, page = book.root / "book" / "chapter.md", book.root / "_build" / "html" / "book" / "chapter.html"
    before = chapter.read_text()
    if changed == "a source":
        chapter.write_text(before + "\nOne sentence more.\n")
    elif changed == "a page":
        page.write_text("touched")
    else:
        monkeypatch.setenv(REPOSITORY, "https://github.com/me/mine")
    try:
        build(book, "quick", print)
        assert "rendered in" in capsys.readouterr().out
        assert ("One sentence more." in page.read_text()) == (changed == "a source")
    finally:
        chapter.write_text(before)
        monkeypatch.undo()
        build(book, "quick", print)
    build(book, "quick", print)
    assert capsys.readouterr().out.endswith("index.html\n")


def test_chapters_follow_their_results(book):
    """Another result in place: the chapter that prints its numbers is read again."""
    chapter = book.root / "_build" / "html" / "book" / "chapter.html"
    job = Job.make(book, TOY, "quick", {"epsilon": 1.5}, 1)
    run(job)
    assert "The loss is 2.00." in chapter.read_text()
    try:
        export(job, book.results / "heavy_hitters", as_page=True)
        render(book, print)
        assert "The loss is 1.50." in chapter.read_text()
    finally:
        build(book, "quick", print)
    assert "The loss is 2.00." in chapter.read_text()


def test_pages_of_a_build_that_was_killed_are_not_packed_and_all_made_anew(book):
    """It may have read what changed, and not have written the page."""
    page = book.root / "_build" / "html" / "book" / "chapter.html"
    check_rendered(book)
    (book.root / "_build" / UNFINISHED).touch()
    page.write_text("half a p")
    with pytest.raises(BookError, match="not rendered yet, or not all of it"):
        check_rendered(book)
    render(book, print)
    assert "The loss is 2.00." in page.read_text()
    check_rendered(book)


@pytest.mark.parametrize("touched", ["notebook", "results", "page"])
def test_a_stale_or_touched_page_fails_even_a_build_by_hand(book, touched):
    path = {
        "notebook": book.template(TOY),
        "results": book.results / TOY / "claims.json",
        "page": book.results / f"{TOY}.ipynb",
    }[touched]
    before = path.read_text()
    try:
        path.write_text(before.replace("# A line", "# A curve").replace('"holds": true', '"holds": false'))
        assert path.read_text() != before
        with pytest.raises(BookError, match=TOY):
            render(book, print)
    finally:
        path.write_text(before)


def test_a_value_that_no_result_has_fails_the_build(book):
    page = book.root / "book" / "chapter.md"
    before = page.read_text()
    try:
        page.write_text(before + f"\n{{value}}`{TOY} no_such_number`\n")
        for _ in range(2):  # and fails again: a broken page is not kept
            with pytest.raises(BookError, match="no_such_number"):
                render(book, print)
    finally:
        page.write_text(before)
