"""The tables in data/ are the corpora counted again, where these are."""

from __future__ import annotations

import os

import numpy as np
import pytest

from evolvingdp.core import brown
from evolvingdp.streams import addresses


def test_the_brown_table_is_the_corpus_counted_again():
    try:
        documents = brown.document_tokens()
        from nltk.corpus import brown as corpus
    except LookupError:
        assert not os.environ.get("NLTK_DATA"), "NLTK_DATA holds no Brown corpus"
        pytest.skip("the Brown corpus is not here (set NLTK_DATA)")
    tokens = brown.together(documents)
    counted = brown.count_words(tokens)
    by_category = brown.count_by_category(brown.by_category(documents))
    assert by_category.equals(brown.categories())
    assert [corpus.categories(fileids=name)[0] for name in corpus.fileids()] == [
        category for category, size in brown.CATEGORY_SIZES.items() for _ in range(size)
    ]
    assert by_category.sum(axis=1).tolist() == counted["count"].tolist()
    assert counted.equals(brown.words())
    assert brown.compare_readings(tokens).equals(brown.readings())
    assert len(counted) == 25_992  # one more than Table 2 prints: a draw of 10^7 misses none or one
    assert np.all(np.diff(counted["count"]) <= 0)


def test_the_table_of_addresses_is_the_corpora_counted_again():
    try:
        found = addresses.corpus_counts()
    except LookupError:
        assert not os.environ.get("NLTK_DATA"), "NLTK_DATA holds no addresses"
        pytest.skip("the addresses are not here (set NLTK_DATA)")
    table = addresses.count_table(found)
    assert table.equals(addresses.counts())
    assert set(addresses.tagged_function_words(set(table["word"]))["word"]) == addresses.function_words()
    assert table.groupby(["corpus", "year"])["count"].sum().to_dict() == {one: words.total() for one, words in found.items()}
    assert found["inaugural", 1917]["we"] == 47  # `grep -oiw we` counts as many in the text
