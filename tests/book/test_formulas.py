"""Formulas within a line: what touches them stays with them, and long ones break at their signs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvingdp.book.rendering.theme.accessible import breakable_code
from evolvingdp.book.rendering.theme.formulas import joined, pieces

X = '<span class="math notranslate">x</span>'


@pytest.mark.parametrize(
    ("body", "better"),
    [
        (f"<p>at {X}, so</p>", f'<p>at <span class="joined">{X},</span> so</p>'),
        (f"<p>({X}-differentially private)</p>", f'<p><span class="joined">({X}-differentially</span> private)</p>'),
        (f"<li>{X}/{X}.</li>", f'<li><span class="joined">{X}/{X}.</span></li>'),
        (f"<p>at {X} so</p>", f"<p>at {X} so</p>"),
        (f"{X}<wbr>{X}", f"{X}<wbr>{X}"),
        (f"<strong>{X}</strong>.", f"<strong>{X}</strong>."),
    ],
)
def test_a_formula_is_joined_to_the_letters_that_touch_it_and_to_no_tag(body, better):
    assert joined(body) == better


@pytest.mark.parametrize(
    ("formula", "parts"),
    [
        (r"a = b", [r"a = b"]),
        (
            r"\hat f(v) \le \sqrt{n + m + a + b + c + d} - g(x) - h(y)",
            [r"\hat f(v) \le{}", r" \sqrt{n + m + a + b + c + d} - g(x) - h(y)"],
        ),
        (r"\left(a + b + c + d + e + f + g\right)_{i = 1, j = 2, k = 3, l = 4}", None),
        (r"(aaaaaaa + bbbbbbbb + cccccccc + dddddddd)", ["(aaaaaaa +{}", " bbbbbbbb +{}", " cccccccc +{}", " dddddddd)"]),
        (r"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/(-b)", None),
    ],
)
def test_a_long_formula_breaks_at_relations_then_at_signs_then_in_brackets(formula, parts):
    assert pieces(formula) == (parts or [formula])


@given(st.lists(st.sampled_from(["a", "=", "+", "-", "(", ")", r"\le", "^", "|", " "]), max_size=60).map(" ".join))
def test_no_letter_is_lost(formula):
    assert "".join(pieces(formula)).replace("{}", "") == formula


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("--workers", '<span class="pre joined">--workers</span>'),
        ("smallest_scale", '<span class="pre">smallest_scale</span>'),
        ("evolvingdp.", '<span class="pre">evolvingdp.<wbr></span>'),
        ("core.noise.discrete_laplace", '<span class="pre">core.<wbr>noise.<wbr>discrete_<wbr>laplace</span>'),
        ("12345678901234567.1234", '<span class="pre">12345678901234567.1234</span>'),
    ],
)
def test_an_option_is_whole_and_a_long_name_breaks_behind_its_dots_and_underscores(word, shown):
    assert breakable_code(f'<span class="pre">{word}</span>') == shown


def test_a_narrow_table_breaks_its_names_in_the_html_and_no_other_table_does():
    row = "<td><p>user_mean of 0.5</p></td></tr></table>"
    assert breakable_code(f'<table class="table"><tr>{row}') == f'<table class="table"><tr>{row}'
    assert ">user_<wbr>mean of 0.5<" in breakable_code(f'<table class="searchable grouped table"><tr>{row}')
