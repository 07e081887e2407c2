"""Dated counts: the shipped ones are what they were counted as, the reader's own are read, or refused in one line."""

from __future__ import annotations

import numpy as np
import pytest

from evolvingdp.streams import read_counts
from evolvingdp.streams.addresses import OTHER, counts, function_words
from evolvingdp.streams.dated import MOST_WORDS

GOOD = "date,word,count\n2024-03,we,3\n2024-01,they,1\n2024-03,they,1\n2024-01,we,0\n"


@pytest.fixture
def file(tmp_path):
    def make(text, encoding="utf-8"):
        path = tmp_path / "mine.csv"
        path.write_text(text, encoding=encoding)
        return path

    return make


@pytest.mark.parametrize("corpus", ["inaugural", "state_union"])
def test_a_shipped_corpus_has_the_table_s_counts(corpus):
    read, table = read_counts(corpus), counts().query("corpus == @corpus")
    assert read.dates == tuple(map(str, sorted(set(table["year"]))))
    assert read.counts.sum() == table["count"].sum()
    for word, year, count in zip(table["word"][::997], table["year"][::997], table["count"][::997], strict=True):
        assert read.counts[read.dates.index(str(year)), read.place(word)] == count
    assert np.allclose(read.shares.sum(axis=1), 1)
    assert {"we", "upon", "must"} <= function_words()
    assert not {"freedom", "government", OTHER} & function_words()


def test_a_file_is_read_by_date_and_the_most_frequent_word_comes_first(file):
    read = read_counts(file(GOOD))
    assert (read.name, read.dates, read.words) == ("mine.csv", ("2024-01", "2024-03"), ("we", "they"))
    assert read.counts.tolist() == [[0, 1], [3, 1]]
    assert read.shares.tolist() == [[0, 1], [0.75, 0.25]]
    assert read.years == pytest.approx([2024, 2024 + 60 / 366])
    assert read.moving(1) == ("we",)  # both move by .75
    with pytest.raises(ValueError, match=r"^must be a word of mine.csv, such as we, they, got 'us'$"):
        read.place("us")


def test_columns_may_stand_in_any_order_and_words_be_quoted(file):
    read = read_counts(file('\ufeffcount, Word ,date\n2," a,b ",2001\n3,c,1999\n'))
    assert (read.dates, read.words) == (("1999", "2001"), ("c", "a,b"))


def test_rare_words_of_a_large_file_are_counted_together(file):
    lines = [f"{year},word{place},{2 if place < 5 else 1}" for year in (1, 2) for place in range(MOST_WORDS + 10)]
    read = read_counts(file("date,word,count\n" + "\n".join(lines)))
    assert (len(read.words), read.words[-1]) == (MOST_WORDS + 1, OTHER)
    assert read.counts.sum() == 2 * (MOST_WORDS + 15)
    assert OTHER not in read.moving(10_000)


def test_a_year_is_the_same_however_many_zeros_it_has(file):
    read = read_counts(file("date,word,count\n005,a,1\n5,b,1\n05,c,3\n12,a,1\n"))
    assert (read.dates, read.words) == (("5", "12"), ("c", "a", "b"))
    assert read.counts.tolist() == [[3, 1, 1], [0, 1, 0]]


def test_words_are_compared_in_one_form_of_unicode(file):
    read = read_counts(file("date,word,count\n1,e\u0301,1\n1,no,1\n2,\u00e9,2\n"))
    assert read.words == ("\u00e9", "no")
    assert read.place(" e\u0301 ") == 0


def test_counts_are_exact_or_refused(file):
    """13,000 words of 10^15 - 1 each would be -8.4e18 in int64."""
    many = "".join(f"{year},w{place},{10**15 - 1}\n" for year in (1, 2) for place in range(13_000))
    with pytest.raises(ValueError, match=r"mine.csv: all counts together must be at most 9,007,199,254,740,992, got 25,9"):
        read_counts(file("date,word,count\n" + many))
    at_most = read_counts(file(f"date,word,count\n1,a,{10**15 - 1}\n2,b,{10**15 - 1}\n"))
    assert at_most.counts.sum() == 2 * 10**15 - 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("date,word\n1,a\n", "must name its columns date, word, count in the first line, got date, word"),
        (GOOD + "2024-13,we,1\n", "row 6: date must be YYYY, YYYY-MM or YYYY-MM-DD, got '2024-13'"),
        (GOOD + "2024,we,1\n", "row 6: date must be a month, as in the first row, got '2024'"),
        (GOOD + "March,we,1\n", "row 6: date must be YYYY, YYYY-MM or YYYY-MM-DD, got 'March'"),
        (GOOD + "2024-04,we,-1\n", r"row 6: count must be a whole number from 0 to 999,999,999,999,999, got '-1'"),
        (GOOD + "2024-03,we,1\n", "row 6: word must stand once in the rows of the same date; one must have the sum"),
        (GOOD + "2024-04,we,0\n", "all counts of 2024-04 are 0; leave the date out, or give it a count"),
        ("date,word,count\n1999,a,1\n1999,b,1\n", "must have 2 to 1000 dates, got 1; join days to months"),
        ("date,word,count\n1999,a,1\n2000,a,1\n", "must have two words or more, got only 'a'; count the others as"),
        (GOOD + "2024-04,we,٣\n", "row 6: count must be a whole number"),
        ("date,word,count\n5,a,1\n05,b,1\n005,a,2\n", "row 4: word must stand once in the rows of the same date"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_refused_in_one_line_that_says_where_and_why(file, text, message):
    path = file(text)
    with pytest.raises(ValueError, match=message) as refused:
        read_counts(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_is_no_text_or_no_file_is_refused(file, tmp_path):
    with pytest.raises(ValueError, match="is not CSV text in UTF-8"):
        read_counts(file("date,word,count\n1999,\xe9,1\n", "latin-1"))
    with pytest.raises(ValueError, match=r"must be inaugural or state_union or a CSV .*absent.csv does not exist$"):
        read_counts(tmp_path / "absent.csv")
    with pytest.raises(ValueError, match=r"is no file$"):
        read_counts(tmp_path)
