"""Dated counts of words: of a shipped corpus, or of the reader's own CSV or Parquet file with columns date, word, count.

Every date is an epoch; the population of an epoch holds words in the proportions that its counts have.  A date is a year, a
month (2024-03) or a day (2024-03-31), the same kind in all of a file; 5, 05 and 005 are one year.  A word is any line of
text, in NFC, so that the same letters are the same word: with the words yes and no, the counts are a share of yes answers.
A file that cannot be used is refused in one line: where, what is wrong, what would work.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import tables
from evolvingdp.streams import reading
from evolvingdp.streams.reading import MOST_LETTERS, as_text, not_a_line

SHIPPED = ("inaugural", "state_union")
COLUMNS = ("date", "word", "count")
OTHER = "(other)"
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
        left_out = {OTHER, *without}
        order = np.argsort(-np.ptp(self.shares, axis=0), kind="stable")
        return tuple(self.words[place] for place in order if self.words[place] not in left_out)[:most]


@lru_cache(maxsize=8)
def shipped(corpus: str) -> DatedCounts:
    """The addresses of one shipped corpus, year by year."""
    name = "address_words.csv.gz"
    try:
        with gzip.open(tables.DATA / name, "rt", newline="") as file:
            rows = [(row[2], row[0], int(row[3])) for row in csv.reader(file) if row[1] == corpus]
    except (OSError, EOFError, ValueError, IndexError) as error:
        raise tables.damaged(name, error) from None
    return _table(corpus, rows)


def read_counts(source: str | Path) -> DatedCounts:
    """The counts of a shipped corpus, "inaugural" or "state_union", or of a CSV file. Raises ValueError, of one line,
    for a file that cannot be used."""
    if source in SHIPPED:
        return shipped(str(source))
    path = Path(os.path.expanduser(source))  # which leaves a user that nobody knows as it is
    if not path.is_file():
        there = "is no file" if path.exists() else "does not exist"
        raise ValueError(f"must be {' or '.join(SHIPPED)} or a CSV file with columns {', '.join(COLUMNS)}; {path} {there}")
    try:
        if path.suffix == ".parquet":
            rows = list(_rows(path, io.StringIO(reading.loaded(path).to_csv(index=False))))
        else:
            with path.open(newline="", encoding="utf-8-sig") as file:
                rows = list(_rows(path, file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not CSV text in UTF-8 ({error}); save it as such") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    read = _table(path.name, rows)
    if read.horizon < 2 or read.horizon > MOST_EPOCHS:
        raise ValueError(f"{path} must have 2 to {MOST_EPOCHS} dates, got {read.horizon}; join days to months or years")
    if len(read.words) < 2:
        raise ValueError(f"{path} must have two words or more, got only {read.words[0]!r}; count the others as {OTHER!r}")
    empty = np.flatnonzero(read.counts.sum(axis=1) == 0)
    if len(empty):
        raise ValueError(f"{path}: all counts of {read.dates[empty[0]]} are 0; leave the date out, or give it a count")
    return read


def _rows(path: Path, file: Iterable[str]) -> Iterator[tuple[str, str, int]]:
    """(date, word, count) of each line, checked."""
    lines = csv.reader(file, strict=True)
    header = [name.strip().lower() for name in next(lines, [])]
    if sorted(header) != sorted(COLUMNS):
        got = ",".join(header)[:60] or "nothing"
        raise ValueError(f"{path}, line 1: must name the columns {','.join(COLUMNS)}, got {got}")
    form, seen = "", dict[tuple[str, str], int]()
    for row in lines:
        where = f"{path}, line {lines.line_num}"
        if not row:
            continue
        if len(row) != len(COLUMNS):
            raise ValueError(f"{where}: must have {len(COLUMNS)} values, got {len(row)}; quote a word with a comma")
        date, word, count = (dict(zip(header, row, strict=True))[name].strip() for name in COLUMNS)
        own = _form(date)
        if own is None or own != (form or own):
            like = f" like the lines before, which have {form}" if form and own else ""
            raise ValueError(f"{where}: date must be YYYY, YYYY-MM or YYYY-MM-DD{like}, got {date!r}")
        date, word = f"{int(date)}" if own == "a year" else date, as_text(word)
        if not word:
            raise ValueError(f"{where}: word must not be empty; leave the line out, or call it {OTHER!r}")
        if not_a_line(word):
            raise ValueError(
                f"{where}: word must be one line of at most {MOST_LETTERS} characters, got {word[:20]!r} of {len(word)}"
            )
        if not re.fullmatch(r"[0-9]{1,15}", count):
            raise ValueError(f"{where}: count must be a whole number from 0 to 10^15 - 1, got {count!r}")
        if (date, word) in seen:
            raise ValueError(
                f"{where}: {word!r} of {date} stands in line {seen[date, word]} already; one line must have the sum"
            )
        form, seen[date, word] = own, lines.line_num
        yield date, word, int(count)


def _form(date: str) -> str | None:
    """Which of `_FORMS` a date has; None where it is none."""
    for form, pattern in _FORMS.items():
        if re.fullmatch(pattern, date):
            try:
                _number(date)
            except ValueError:
                return None
            return form
    return None


def _number(date: str) -> float:
    """A date in years.  Raises ValueError for a month or a day that is none, and for the year 0."""
    year, month, day = (*map(int, date.split("-")), 1, 1)[:3]
    passed = datetime.date(year, month, day).timetuple().tm_yday - 1
    return year + passed / 366 if "-" in date else float(year)


def _table(name: str, rows: Sequence[tuple[str, str, int]]) -> DatedCounts:
    """All rows, words by how often they occur; those beyond the first `MOST_WORDS` are counted as `OTHER`."""
    total = sum(count for _, _, count in rows)
    if total > MOST_COUNTED:
        raise ValueError(
            f"{name}: all counts together must be at most {MOST_COUNTED:,}, got {total:,}; divide them all alike"
        )
    totals = dict[str, int]()
    for _, word, count in rows:
        totals[word] = totals.get(word, 0) + count
    words = sorted(totals, key=lambda word: (-totals[word], word))
    if len(words) > MOST_WORDS:
        words = [*(word for word in words[:MOST_WORDS] if word != OTHER), OTHER]
    dates = sorted({date for date, _, _ in rows}, key=_number)
    column, line = {word: place for place, word in enumerate(words)}, {date: place for place, date in enumerate(dates)}
    counts = np.zeros((len(dates), len(words)), dtype=np.int64)
    for date, word, count in rows:
        counts[line[date], column.get(word, len(words) - 1)] += count
    return DatedCounts(name, tuple(dates), tuple(words), counts)
