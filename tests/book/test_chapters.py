"""Code with its output, addresses that moved, and live pictures: right on the page, and refused where wrong."""

from __future__ import annotations

import json
import pickle

import pytest
from accessibility import DESKTOP
from bs4 import BeautifulSoup

from browsing import in_browser, new_page, opened
from drawn import live
from drawn.svg import Drawing
from evolvingdp.book.files import PublishError
from evolvingdp.book.rendering.build import build, render
from support import REPOSITORY

STATIC = REPOSITORY / "book" / "_static"
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


def test_a_page_shows_what_its_code_gives_forwards_old_addresses_and_shows_no_code_that_fails_or_warns(small_book):
    chapter, depth = small_book.root / "book" / "chapter.md", small_book.root / "book" / "chapter_in_depth.md"
    chapter.write_text(PAGE)
    depth.write_text("# In depth\n\n(old-name)=\n\n## A proof\n\nWords.\n")
    toc = small_book.root / "_toc.yml"
    toc.write_text(toc.read_text().replace("sections: [", "sections: [{file: book/chapter_in_depth}, "))
    build(small_book, "quick", print)
    html = small_book.root / "_build" / "html" / "book" / "chapter.html"
    soup = BeautifulSoup(html.read_text(), "html.parser")
    assert [one.text.strip() for one in soup.select(".cell_output pre")] == ["2"]
    assert [one.text for one in soup.select(".cell_output tbody :is(th, td)")] == ["a", "3", "<b>", "12"]

    def look(browser):
        tab, problems = new_page(browser, f"{html.parents[1].as_uri()}/", DESKTOP, "light")
        tab.goto(f"{html.as_uri()}#old-name", wait_until="commit")
        tab.wait_for_url("**/chapter_in_depth.html#old-name")
        return problems

    assert in_browser(look) == []
    for code, said in (("1 / 'a'", "TypeError"), ("import warnings; warnings.warn('old')", "stderr was found")):
        chapter.write_text(PAGE.replace("print(len(sizes))", code))
        with pytest.raises(PublishError, match=rf"chapter\.md(.|\n)*{said}"):
            render(small_book, print)


def test_a_page_with_code_is_read_again_where_the_library_changes(small_book):
    with (small_book.root / "_build" / ".doctrees" / "environment.pickle").open("rb") as file:
        depends = pickle.load(file).dependencies
    assert any(path.endswith("lib/evolvingdp/core/noise.py") for path in depends["book/chapter"])
    assert not any("evolvingdp" in path for path in depends["book/chapter_in_depth"])


# Live pictures


def drawn(*words: str) -> Drawing:
    drawing = Drawing("Title", "Says", 100)
    drawing.line(0, 0, 1, 1)
    for place, word in enumerate(words):
        drawing.text(place, 10, word)
    return drawing


def test_all_stops_of_a_live_picture_have_the_same_marks():
    assert live.parts([drawn("same", "a < b"), drawn("same", "b")])[0] == [2]
    with pytest.raises(ValueError, match="same marks"):
        live.parts([drawn("a"), drawn("a", "b")])


def test_a_live_picture_moves_by_keys_and_without_a_script_shows_its_middle_stop_and_all_in_a_table(tmp_path, monkeypatch):
    stops = ("few", "some", "many")
    picture = live.Live("Users", stops, lambda _, place: (drawn(f"{place} < 3"), f"It is {stops[place]}."))
    monkeypatch.setitem(live.LIVE, "toy", picture)
    soup = BeautifulSoup(live.page(tmp_path, "toy"), "html.parser")
    assert (soup.select_one(".says").text, soup.select_one("[data-part]").text) == ("It is some.", "1 < 3")
    assert [cell.text for cell in soup.select("td")] == ["It is few.", "It is some.", "It is many."]
    assert soup.label.has_attr("hidden")
    assert [frame["stop"] for frame in json.loads(soup.script.string)] == [*stops]
    page = tmp_path / "page.html"
    sheet, script = (STATIC / "ideas.css").read_text(), (STATIC / "explorers.js").read_text()
    head = f"<meta charset=utf-8><title>x</title><style>{sheet}</style><script>{script}</script>"
    page.write_text(f"<!doctype html><html lang=en>{head}{soup}")

    def look(browser):
        tab, problems = opened(browser, page.as_uri(), width=390)
        slider = tab.locator("input")
        slider.focus()
        tab.keyboard.press("ArrowRight")
        shown = [tab.locator(one).inner_text() for one in (".says", "output")]
        return problems, shown, slider.get_attribute("aria-valuetext"), tab.locator("[data-part]").text_content()

    assert in_browser(look) == ([], ["It is many.", "many"], "many", "2 < 3")
