"""Dated counts of words: of a shipped corpus, or of the reader's own CSV or Parquet file with columns date, word, count.

Every date is an epoch; the population of an epoch holds words in the proportions that its counts have.  A date is a year, a
month (2024-03) or a day (2024-03-31), the same kind in all of a file; 5, 05 and 005 are one year.  With words yes and no the
counts are a share of yes answers.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evolvingdp.streams import addresses
from evolvingdp.streams.reading import Table, as_text

COLUMNS = ("date", "word", "count")
MOST_EPOCHS, MOST_WORDS = 1000, 3000
MOST_COUNTED = 2**53  # of all words together: up to here sums of counts, and their shares, are exact
_FORMS = {"a year": r"[0-9]{1,4}", "a month": r"[0-9]{4}-[0-9]{2}", "a day": r"[0-9]{4}-[0-9]{2}-[0-9]{2}"}


@dataclass(frozen=True, eq=False)
class DatedCounts:
    """`counts` (epochs, words), int64, of `words` at `dates`, which ascend; every epoch has words."""

    name: str
    dates: tuple[str, ...]
    words: tuple[str, ...]
    counts: NDArray[np.int64]

    @property
    def horizon(self) -> int:
        """Epochs."""
        return len(self.dates)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of each word in its epoch, (epochs, words); rows sum to 1."""
        return np.asarray(self.counts / self.counts.sum(axis=1, keepdims=True))

    @property
    def years(self) -> NDArray[np.float64]:
        """The dates as numbers, (epochs,): 2024-07-01 is about 2024.5."""
        return np.array([_number(date) for date in self.dates])

    def place(self, word: str) -> int:
        """The column of `word`. Raises ValueError if there is none; the message names some words that there are."""
        word = as_text(word)
        if word not in self.words:
            near = [other for other in self.words if other[:3] == word[:3]] or list(self.moving(6))
            raise ValueError(f"must be a word of {self.name}, such as {', '.join(near[:6])}, got {word!r}")
        return self.words.index(word)

    def moving(self, most: int, without: Iterable[str] = ()) -> tuple[str, ...]:
        """The words whose share has the widest range over the epochs, widest first; "(other)" is not among them."""
        left_out = {addresses.OTHER, *without}
        order = np.argsort(-np.ptp(self.shares, axis=0), kind="stable")
        return tuple(self.words[place] for place in order if self.words[place] not in left_out)[:most]


@lru_cache(maxsize=8)
def shipped(corpus: str) -> DatedCounts:
    """The addresses of one shipped corpus, year by year."""
    rows = addresses.counts().query("corpus == @corpus")
    return _counted(corpus, rows.year.map(str), rows.word, rows["count"])


def read_counts(source: str | Path) -> DatedCounts:
    """The counts of a shipped corpus, "inaugural" or "state_union", or of a file. Raises ValueError, of one line, for a file
    that cannot be used."""
    if source in addresses.SHIPPED:
        return shipped(str(source))
    table = Table.read(source, COLUMNS, also=f"{' or '.join(addresses.SHIPPED)} or ")
    dates, words = table.texts("date"), table.texts("word")
    forms = np.array([_form(date) for date in dates])
    table.refuse(forms == "", "date", "be YYYY, YYYY-MM or YYYY-MM-DD")
    table.refuse(forms != forms[0], "date", f"be {forms[0]}, as in the first row")
    if forms[0] == "a year":
        dates = [f"{int(date)}" for date in dates]
    table.once("word", list(zip(dates, words, strict=True)), "of the same date; one must have the sum")
    counts = table.numbers("count", 0, 10**15 - 1, whole=True).astype(np.int64)
    if (total := sum(counts.tolist())) > MOST_COUNTED:
        raise ValueError(
            f"{table.path}: all counts together must be at most {MOST_COUNTED:,}, got {total:,}; divide them all alike"
        )
    read = _counted(table.path.name, dates, words, counts)
    if read.horizon < 2 or read.horizon > MOST_EPOCHS:
        raise ValueError(
            f"{table.path} must have 2 to {MOST_EPOCHS} dates, got {read.horizon}; join days to months or years"
        )
    if len(read.words) < 2:
        other = addresses.OTHER
        raise ValueError(f"{table.path} must have two words or more, got only {words[0]!r}; count the others as {other!r}")
    empty = np.flatnonzero(read.counts.sum(axis=1) == 0)
    if len(empty):
        raise ValueError(f"{table.path}: all counts of {read.dates[empty[0]]} are 0; leave the date out, or give it a count")
    return read


def _form(date: str) -> str:
    """Which of `_FORMS` a date has; "" where it is none."""
    for form, pattern in _FORMS.items():
        if re.fullmatch(pattern, date):
            try:
                _number(date)
            except ValueError:
                return ""
            return form
    return ""


def _number(date: str) -> float:
    """A date in years.  Raises ValueError for a month or a day that is none, and for the year 0."""
    year, month, day = (*map(int, date.split("-")), 1, 1)[:3]
    passed = datetime.date(year, month, day).timetuple().tm_yday - 1
    return year + passed / 366 if "-" in date else float(year)


def _counted(name: str, dates: Any, words: Any, counts: Any) -> DatedCounts:
    """Words by how often they occur; those beyond the first `MOST_WORDS` are counted as "(other)"."""
    table = pd.DataFrame({"date": list(dates), "word": list(words), "count": list(counts)}).astype({"word": object})
    totals = table.groupby("word")["count"].sum().sort_index().sort_values(ascending=False, kind="stable")
    order = [str(word) for word in totals.index]
    if len(order) > MOST_WORDS:
        order = [*(word for word in order[:MOST_WORDS] if word != addresses.OTHER), addresses.OTHER]
        table["word"] = table.word.where(table.word.isin(order), addresses.OTHER)
    wide = table.pivot_table(index="date", columns="word", values="count", aggfunc="sum", fill_value=0)
    wide = wide.loc[sorted(wide.index, key=_number), order]
    return DatedCounts(name, tuple(wide.index), tuple(order), wide.to_numpy(dtype=np.int64))
