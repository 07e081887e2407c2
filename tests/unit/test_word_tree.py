"""The prefix tree: words go down and come back, children are exactly the prefixes that words have."""

from __future__ import annotations

import itertools
import math
import re
import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evolvingdp.core import words
from evolvingdp.core.words import LETTERS
from evolvingdp.heavy_hitters.bitstogram import Bitstogram
from evolvingdp.heavy_hitters.word_tree import WordTree

TREES = [
    WordTree(),
    WordTree((1, 2, 3)),
    WordTree((1,) * 30, unit="bits"),
    WordTree((7, 11, 12), unit="bits"),
    WordTree((2, 2, 2), shorter=True),
    WordTree((1, 4, 25), unit="bits", shorter=True),
    WordTree((2,) * 8, length=16, shorter=True),  # more than 64 bits
    WordTree((1,) * 12, 12, "bytes", shorter=True),
]
TEXTS = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), min_size=1, max_size=3)


@pytest.mark.parametrize("tree", TREES, ids=str)
@given(data=st.data())
def test_every_word_is_found_by_descending_and_decoded(tree, data):
    least = 1 if tree.shorter else tree.length
    word = data.draw(TEXTS if tree.unit == "bytes" else st.text(LETTERS, min_size=least, max_size=tree.length))
    word = unicodedata.normalize("NFC", word)
    assume(tree.unit != "bytes" or len(word.encode()) <= tree.length)  # some letters grow
    leaf = tree.encode([word])
    assert tree.decode(leaf) == [word]
    node = tree.root
    for level, step in enumerate(tree.steps):
        prefix = leaf[:, : node.shape[1] + step]
        if tree.fan(level) <= 27**3:
            below = tree.children(node, level)
            assert len(below) == tree.fan(level) or tree.shorter or (tree.unit == "bits" and len(below) < tree.fan(level))
            assert (below == prefix).all(axis=1).sum() == 1
            assert len(np.unique(tree.keys(below))) == len(below)
        assert tree.prefixes(leaf, level) == tree.keys(prefix)
        node = prefix


@pytest.mark.parametrize("shorter", [False, True])
@pytest.mark.parametrize(
    ("unit", "steps"), [("letters", (1, 1)), ("letters", (2,)), ("bits", (3, 3, 4)), ("bits", (5, 5)), ("bytes", (1, 1))]
)
def test_the_leaves_are_exactly_the_words(unit, steps, shorter):
    tree = WordTree(steps, length=2, unit=unit, shorter=shorter)
    nodes = tree.root
    for level in range(tree.depth):
        nodes = tree.children(nodes, level)
    assert tree.checked(nodes) is nodes
    if unit == "bytes":
        assert len(nodes) == 255**2 + 255 * shorter
        return
    texts = {"".join(pair) for pair in itertools.product(LETTERS, repeat=2)}
    texts |= set(LETTERS) if shorter else set()
    assert sorted(tree.decode(nodes)) == sorted(texts)
    assert np.array_equal(nodes, tree.encode(tree.decode(nodes)))
    assert tree.decode(tree.encode([])) == []


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("short", "exactly 6 letters, got 'short' with 5"),
        ("toolongs", "got 'toolongs' with 8"),
        ("Sixsix", "with 'S'"),
        *((word, r"got .* with '\\x00', at position 1") for word in ("ab\0def", "\0bcdef", "abcde\0", "\0" * 6)),
    ],
)
def test_words_without_a_leaf_are_named(word, message):
    with pytest.raises(ValueError, match=message):
        WordTree().encode(["sixsix", word])


@pytest.mark.parametrize("text", ["", "a\0b", "1234567890123", "\ud800"])
def test_texts_without_a_leaf_are_named(text):
    with pytest.raises(ValueError, match=r"words must have 1 to 12 bytes of UTF-8, none of them 0, got .* at position 1"):
        TREES[-1].encode(["ok", text])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": (2, 2)}, r"steps must sum to 6 letters for words of 6 letters, got \(2, 2\) with sum 4"),
        ({"steps": (2, 2, 2), "unit": "bits"}, "steps must sum to 30 bits"),
        ({"steps": (0, 6)}, r"steps\[0\] must be >= 1, got 0"),
        ({"steps": (65,), "length": 65}, "length must be at most 64"),
    ],
)
def test_trees_that_cannot_be_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        WordTree(**settings)


@pytest.mark.parametrize("missing", [math.nan, None, pd.NA, np.float64("nan"), b"sixsix", 7])
def test_what_is_no_text_is_no_word(missing):
    for encode in (WordTree().encode, TREES[-1].encode, words.encode, Bitstogram(1.0, 10.0).encode):
        for texts in (["sixsix", "abcdef", missing], pd.Series(["sixsix", "abcdef", missing], dtype=object)):
            with pytest.raises(TypeError, match=f"words must be text, got {re.escape(repr(missing))} at position 2"):
                encode(texts)
        with pytest.raises(TypeError, match="words must be a list of words, got the text 'sixsix'"):
            encode("sixsix")


@pytest.mark.parametrize("tree", TREES[:6], ids=str)
def test_leaves_that_are_no_words_are_refused(tree):
    own = tree.encode(["sixsix", "zzzzzz", *(["a"] if tree.shorter else [])])
    assert np.array_equal(tree.checked(own), own)
    wide = 5 if tree.unit == "bits" else 1
    none, gap, foreign = np.zeros_like(own[:1]), own[:1].copy(), own[:1].copy()
    gap[:, wide : 2 * wide] = 0  # an end inside
    foreign[:, :wide] = 1 if tree.unit == "bits" else 27  # no letter has 31, or 27
    for leaf in (none, gap, foreign):
        with pytest.raises(ValueError, match=f"leaves must be made by encode, got .* at position {len(own)}"):
            tree.checked(np.concatenate([own, leaf]))
    with pytest.raises(ValueError, match=f"leaves must be made by encode, got .* at position {len(own)}"):
        tree.decode(np.concatenate([own, foreign]))
    for wrong in (own.astype(float), own[:, 1:], tree.keys(own)):
        with pytest.raises(TypeError, match=r"leaves must be made by encode, \(n, \d+\) uint8, got"):
            tree.checked(wrong)
