"""Building a book again: what has not changed is not run, what is stale or wrong is not shown."""

from __future__ import annotations

import os
import pickle
import shutil
from importlib import metadata
from types import SimpleNamespace

import pytest
from accessibility import DESKTOP
from bs4 import BeautifulSoup
from sphinx.errors import ExtensionError

from browsing import new_page
from evolvingdp.book.checkout import Project
from evolvingdp.book.files import PublishError
from evolvingdp.book.rendering import build as build_module
from evolvingdp.book.rendering.build import UNFINISHED, build, check_rendered, render
from evolvingdp.book.rendering.ext import refuse_stale_pages
from evolvingdp.book.rendering.theme import REPOSITORY
from evolvingdp.book.running import Job, export, run
from support import TOY

PAGE = """---
file_format: mystnb
kernelspec: { name: python3 }
---

# A chapter

```{code-cell}
import pandas as pd
sizes = [3, 12]
print(len(sizes))
```

```{code-cell}
pd.DataFrame({"size": sizes}, index=pd.Index(["a", "<b>"], name="who"))
```

{doc}`chapter_in_depth`
"""


@pytest.fixture(scope="module")
def book(small_book):
    build(small_book, "quick", print)
    return small_book


def test_a_copied_checkout_is_not_stale_until_a_source_changes(book, tmp_path, capsys):
    copy = Project(shutil.copytree(book.root, tmp_path / "copy"))
    (copy.root / "my-run").mkdir()
    (copy.root / "my-run" / "results.csv").write_text("of the reader's\n")
    check_rendered(copy)
    build(copy, "quick", print)
    assert "nothing has changed: " in capsys.readouterr().out
    (copy.root / "book" / "chapter.md").write_text("# Another chapter\n")
    with pytest.raises(PublishError, match=r"stale; run make book first:\na source has changed since"):
        check_rendered(copy)


def test_what_is_edited_while_pages_are_rendered_is_not_taken_for_shown(book, monkeypatch):
    chapter = book.root / "book" / "chapter.md"
    kept = chapter.read_text()

    def edited(*_, **__):
        chapter.write_text(kept + "\nA sentence that came too late.\n")

    monkeypatch.setattr(build_module, "render", edited)
    chapter.write_text(kept + "\nA sentence.\n")
    build(book, "quick", print)
    with pytest.raises(PublishError, match="a source has changed since"):
        check_rendered(book)
    monkeypatch.undo()
    chapter.write_text(kept)
    build(book, "quick", print)
    check_rendered(book)


@pytest.mark.parametrize("changed", ["a source", "the address of a fork"])
def test_what_has_changed_is_rendered_again_and_then_no_more(changed, book, capsys, monkeypatch):
    chapter, page = book.root / "book" / "chapter.md", book.root / "_build" / "html" / "book" / "chapter.html"
    drawings = book.root / "_build" / "html" / "_static" / "scripts" / "fontawesome.js"
    if changed == "a source":
        assert "trash:[" not in drawings.read_text()
        chapter.write_text(chapter.read_text() + '\nOne sentence more. <i class="fa-solid fa-trash"></i>\n')
    else:
        monkeypatch.setenv(REPOSITORY, "https://github.com/me/mine")
    build(book, "quick", print)
    assert "rendered in" in capsys.readouterr().out
    assert "One sentence more." in page.read_text()
    assert "trash:[" in drawings.read_text(), "an icon that was not shown before"
    assert ("github.com/me/mine" in page.read_text()) == (changed == "the address of a fork")
    build(book, "quick", print)
    said = capsys.readouterr().out
    assert f"{TOY}: unchanged" in said
    assert " 0 executed" in said
    assert "nothing has changed: " in said
    assert "rendered in" not in said


def test_other_packages_make_all_pages_anew_once(book, monkeypatch):
    made = []
    monkeypatch.setattr(build_module, "render", lambda project, say: made.append(project))
    monkeypatch.setattr(metadata, "distributions", lambda: [SimpleNamespace(name="pandas", version="99")])
    for _ in range(2):
        build(book, "quick", print)
    assert made == [book]


def test_chapters_follow_their_results(book):
    """Another result in place: the chapter that prints its numbers is read again."""
    chapter = book.root / "_build" / "html" / "book" / "chapter.html"
    job, ours = Job.make(book, TOY, "quick", {"epsilon": 1.5}, 1), Job.make(book, TOY, "quick")
    run(job)
    assert "The loss is 2.00." in chapter.read_text()
    try:
        export(job, book.results / job.paper, as_page=True)
        render(book, print)
        assert "The loss is 1.50." in chapter.read_text()
    finally:
        export(ours, book.results / ours.paper, as_page=True)


