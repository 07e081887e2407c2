"""The library in the book: every public name is there and says what it is, its docstring written as Sphinx reads it."""

from __future__ import annotations

import importlib
import pydoc
import re

from bs4 import BeautifulSoup
from sphinx.util.inventory import InventoryFile

from evolvingdp.book.rendering import api
from evolvingdp.continual_mean import Blocks
from evolvingdp.core.noise import Noise
from evolvingdp.evolving import heavy_simulation, protocol, thresh_simulation
from evolvingdp.evolving.rivals import once, reserve
from support import REPOSITORY

ROOMS = ("heavy_hitters", "evolving", "continual_mean", "sparse_vector", "planning", "streams", "audit")
PUBLIC = {f"evolvingdp.{room}.{name}" for room in ROOMS for name in importlib.import_module(f"evolvingdp.{room}").__all__}
ASKED = re.compile(r"^\.\. auto\w+:: (\S+)(?:\n   :(?:exclude-)?members: ([\w, ]+))?", re.MULTILINE)


def named(page: str) -> set[str]:
    """What book/api/`page`.md shows of files, by its full names."""
    found = ASKED.findall((REPOSITORY / "book" / "api" / f"{page}.md").read_text().replace("   :members:\n", ""))
    return {name for name, _ in found} | {f"{name}.{each}" for name, of in found for each in of.split(", ") if each}


def test_the_page_of_core_has_all_that_its_files_have():
    """But for the checks: a reader meets their refusals."""
    files = {name.rpartition(".")[0] for name in named("core")} - {"evolvingdp", "evolvingdp.core", "evolvingdp.core.checks"}
    files = {file for file in files if not isinstance(pydoc.locate(file), type)}
    has = {
        f"{file}.{name}" for file in files for name, thing in vars(importlib.import_module(file)).items()
        if callable(thing) and name[0] != "_" and getattr(thing, "__module__", "") == file and thing.__name__ == name
    }  # fmt: skip
    assert len(files) > 5
    assert has <= named("core")


def test_the_page_of_evolving_data_has_what_runs_each_mechanism():
    for file in (protocol, once, reserve, thresh_simulation, heavy_simulation):
        runs = {f"{file.__name__}.{name}" for name in ("start", "step", "run", "simulate") if hasattr(file, name)}
        assert runs
        assert runs <= named("evolving")


def test_docstrings_are_written_as_sphinx_reads_them():
    text = api.as_rst("Sums of `x_i`s cost $\\epsilon$, |t| * 2.\n\n**Error.** None.\n\n    run(1)")
    assert text == (
        "Sums of \\ ``x_i``\\ s cost \\ :math:`\\epsilon`\\ , \\|t\\| \\* 2.\n\n\\ **Error.**\\  None.\n\n::\n\n    run(1)"
    )


def test_the_comment_beside_a_field_is_shown_without_what_a_type_checker_reads():
    fields = (
        "one: int = 3  # users",
        "two: int = None  # type: ignore[assignment]  # the best",
        "three: int = 1  # type: ignore",
    )
    assert api._FIELD.findall("\n".join(f"    {field}" for field in fields)) == [("one", "users"), ("two", "the best")]


def test_an_entry_by_the_way_says_in_code_what_it_takes():
    assert api._call("once.step", once.step) == "    step(settings, state, counts, public, private)"
    long = api._call("continual_mean.Blocks", Blocks).splitlines()
    assert long[0].startswith("    Blocks(n_users, samples_per_user, epsilon, delta=0.0,")
    assert max(map(len, long)) <= 88
    assert api._call("noise.Noise", Noise) == "", "a protocol, which nobody makes"


def test_a_page_shows_a_class_whole_and_one_by_the_way_in_a_sentence(built_book):
    html = built_book.root / "_build" / "html" / "book" / "api" / "heavy_hitters.html"
    page = BeautifulSoup(html.read_text(), "html.parser")
    tree, bits = (page.find(id=f"evolvingdp.heavy_hitters.{name}").parent for name in ("TreeHist", "BitCounts"))
    assert "leaf_share=0.8" in tree.dt.text
    assert "leaf_share: of the users report whole words" in [item.text for item in tree.select("li")]
    assert "users" in tree.find(id="evolvingdp.heavy_hitters.TreeHist.level_error").parent.dd.text
    assert "(" not in bits.dt.text
    assert bits.dd.p.text == "What the server holds: ones int64 (cohorts, bits), and how many reports it had of each cohort."
    assert bits.dd.pre.text.strip() == "BitCounts(ones, n_reports)"
    assert page.find(id="evolvingdp.heavy_hitters.Rappor")
    assert not page.find(id="evolvingdp.heavy_hitters.Rappor.one_shot")
    assert not page.find(id="evolvingdp.heavy_hitters.TreeHist.dealt")


def test_the_rendered_reference_has_every_public_name_with_what_it_is(built_book):
    with (built_book.root / "_build" / "html" / "objects.inv").open("rb") as file:
        known = InventoryFile.load(file, "", lambda base, path: path)
    assert {name for kind, names in known.items() if kind.startswith("py:") for name in names} >= PUBLIC
    assert [name for name in PUBLIC if len(pydoc.locate(name).__doc__ or "") < 10] == []
