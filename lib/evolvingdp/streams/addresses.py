"""Word counts of two centuries of presidents' addresses, shipped as a table and rebuilt from NLTK on demand.

The tables are counts of words by year, not text: inaugural addresses (1789 to 2021) and state of the union addresses (1945
to 2006).  A word is an alphabetic token of NLTK's reader in lower case, of two letters and more or `a` or `i`; those that
occur less than `LEAST` times in all are one row a year, `OTHER`.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pandas as pd

from evolvingdp.core import tables

SHIPPED = ("inaugural", "state_union")
OTHER = "(other)"
LEAST = 20  # occurrences in both corpora together, from which a word has rows of its own
_CLOSED = re.compile(  # the Brown corpus's tags of closed classes: articles, auxiliaries, pronouns, numbers, ...
    r"(ABL|ABN|ABX|AP|AT|BE\w*|CC|CD|CS|DO\w*|DT\w*|EX|HV\w*|IN|MD|OD|PN|PP\w*|QL|QLP|RN|RP|TO|UH|WDT|WP\w*|WQL|WRB|\*)[$*]*"
)


@cache
def counts() -> pd.DataFrame:
    """The shipped table: word, corpus, year, count; sorted by the first three."""
    return tables.read("address_words.csv.gz")


@cache
def function_words() -> frozenset[str]:
    """The words of the table that carry grammar and not content: in the Brown corpus their most frequent tag is of a closed
    class (articles, pronouns, prepositions, conjunctions, auxiliaries, numbers)."""
    return frozenset(tables.read("address_function_words.csv")["word"])


def corpus_counts() -> dict[tuple[str, int], Counter[str]]:
    """(corpus, year) -> its words with their counts, by NLTK's readers.  Raises LookupError where NLTK finds no corpus."""
    from nltk.corpus import inaugural, state_union

    found: dict[tuple[str, int], Counter[str]] = {}
    for corpus, reader in zip(SHIPPED, (inaugural, state_union), strict=True):
        for name in reader.fileids():
            words = (token.lower() for token in reader.words(name) if token.isalpha())
            year = found.setdefault((corpus, int(name[:4])), Counter())
            year.update(word for word in words if len(word) > 1 or word in "ai")
    return found


def count_table(found: dict[tuple[str, int], Counter[str]]) -> pd.DataFrame:
    """`found` as the shipped table: rare words of a year are one row, `OTHER`."""
    total = sum(found.values(), Counter[str]())
    rows = Counter[tuple[str, str, int]]()
    for (corpus, year), words in found.items():
        for word, count in words.items():
            rows[word if total[word] >= LEAST else OTHER, corpus, year] += count
    return pd.DataFrame([(*row, rows[row]) for row in sorted(rows)], columns=["word", "corpus", "year", "count"])


def tagged_function_words(words: set[str]) -> pd.DataFrame:
    """Those of `words` whose most frequent tag in NLTK's Brown corpus is of a closed class: column word, sorted."""
    from nltk.corpus import brown

    tags: dict[str, Counter[str]] = {}
    tagged = Counter(token for name in brown.fileids() for token in brown.raw(name).split())  # token/tag
    for (token, _, tag), count in ((both.rpartition("/"), count) for both, count in tagged.items()):
        if (word := token.lower()) in words:
            tags.setdefault(word, Counter())[tag.upper().split("-")[0].split("+")[0]] += count
    first = {word: sorted((-count, tag) for tag, count in own.items())[0][1] for word, own in tags.items()}
    return pd.DataFrame({"word": sorted(word for word, tag in first.items() if _CLOSED.fullmatch(tag))})