def test_pages_of_a_build_that_was_killed_are_not_packed_and_all_made_anew(book):
    """It may have read what changed, and not have written the page."""
    page, unfinished = book.root / "_build" / "html" / "book" / "chapter.html", book.root / "_build" / UNFINISHED
    unfinished.touch()
    page.write_text("half a p")
    render(book, print)
    assert "The loss is 2.00." in page.read_text()
    check_rendered(book)
    unfinished.touch()
    with pytest.raises(PublishError, match="not rendered yet, or not all of it"):
        check_rendered(book)
    unfinished.unlink()


@pytest.mark.parametrize(("asked", "kept"), [(1, True), (3, False)])
def test_sources_are_shown_anew_where_a_page_may_ask_for_other_names(tmp_path, monkeypatch, asked, kept):
    """Or a link to a name that a page shows for the first time leads to no place: viewcode looks at the file alone."""
    page, sources = tmp_path / "book" / "api" / "core.md", tmp_path / "_build" / "html" / "_modules" / "index.html"
    for path, time in ((page, asked), (sources, 2)):
        path.parent.mkdir(parents=True)
        path.touch()
        os.utime(path, (time, time))
    monkeypatch.setattr(build_module.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=0))
    render(Project(tmp_path), print)
    assert sources.exists() == kept


@pytest.mark.parametrize("touched", ["notebook", "results", "page"])
def test_a_stale_or_touched_page_is_refused(book, touched):
    path = {
        "notebook": book.template(TOY),
        "results": book.results / TOY / "claims.json",
        "page": book.results / f"{TOY}.ipynb",
    }[touched]
    before, sphinx = path.read_text(), SimpleNamespace(srcdir=book.root)
    refuse_stale_pages(sphinx)
    try:
        path.write_text(before.replace("# A line", "# A curve").replace('"holds": true', '"holds": false'))
        assert path.read_text() != before
        with pytest.raises(ExtensionError, match=TOY):
            refuse_stale_pages(sphinx)
        if touched == "page":  # and so fails even a build by hand
            with pytest.raises(PublishError, match=TOY):
                render(book, print)
    finally:
        path.write_text(before)


def test_a_value_that_no_result_has_fails_the_build(book):
    page = book.root / "book" / "chapter.md"
    before = page.read_text()
    try:
        page.write_text(before + f"\n{{value}}`{TOY} no_such_number`\n")
        for _ in range(2):  # and fails again: a broken page is not kept
            with pytest.raises(PublishError, match="no_such_number"):
                render(book, print)
    finally:
        page.write_text(before)


def test_a_page_shows_what_its_code_gives_forwards_old_addresses_and_shows_no_code_that_fails_or_warns(book, browser):
    chapter, depth = book.root / "book" / "chapter.md", book.root / "book" / "chapter_in_depth.md"
    chapter.write_text(PAGE)
    depth.write_text("# In depth\n\n(old-name)=\n\n## A proof\n\nWords.\n")
    toc = book.root / "_toc.yml"
    toc.write_text(toc.read_text().replace("sections: [", "sections: [{file: book/chapter_in_depth}, "))
    build(book, "quick", print)
    html = book.root / "_build" / "html" / "book" / "chapter.html"
    soup = BeautifulSoup(html.read_text(), "html.parser")
    assert [one.text.strip() for one in soup.select(".cell_output pre")] == ["2"]
    assert [one.text for one in soup.select(".cell_output tbody :is(th, td)")] == ["a", "3", "<b>", "12"]
    tab, problems = new_page(browser, f"{html.parents[1].as_uri()}/", DESKTOP, "light")
    tab.goto(f"{html.as_uri()}#old-name", wait_until="commit")
    tab.wait_for_url("**/chapter_in_depth.html#old-name")
    assert problems == []
    tab.context.close()
    for code, said in (("1 / 'a'", "TypeError"), ("import warnings; warnings.warn('old')", "stderr was found")):
        chapter.write_text(PAGE.replace("print(len(sizes))", code))
        with pytest.raises(PublishError, match=rf"chapter\.md(.|\n)*{said}"):
            render(book, print)


def test_a_page_with_code_is_read_again_where_the_library_changes(book):
    with (book.root / "_build" / ".doctrees" / "environment.pickle").open("rb") as file:
        depends = pickle.load(file).dependencies
    assert any(path.endswith("lib/evolvingdp/core/noise.py") for path in depends["book/chapter"])
    assert not any("evolvingdp" in path for path in depends["book/chapter_in_depth"])
