"""The text behind a figure: numbers short enough to be heard, curves by their ends, and nothing typed that a run decides."""

from __future__ import annotations

import ast
import json
import math
from functools import cache

import pandas as pd
import pytest

from evolvingdp.book.words import curves, ends, short, span
from support import REPOSITORY

NOTEBOOKS = sorted(REPOSITORY.glob("notebooks/*/*.ipynb"))
SHAPES = ("line", "curve", "dot", "point", "bar", "heat map", "list")  # a text names the shapes that are drawn
ACROSS = ("against", " over ", " by groups of ", " in order of ")  # ... and what stands on the axes


@cache
def figures() -> dict[str, tuple[str, ast.expr, ast.expr]]:
    """By figure: the source of its caption, its text, and what it writes above it, as expressions."""
    found = {}
    for path in NOTEBOOKS:
        for cell in json.loads(path.read_text())["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] != "code" or "page.figure(" not in source:
                continue
            calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
            for call in (call for call in calls if ast.unparse(call.func) == "page.figure"):
                words = {word.arg: word.value for word in call.keywords}
                found[call.args[0].value] = (ast.unparse(words["caption"]), words["alt"], words["title"])
    return found


@pytest.mark.parametrize("figure", sorted(figures()))
def test_a_figure_says_one_message_which_its_run_decides(figure):
    _, _, message = figures()[figure]
    assert any(isinstance(node, ast.FormattedValue | ast.Name) for node in ast.walk(message))


@pytest.mark.parametrize(
    ("value", "heard"),
    [
        (7.31234e-5, "0.0000731"),
        (12.345, "12.3"),
        (1024, "1,024"),
        (1e7, "10,000,000"),
        (1234.5, "1,230"),
        (math.nan, "nothing"),
    ],
)
def test_numbers_are_short_and_have_no_exponent(value, heard):
    assert short(value) == heard


def test_a_span_leaves_out_what_is_missing_and_does_not_repeat_itself():
    assert span([3, math.nan, 0.25]) == "0.25 to 3"
    assert span([2, 2]) == "2"
    assert span([math.nan]) == "nothing"


def test_curves_are_told_from_left_to_right_whatever_the_order_of_the_rows():
    frame = pd.DataFrame({"name": ["b", "a", "b", "a", "a"], "x": [4, 2, 1, 1, 3], "y": [0.5, 7, 9, 5, math.nan]})
    assert ends(frame[frame.name == "a"], "x", "y") == "5 to 7"
    assert curves(frame, "name", "x", "y") == "b from 9 to 0.5; a from 5 to 7"


@pytest.mark.parametrize("figure", sorted(figures()))
def test_the_text_of_a_figure_names_its_shapes_and_computes_its_numbers(figure):
    caption, text, _ = figures()[figure]
    parts = (node.value for node in ast.walk(text) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    words = " ".join("".join(parts).split())  # as a page shows it
    computed = [node for node in ast.walk(text) if isinstance(node, ast.FormattedValue | ast.Call)]
    assert any(shape in words.lower() for shape in SHAPES)
    assert any(relation in words.lower() for relation in ACROSS), "what is across and what is up"
    assert len(computed) >= 2, "a text that is typed does not follow its run"
    assert words not in caption
