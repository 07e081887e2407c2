"""Word counts of the Brown corpus, shipped as a table and rebuilt from NLTK on demand.

The table is a count of words, not text.  `READINGS` are the ways we tried to read the paper's preprocessing; the one
called `paper` has 25,992 distinct words, of which ten million draws miss none or one: Table 2 prints 25,991.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from itertools import accumulate

import pandas as pd

from evolvingdp.core import tables

LENGTH = 6  # letters a word is cut to, Section 4.2


def _paper(word: str) -> str:
    cut = _cut(word)
    return cut.ljust(LENGTH, cut[-1]) if cut else ""


def _cut(word: str) -> str:
    return word.lower()[:LENGTH] if word.isalpha() else ""


def _letters(word: str) -> str:
    return "".join(letter for letter in word.lower() if "a" <= letter <= "z")[:LENGTH]


READINGS: dict[str, tuple[str, Callable[[str], str]]] = {
    "paper": ("only alphabetic tokens, lower case, cut to 6, padded by repeating the last letter", _paper),
    "padding symbol": ("the same, padded by a symbol outside a-z", _cut),
    "letters only": ("all tokens, what is not a-z removed, lower case, cut to 6, padding symbol", _letters),
    "whole words": ("only alphabetic tokens, lower case, not cut", lambda word: word.lower() if word.isalpha() else ""),
    "long words": (
        "only alphabetic tokens of 6 letters and more, cut to 6",
        lambda word: _cut(word) if len(word) > 5 else "",
    ),
}


@cache
def words() -> pd.DataFrame:
    """The shipped table: columns word (6 letters a-z), count, and whole, as in `count_words`; most frequent first."""
    return tables.read("brown_words.csv.gz")


@cache
def readings() -> pd.DataFrame:
    """The shipped comparison of readings: reading, meaning, distinct words, tokens."""
    return tables.read("brown_readings.csv")


@cache
def categories() -> pd.DataFrame:
    """The shipped table of the same words by category: index word (as in `words`), a column of counts for each of the 15."""
    return tables.read("brown_categories.csv.gz", index_col="word")


def document_tokens() -> list[Counter[str]]:
    """Every token of NLTK's Brown corpus with its count, document by document, as NLTK's own reader has it: the files hold
    token/tag between spaces.  Raises LookupError where NLTK does not find the corpus."""
    from nltk.corpus import brown

    return [Counter(token.rpartition("/")[0] for token in brown.raw(name).split()) for name in brown.fileids()]


def by_category(documents: list[Counter[str]]) -> dict[str, Counter[str]]:
    """The tokens of all `documents` of a category together, of each category in alphabetical order."""
    ends = dict(zip(CATEGORY_SIZES, accumulate(CATEGORY_SIZES.values()), strict=True))
    return {name: together(documents[ends[name] - CATEGORY_SIZES[name] : ends[name]]) for name in sorted(ends)}


def together(counts: Iterable[Counter[str]]) -> Counter[str]:
    """The sum; adding up counters with + copies the first of them each time."""
    total = Counter[str]()
    for one in counts:
        total.update(one)
    return total


def count_by_category(tokens: dict[str, Counter[str]], reading: str = "paper") -> pd.DataFrame:
    """`tokens` preprocessed by `reading`: index word in the order of `count_words`, a column of counts per category."""
    order = count_words(together(tokens.values()), reading)["word"]
    columns = {category: count_words(part, reading).set_index("word")["count"] for category, part in tokens.items()}
    return pd.DataFrame(columns).reindex(order).fillna(0).astype(int).rename_axis("word")


def count_words(tokens: Counter[str], reading: str = "paper") -> pd.DataFrame:
    """`tokens` preprocessed by `reading`: columns word, count, and whole, the most frequent token behind the word in lower
    case, which is what a reader should see; most frequent first, ties in alphabetical order."""
    preprocess = READINGS[reading][1]
    behind: dict[str, Counter[str]] = {}
    for token, count in tokens.items():
        if word := preprocess(token):
            behind.setdefault(word, Counter())[token.lower()] += count
    first = {word: min(own, key=lambda token: (-own[token], token)) for word, own in behind.items()}
    rows = sorted((-own.total(), word, first[word]) for word, own in behind.items())
    return pd.DataFrame([(word, -less, whole) for less, word, whole in rows], columns=["word", "count", "whole"])


@cache
def wholes() -> pd.Series:
    """The whole word to show for each of `words`, by that word."""
    return words().set_index("word")["whole"]


def compare_readings(tokens: Counter[str]) -> pd.DataFrame:
    """One row per reading: how many distinct words and how many tokens it leaves."""
    tables = {reading: count_words(tokens, reading) for reading in READINGS}
    return pd.DataFrame(
        [(name, READINGS[name][0], len(table), int(table["count"].sum())) for name, table in tables.items()],
        columns=["reading", "meaning", "distinct words", "tokens"],
    )


# Documents by category in the corpus's order, which is that of its files.
CATEGORY_SIZES = {
    "news": 44, "editorial": 27, "reviews": 17, "religion": 17, "hobbies": 36, "lore": 48, "belles_lettres": 75,
    "government": 30, "learned": 80, "fiction": 29, "mystery": 24, "science_fiction": 6, "adventure": 29, "romance": 29,
    "humor": 9,
}  # fmt: skip
