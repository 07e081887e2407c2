"""The library in the book: what autodoc reads of public names, an algorithm's lines, and the calls that chapters show."""

from __future__ import annotations

import importlib
import re

import pytest
from sphinx.util.inventory import InventoryFile

from evolvingdp.book.rendering import api
from support import REPOSITORY

ROOMS = ("heavy_hitters", "evolving", "continual_mean", "sparse_vector", "planning", "streams", "audit", "core")


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_asked_of_autodoc_once_and_says_what_it_is(room):
    public, text = (
        importlib.import_module(f"evolvingdp.{room}"),
        api.page((REPOSITORY / "book/api" / f"{room}.md").read_text()),
    )
    for name in public.__all__:
        assert len(re.findall(rf"^\.\. auto\w+:: evolvingdp\.{room}\.{name}$", text, re.MULTILINE)) == 1, name
        assert len(getattr(public, name).__doc__ or "") > 10, f"{name} has no docstring"


def test_a_name_that_is_not_exported_or_stands_twice_is_refused():
    for names in ("stream nothing", "stream stream"):
        with pytest.raises(ValueError, match=r"has no (nothing|stream)"):
            api.page(f"```{{library}} core\n{names}\n```\n")


def test_a_name_that_is_shown_whole_has_its_docstring_and_methods_and_any_other_one_sentence():
    text = api.page("```{library} core\nSignFlip\n```\n\n```{library} core\n```\n")
    assert re.search(r"SignFlip\n   :members: .*report", text)
    assert re.search(r"HashFamily\n   :no-members:", text)
    one, other = ["One. Two."], ["One. Two."]
    api._read(None, "class", "evolvingdp.core.SignFlip", int, None, one)
    api._read(None, "class", "evolvingdp.core.HashFamily", int, None, other)
    assert (one[0], other[0]) == ("One. Two.", "One.")


def test_docstrings_are_written_as_sphinx_reads_them():
    text = api._as_rst("Sums of `x_i`s cost $\\epsilon$, |t| * 2.\n\n**Error.** None.\n\n    run(1)")
    assert text == (
        "Sums of \\ ``x_i``\\ s cost \\ :math:`\\epsilon`\\ , \\|t\\| \\* 2.\n\n\\ **Error.**\\  None.\n\n::\n\n    run(1)"
    )


def test_the_rendered_reference_has_every_name(built_book):
    html = built_book.root / "_build" / "html"
    with (html / "objects.inv").open("rb") as file:
        known = InventoryFile.load(file, "", lambda base, path: path)
    listed = {name for kind, names in known.items() if kind.startswith("py:") for name in names}
    assert {
        f"evolvingdp.{room}.{name}" for room in ROOMS for name in importlib.import_module(f"evolvingdp.{room}").__all__
    } <= listed
