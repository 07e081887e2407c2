"""What the theme's pages get otherwise: names that break where they may, links to a fork."""

from __future__ import annotations

import pytest
from colours import contrast

from evolvingdp.book.files import PublishError
from evolvingdp.book.rendering import dark, theme
from evolvingdp.book.rendering.theme import mended
from evolvingdp.book.style import INKS, PALETTE

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


def test_a_dark_figure_has_its_colours_apart_from_its_ground_and_lightness_the_other_way_round():
    twin = dark.twin('<svg width="1"><path style="fill: #ffffff"/><path d="M 0"/><path style="stroke: #0173b2"/></svg>')
    ground, letters = dark.colour("#ffffff"), dark.colour("#000000")
    assert twin.startswith(f'<svg fill="{letters}" ')  # what matplotlib leaves without a colour is black
    assert f"fill: {ground}" in twin
    assert "#0173b2" not in twin
    assert contrast(letters, ground) > 12
    for ink in (*PALETTE, *INKS):
        assert contrast(dark.colour(ink), ground) > 4.5  # names stand in the colour of their line
    assert contrast(dark.colour("#f7fbff"), letters) > 10  # black words on a light field stay readable


def test_a_fork_s_pages_lead_to_its_repository_and_no_other_address_is_taken():
    shown = theme.links("https://github.com/me/mine", "book/results/evolving/thresh")
    assert "https://github.com/me/mine/raw/HEAD/notebooks/evolving/thresh.ipynb" in shown
    with pytest.raises(PublishError, match="OWNER/NAME, got"):
        theme.links("https://evil.example/me/mine", "book/index")
