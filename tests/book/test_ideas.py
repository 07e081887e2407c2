"""The pictures of ideas: shown once with a message, drawn from what the library does, legible by day and by night."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from colours import contrast
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from evolvingdp.book.rendering.ideas import trust
from evolvingdp.book.rendering.ideas.pictures import PICTURES
from evolvingdp.book.rendering.ideas.svg import WIDTH
from evolvingdp.continual_mean import UserMean
from evolvingdp.continual_mean.prefix_sums import Tree
from evolvingdp.core.noise import DiscreteLaplace
from evolvingdp.evolving import Thresh
from evolvingdp.heavy_hitters import FreqOracle, TreeHist
from evolvingdp.sparse_vector import ThresholdMonitorEvolving
from support import REPOSITORY

PAGES = "\n".join(path.read_text() for path in sorted((REPOSITORY / "book").glob("*.md")))
SHEET = (REPOSITORY / "book" / "_static" / "ideas.css").read_text()


def test_every_picture_is_shown_once_under_a_message():
    shown = re.findall(r"```\{idea\} (\S+)\n([^`]+)\n```", PAGES)
    assert sorted(name for name, _ in shown) == sorted(PICTURES)
    assert all(40 < len(caption) < 260 and caption.endswith(".") for _, caption in shown)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_names_itself_and_keeps_its_words_inside(name):
    drawing = PICTURES[name]()
    svg = drawing.svg(f"idea-{name}")
    assert svg == PICTURES[name]().svg(f"idea-{name}"), "the same at every build"
    assert f'<title id="idea-{name}-title">' in svg
    assert len(drawing.says) > 100
    assert re.search(r"\d", drawing.says)
    for kind, x, y, at, words in re.findall(
        r'<text class="([^"]*)" x="([^"]+)" y="([^"]+)" text-anchor="(\w+)">([^<]+)<', svg
    ):
        box = TextPath((0, 0), words, size=12 if "small" in kind else 13, prop=FontProperties("DejaVu Sans")).get_extents()
        left = float(x) - box.width * {"start": 0, "middle": 0.5, "end": 1}[at]
        assert left >= -1, words
        assert left + box.width <= WIDTH + 1, words
        assert 8 <= float(y) <= drawing.height - 2, words


WRONG = {
    "trust": (DiscreteLaplace, "variance", property(lambda law: 2 * law.scale**2 * 1.1)),
    "count-sketch": (FreqOracle, "users_of_a_report", property(lambda oracle: 1.1 * oracle.hashes.rows)),
    "prefix-tree": (TreeHist, "cut", lambda search, level, n_users: search.threshold / 2),
    "thresholds": (Thresh, "threshold", lambda thresh, epoch: 2 * (epoch & -epoch).bit_length() * thresh.unit),
    "blocks": (Tree, "all", lambda tree, count, tape: np.cumsum(tape.take(count))),
    "user-blocks": (UserMean, "sizes", property(lambda settings: (2,) * 8)),
    "counters": (ThresholdMonitorEvolving, "counted", lambda monitor, state, values: state),
}


@pytest.mark.parametrize("name", PICTURES)
def test_another_algorithm_gives_another_picture(name, monkeypatch):
    before = PICTURES[name]().svg("x")
    monkeypatch.setattr(*WRONG[name])
    assert PICTURES[name]().svg("x") != before


@pytest.mark.parametrize("sheet", re.findall(r"\{ (--idea-ours[^}]*)\}", SHEET))
def test_marks_and_words_stand_out_from_their_ground(sheet):
    colours = dict(re.findall(r"--idea-(\w+): (#\w{6})", sheet))
    assert contrast(colours["text"], colours["page"]) >= 7
    assert contrast(colours["text"], colours["faint"]) >= 4.5
    assert contrast(colours["on"], colours["ours"]) >= 4.5
    for mark in ("ours", "other", "line"):
        assert contrast(colours[mark], colours["page"]) >= 4.5, mark
    assert contrast(colours["ours"], colours["faint"]) >= 3


def test_the_caption_of_the_counters_counts_what_is_drawn():
    (events,) = re.findall(r"Events in turn: (.*)\.$", PICTURES["counters"]().says)
    assert [event.split(",")[0].split()[1] for event in events.split("; ")] == ["yes"] * 6
    assert events.endswith("12 gone")


def test_the_errors_beside_each_other_are_of_noise_alone():
    found, e = trust.errors(), math.exp(trust.EPSILON)
    assert found["local"] ** 2 == pytest.approx(trust.USERS * e / (e - 1) ** 2)
    assert found["central"] ** 2 == pytest.approx(2 * e / (e - 1) ** 2)
