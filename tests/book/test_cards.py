"""The landing page: its pictures are drawn from the results, its words and numbers are read from them."""

from __future__ import annotations

import re

import pytest

from evolvingdp.book.rendering.ideas import cards
from support import REPOSITORY

INDEX = (REPOSITORY / "book" / "index.md").read_text()


def test_every_card_that_is_drawn_is_shown_and_says_what_it_shows():
    shown = re.findall(r":img-top: results/card-(\w+)\.svg\n:img-alt: (.{40,})\n:link: (results/\w+/\w+)\n", INDEX)
    assert {name for name, _, _ in shown} == set(cards.CARDS)
    assert 4 <= len(shown) <= 6


def test_the_headlines_are_read_from_results():
    headlines = re.findall(r"^\[(.*)\]\{\.headline\}$", INDEX, re.MULTILINE)
    assert len(headlines) == 3
    assert not re.search(r"\d", re.sub(r"\{value\}`[^`]*`", "", " ".join(headlines))), "numbers are computed"


@pytest.mark.parametrize(("padded", "word"), [("theeee", "the"), ("aaaaaa", "a"), ("whichh", "which"), ("beforr", "befor")])
def test_a_card_shows_words_without_their_padding(padded, word):
    assert cards.unpadded(padded) == word


def test_a_result_without_a_card_s_numbers_is_an_error(tmp_path):
    for name in cards.CARDS:
        with pytest.raises((OSError, KeyError, ValueError)):
            cards.draw(tmp_path, name)
