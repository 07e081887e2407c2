"""The library in the book: what autodoc reads of public names, an algorithm's lines, and the calls that chapters show."""

from __future__ import annotations

import contextlib
import importlib
import io
import re

import pytest
from sphinx.util.inventory import InventoryFile

from evolvingdp.book.rendering import api
from support import REPOSITORY

ROOMS = ("heavy_hitters", "evolving", "continual_mean", "sparse_vector", "planning", "streams", "audit", "core")
SHOWN = re.compile(r"^```\{source\} (\S+) (.+)\n((?:.*\n)*?)```$", re.MULTILINE)
CHAPTERS = [path.stem for path in sorted((REPOSITORY / "book").glob("*.md")) if SHOWN.search(path.read_text())]


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_asked_of_autodoc_once_below_its_file_and_says_what_it_is(room):
    public, text = importlib.import_module(f"evolvingdp.{room}"), api.page(room)
    for name in public.__all__:
        assert len(re.findall(rf"^\.\. auto\w+:: evolvingdp\.{room}\.{name}$", text, re.MULTILINE)) == 1, name
        assert len(getattr(public, name).__doc__ or "") > 20, f"{name} has no docstring"


def test_docstrings_are_written_as_sphinx_reads_them():
    lines = ["Sums of `x_i`s cost $\\epsilon$, |t| * 2.", "", "**Error.** None.", "", "    run(1)"]
    api._as_rst(None, "module", "m", None, None, lines)
    first, *_, error, _, fence, _, code = lines
    assert first == "Sums of \\ ``x_i``\\ s cost \\ :math:`\\epsilon`\\ , \\|t\\| \\* 2."
    assert (error, fence, code) == ("\\ **Error.**\\  None.", "::", "    run(1)")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_calls_that_a_chapter_shows_run_one_after_the_other(chapter):
    calls = "".join(call for *_, call in SHOWN.findall((REPOSITORY / "book" / f"{chapter}.md").read_text()))
    with contextlib.redirect_stdout(io.StringIO()):
        exec(calls, {})


def test_the_rendered_reference_has_every_name_and_the_chapters_their_lines(built_book):
    html = built_book.root / "_build" / "html"
    with (html / "objects.inv").open("rb") as file:
        known = InventoryFile.load(file, "", lambda base, path: path)
    listed = {name for kind, names in known.items() if kind.startswith("py:") for name in names}
    assert {
        f"evolvingdp.{room}.{name}" for room in ROOMS for name in importlib.import_module(f"evolvingdp.{room}").__all__
    } <= listed
    for chapter in CHAPTERS:
        page = (html / "book" / f"{chapter}.html").read_text()
        for module, names, _ in SHOWN.findall((REPOSITORY / "book" / f"{chapter}.md").read_text()):
            assert f'id="code-{"-".join([module, *names.split()]).replace(".", "-").replace("_", "-").lower()}"' in page
            assert (html / "_modules" / "evolvingdp" / f"{module.replace('.', '/')}.html").is_file(), module
