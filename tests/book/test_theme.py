"""What the theme's pages get otherwise: names that break where they may, links to a fork."""

from __future__ import annotations

import pytest

from evolvingdp.book.files import BookError
from evolvingdp.book.rendering import theme
from evolvingdp.book.rendering.theme import mended

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


def test_a_fork_s_pages_lead_to_its_repository_and_no_other_address_is_taken():
    shown = theme.links("https://github.com/me/mine", "book/results/evolving/thresh")
    assert "https://github.com/me/mine/raw/HEAD/notebooks/evolving/thresh.ipynb" in shown
    with pytest.raises(BookError, match="OWNER/NAME, got"):
        theme.links("https://evil.example/me/mine", "book/index")
