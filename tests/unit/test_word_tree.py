"""The prefix tree: words go down and come back, children are exactly the prefixes that words have."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvingdp.core import words
from evolvingdp.core.words import LETTERS
from evolvingdp.heavy_hitters.bitstogram import Bitstogram
from evolvingdp.heavy_hitters.word_tree import WordTree

TREES = [
    WordTree(),
    WordTree((3, 3)),
    WordTree((1, 2, 3)),
    WordTree((1,) * 30, unit="bits"),
    WordTree((7, 11, 12), unit="bits"),
    WordTree((2, 2, 2), shorter=True),
    WordTree((1, 4, 25), unit="bits", shorter=True),
    WordTree((4, 4, 4), length=12, shorter=True),
]


@pytest.mark.parametrize("tree", TREES, ids=str)
@given(data=st.data())
def test_every_word_is_found_by_descending_and_decoded(tree, data):
    word = data.draw(st.text(LETTERS, min_size=1 if tree.shorter else tree.length, max_size=tree.length))
    leaf = tree.encode([word])
    assert tree.decode(leaf) == [word]
    node = np.zeros(1, dtype=np.uint64)
    for level in range(tree.depth):
        prefix = tree.prefixes(leaf, level)
        if tree.fan(level) <= 27**3:
            assert prefix[0] in tree.children(node, level)
        node = prefix
    assert node == leaf


@pytest.mark.parametrize("shorter", [False, True])
@pytest.mark.parametrize(("unit", "steps"), [("letters", (1, 1)), ("letters", (2,)), ("bits", (3, 3, 4)), ("bits", (5, 5))])
def test_the_leaves_are_exactly_the_words(unit, steps, shorter):
    tree = WordTree(steps, length=2, unit=unit, shorter=shorter)
    nodes = np.zeros(1, dtype=np.uint64)
    for level in range(tree.depth):
        nodes = tree.children(nodes, level)
    words = {"".join(pair) for pair in itertools.product(LETTERS, repeat=2)}
    if shorter:
        words |= set(LETTERS)
    assert sorted(tree.decode(nodes)) == sorted(words)
    assert set(nodes) == set(tree.encode(sorted(words)))


def test_what_is_no_leaf_is_named_and_not_decoded():
    leaf = int(WordTree().encode(["sixsix"])[0])
    assert WordTree().decode(leaf for _ in range(2)) == ["sixsix"] * 2
    assert WordTree().decode([]) == []
    assert WordTree().decode([27]) == ["a"], "a prefix, as pictures show it"
    bits = WordTree((1,) * 30, unit="bits")
    for tree, wrong in ((WordTree(), 27**6), (bits, 2**30 - 1)):  # digits 27 and 31
        with pytest.raises(ValueError, match=f"leaves must be made by encode, got {wrong} at position 1"):
            tree.decode([int(tree.encode(["sixsix"])[0]), wrong])


@pytest.mark.parametrize(
    ("word", "message"),
    [("short", "exactly 6 letters, got 'short' with 5"), ("toolongs", "got 'toolongs' with 8"), ("Sixsix", "with 'S'")],
)
def test_words_without_a_leaf_are_named(word, message):
    with pytest.raises(ValueError, match=message):
        WordTree().encode(["sixsix", word])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": (2, 2)}, r"steps must sum to 6 letters for words of 6 letters, got \(2, 2\) with sum 4"),
        ({"steps": (2, 2, 2), "unit": "bits"}, "steps must sum to 30 bits"),
        ({"steps": (0, 6)}, r"steps\[0\] must be >= 1, got 0"),
        ({"steps": (13,), "length": 13}, "length must be at most 12"),
        ({"unit": "syllables"}, "unit must be one of letters, bits"),
    ],
)
def test_trees_that_cannot_be_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        WordTree(**settings)


@pytest.mark.parametrize("tree", [WordTree(), WordTree((2, 2, 2), shorter=True), WordTree((1,) * 30, unit="bits")], ids=str)
@pytest.mark.parametrize("word", ["ab\0def", "\0bcdef", "abcde\0", "\0" * 6])
def test_what_ends_a_shorter_word_inside_is_no_letter_of_a_word(tree, word):
    with pytest.raises(ValueError, match=r"words must be written in a-z, got .* with '\\x00', at position 1"):
        tree.encode(["sixsix", word])


@pytest.mark.parametrize("missing", [math.nan, None, pd.NA, np.float64("nan"), b"sixsix", 7])
def test_what_is_no_text_is_no_word(missing):
    for encode in (WordTree().encode, words.encode, Bitstogram(1.0, 10.0).encode):
        for texts in (["sixsix", "abcdef", missing], pd.Series(["sixsix", "abcdef", missing], dtype=object)):
            with pytest.raises(TypeError, match=f"words must be text, got {re.escape(repr(missing))} at position 2"):
                encode(texts)
        with pytest.raises(TypeError, match="words must be a list of words, got the text 'sixsix'"):
            encode("sixsix")
        with pytest.raises(ValueError, match="got 'Sixsix' with 'S', at position 1"):
            encode(np.array(["sixsix", "Sixsix"]))


@pytest.mark.parametrize("tree", TREES[:6], ids=str)
def test_leaves_that_are_no_words_are_refused(tree):
    own = tree.encode(["sixsix", "zzzzzz", *(["a"] if tree.shorter else [])])
    for kind in (np.uint64, np.int64):
        assert tree.checked(own.astype(kind)).tolist() == own.tolist()
    ended = (
        WordTree((6,), shorter=True, unit=tree.unit)
        if tree.unit == "letters"
        else WordTree((30,), unit="bits", shorter=True)
    )
    strangers = [0, 2**40, 2**63, *([] if tree.shorter else ended.encode(["short"]).tolist()), tree.base ** sum(tree.steps)]
    for leaf in strangers:
        with pytest.raises(ValueError, match=f"leaves must be made by encode, got {leaf} at position {len(own)}"):
            tree.checked(np.append(own, np.uint64(leaf)))
    with pytest.raises(ValueError, match="leaves must be made by encode, got -1 at position 0"):
        tree.checked(np.array([-1]))
    for wrong in (own.astype(float), own[None, :]):
        with pytest.raises(TypeError, match="leaves must be a one-dimensional array of integers"):
            tree.checked(wrong)


def test_a_stranger_among_very_many_leaves_is_found_where_it_stands():
    leaves = np.repeat(WordTree().encode(["sixsix"]), 150_000)
    leaves[[140_000, 149_999]] = 2**40
    with pytest.raises(ValueError, match=f"got {2**40} at position 140000"):
        WordTree().checked(leaves)
