"""What the theme's pages get otherwise: formulas and names that break where they may, a list of pages made less often."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from evolvingdp.book.files import BookError
from evolvingdp.book.rendering import theme
from evolvingdp.book.rendering.theme import mended, pieces

X = '<span class="math notranslate">x</span>'


@pytest.mark.parametrize(
    ("body", "better"),
    [
        (f"<p>at {X}, so</p>", f'<p>at <span class="joined">{X},</span> so</p>'),
        (f"<li>{X}/{X}.</li>", f'<li><span class="joined">{X}/{X}.</span></li>'),
        (f"<p>at {X} so</p>", f"<p>at {X} so</p>"),
        (f"<strong>{X}</strong>.", f"<strong>{X}</strong>."),
        ('<span class="pre">--workers</span>', '<span class="pre joined">--workers</span>'),
        ('<span class="pre">smallest_scale</span>', '<span class="pre">smallest_scale</span>'),
        ('<span class="pre">core.noise.laplace_of</span>', '<span class="pre">core.<wbr>noise.<wbr>laplace_<wbr>of</span>'),
        ('<table class="searchable x"><td>a_b</td></table>', '<table class="searchable x"><td>a_<wbr>b</td></table>'),
        ("<tr><th>\n</th></tr>", "<tr><td>\n</td></tr>"),
        ('<th class="head text-right">', '<th scope="col" class="head text-right">'),
    ],
)
def test_html_is_mended(body, better):
    assert mended(body) == better


@pytest.mark.parametrize(
    ("formula", "parts"),
    [
        (r"a = b", None),
        (r"\left(a + b + c + d + e + f + g\right)_{i = 1, j = 2, k = 3, l = 4}", None),
        (r"(aaaaaaa + bbbbbbbb + cccccccc + dddddddd)", ["(aaaaaaa +{}", " bbbbbbbb +{}", " cccccccc +{}", " dddddddd)"]),
        (
            r"\hat f(v) \le \sqrt{n + m + a + b + c + d} - g(x) - h(y)",
            [r"\hat f(v) \le{}", r" \sqrt{n + m + a + b + c + d} - g(x) - h(y)"],
        ),
    ],
)
def test_a_long_formula_breaks_at_relations_then_at_signs_then_in_brackets(formula, parts):
    assert pieces(formula) == (parts or [formula])


@given(st.lists(st.sampled_from(["a", "=", "+", "-", "(", ")", r"\le", "^", "|", " "]), max_size=60).map(" ".join))
def test_no_letter_is_lost(formula):
    assert "".join(pieces(formula)).replace("{}", "") == formula


def test_a_fork_s_pages_lead_to_its_repository_and_no_other_address_is_taken():
    shown = theme.links("https://github.com/me/mine", "book/results/evolving/thresh")
    assert "https://github.com/me/mine/raw/HEAD/notebooks/evolving/thresh.ipynb" in shown
    with pytest.raises(BookError, match="OWNER/NAME, got"):
        theme.links("https://evil.example/me/mine", "book/index")


def test_the_list_of_pages_is_what_sphinx_makes_of_whole_tables_of_contents(tmp_path):
    contents = ".. toctree::\n\n   {}\n"
    pages = {
        "index": "Book\n====\n\n" + contents.format("rooms/first") + "\n" + contents.format("rooms/second"),
        "rooms/first": "First\n=====\n\nIts section\n-----------\n\n" + contents.format("inner") + "\nAnother\n-------\n",
        "rooms/inner": "Inner\n=====\n\nIts section\n-----------\n\n.. py:function:: something()\n",
        "rooms/second": "Second\n======\n\nIts section\n-----------\n",
    }
    (tmp_path / "rooms").mkdir()
    (tmp_path / "conf.py").touch()
    for name, text in pages.items():
        (tmp_path / f"{name}.rst").write_text(text)
    found: dict[str, list[tuple[str, str]]] = {}

    def keep(app, page, template, context, doctree):
        options = {"titles_only": True, "includehidden": True, "collapse": False, "maxdepth": 4}
        made = (context["toctree"](**options), context["toctree"](**options | {"titles_only": False}))
        found.setdefault(page, []).append(made)

    with docutils_namespace():
        app = Sphinx(tmp_path, tmp_path, tmp_path / "html", tmp_path / "trees", "html", status=None, warning=None)
        theme._share_sidebar(app)
        app.connect("html-page-context", keep, priority=399)
        app.connect("html-page-context", keep)
        app.connect("html-collect-pages", lambda app: [(f"_modules/{name}", {"body": ""}, "page.html") for name in "ab"])
        app.build()
    assert {*pages, "_modules/a", "_modules/b"} <= set(found)
    for page, (theirs, ours) in found.items():
        assert ours == theirs, page
        assert all(f"{title}</a>" in ours[0] for title in ("First", "Inner", "Second"))
        assert "Its section" not in ours[0]
