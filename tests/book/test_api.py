"""The library in the book: public names with signature and source, an algorithm's lines as they stand in the file."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from typing import Any

import pytest
from sphinx.util.inventory import InventoryFile

from evolvingdp.book.rendering import api, api_fields
from evolvingdp.continual_mean import UserMean
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.heavy_hitters import ProjectiveOracle
from support import REPOSITORY

ROOMS = ("heavy_hitters", "evolving", "continual_mean", "sparse_vector", "planning", "streams", "audit", "core")
SHOWN = re.compile(r"^```\{source\} (\S+) (.+)\n((?:.*\n)*?)```$", re.MULTILINE)
CHAPTERS = [path.stem for path in sorted((REPOSITORY / "book").glob("*.md")) if SHOWN.search(path.read_text())]


@pytest.mark.parametrize("package", ROOMS)
def test_every_public_name_has_a_signature_and_says_what_it_is(package):
    room = importlib.import_module(f"evolvingdp.{package}")
    text = api.page(package)
    for name in room.__all__:
        (kind,) = re.findall(rf"^````{{py:(\w+)}} {name}$", text, re.MULTILINE)
        assert (kind == "data") == (not callable(getattr(room, name))), name
        assert (kind in ("class", "exception")) == inspect.isclass(getattr(room, name)), name
        assert kind == "data" or f"\n{name}(" in text
        assert api._said(getattr(room, name)) in text
        assert len(api._said(getattr(room, name))) > 20, f"{name} has no docstring"
    assert "ForwardRef" not in text
    assert "(cls" not in text
    assert "<factory>" not in text
    for module in api.listed(package):
        assert inspect.getdoc(importlib.import_module(module)) in text


def test_fields_have_the_meaning_and_the_range_that_their_class_declares_and_checks():
    told = dict(re.findall(r"^- `(\w+)`: (.+)$", api_fields.told(UserMean), re.MULTILINE))
    assert told["blocks"].startswith('one of `"single"`, `"bands"`, `"whole"`, `"doubling"`; ')
    assert told["resolution"] == "whole, at least 1; grid steps in the range; 1 for bits"
    assert told["epsilon"] == "above 0; of a user, over the whole stream"
    assert "compression" in api_fields.told(ProjectiveOracle)  # inherited from FreqOracle
    with pytest.raises(ValueError, match="blocks must be one of"):
        UserMean(2, 4, 1.0, blocks="triple")


def test_functions_that_run_a_mechanism_are_listed_under_their_module():
    text = api.page("evolving")
    for module in ("thresh_protocol", "thresh_simulation", "rivals.once"):
        name = "run" if module == "thresh_protocol" else "simulate"
        assert f"````{{py:function}} {name}\n:module: evolvingdp.evolving.{module}\n" in text
    assert "````{py:function} step\n:module: evolvingdp.continual_mean.online\n" in api.page("continual_mean")


def test_members_of_a_base_that_no_page_lists_are_listed():
    assert "````{py:method} Toeplitz.l2_of" in api.page("continual_mean")
    assert "````{py:classmethod} ProjectiveOracle.draw" in api.page("heavy_hitters")


def test_an_algorithm_s_lines_are_the_file_s_without_docstrings():
    lines = api.lines(SignFlip)
    assert '"""' not in lines
    compile(lines, "shown", "exec")
    source = inspect.getsource(SignFlip)
    assert all(line in source for line in lines.splitlines())
    assert "def randomize(self" in lines
    assert api.lines(api._reached(importlib.import_module("evolvingdp.core.randomizers"), "SignFlip.randomize")) in (
        "\n".join(line.removeprefix("    ") for line in lines.splitlines()) + "\n"
    )


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_call_that_a_chapter_shows_runs_alone_or_says_whose_names_it_uses(chapter, capsys):
    names: dict[str, Any] = {}
    calls = [call for _, _, call in SHOWN.findall((REPOSITORY / "book" / f"{chapter}.md").read_text()) if call]
    for call in calls:
        names = names if call.startswith("# ") else {}
        exec(call, names)
    assert capsys.readouterr().out


@pytest.mark.parametrize("package", ROOMS)
def test_no_line_of_a_docstring_becomes_an_item_of_a_list_by_accident(package):
    """A line that a sign begins is an item if a colon, a semicolon or an item stands before it, else half a formula."""
    room = importlib.import_module(f"evolvingdp.{package}")
    owners = [getattr(room, name) for name in room.__all__]
    members = [part for owner in owners if inspect.isclass(owner) for part in vars(owner).values() if callable(part)]
    for owner in [*owners, *members, *(importlib.import_module(module) for module in api.listed(package))]:
        before = ":"
        for line in (inspect.getdoc(owner) or "").splitlines():
            assert not line.lstrip().startswith(("- ", "+ ")) or not before or before[-1] in ":;,.", f"{owner}: {line}"
            before = line.strip()


def test_no_title_of_a_figure_has_a_backtick():
    for file in sorted((REPOSITORY / "lib").rglob("*.py")):
        for call in (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)):
            if getattr(call.func, "id", "") == "headline":
                assert "`" not in ast.unparse(call), f"{file.name}: {ast.unparse(call)}"


def test_search_finds_every_public_name_its_file_and_the_way_back_to_its_algorithm(built_book):
    site = built_book.root / "_build" / "html"
    with (site / "objects.inv").open("rb") as stream:
        found = InventoryFile.load(stream, "", lambda _, name: name)
    objects = {name for kind, items in found.items() if kind.startswith("py:") for name in items}
    for package in ROOMS:
        room = importlib.import_module(f"evolvingdp.{package}")
        assert {f"evolvingdp.{package}.{name}" for name in room.__all__} <= objects
        for module in api.listed(package):
            assert (site / "_modules" / f"{module.replace('.', '/')}.html").is_file()
    reference = (site / "book" / "api" / "heavy_hitters.html").read_text()
    chapter = (site / "book" / "heavy_hitters.html").read_text()
    (label,) = api.boxes(REPOSITORY)["evolvingdp.heavy_hitters.sketches.local_rnd"]
    assert f'href="../heavy_hitters.html#{label}"' in reference
    assert f'id="{label}"' in chapter
    assert 'href="api/heavy_hitters.html#evolvingdp.heavy_hitters.LocalRnd"' in chapter
    assert 'href="../_modules/evolvingdp/heavy_hitters/sketches/local_rnd.html"' in chapter
