"""A reader's own file, CSV or Parquet, read by pandas and checked row by row: words, bits, values, groups.

| columns | what a row is | read by |
|---|---|---|
| `word`, or `word, count` | one user's word, or how many users hold it | `read_words` |
| `period, user, bit`, or `period, share, users` | one user's bit of a period, or the share of ones in it | `read_bits` |
| `user, value` | one sample of a user, in the order of arrival | `read_values` |
| `step, user, group` | the group that a user is in, in a step | `read_groups` |

A dated table of words (`date, word, count`) is read by `dated.read_counts`. Names of users, periods and groups are text; a
word is one line of text in Unicode's form NFC. What cannot be used is refused in one line (ValueError): which file and row,
which column, what is wrong, what would work.
"""

from __future__ import annotations

import lzma
import os
import re
import tarfile
import unicodedata
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

MOST_LETTERS = 200  # of a name or a word
MOST_ROWS = 10**7
MOST_COUNTED = 10**10  # users, of all words together
MOST_HELD = 10**8  # steps times users
_COMPRESSED = (EOFError, ImportError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError)  # cut or damaged
_BREAKS = {"Cc", "Zl", "Zp"}  # kinds of characters that end a line, or are no text


@dataclass(frozen=True, eq=False)
class Words:
    """How many users hold each of `words`, `counts` (words,), most first; each user holds one."""

    name: str
    words: tuple[str, ...]
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Bits:
    """The share of ones in each of `periods`, in the file's order. `bits`, (periods, users), where the file says which user
    holds which, else None; `n_users` in every period."""

    name: str
    periods: tuple[str, ...]
    shares: NDArray[np.float64]
    n_users: int
    bits: NDArray[np.int64] | None


@dataclass(frozen=True, eq=False)
class Values:
    """Samples in the order of arrival: `values` (samples,), and the number of each one's user, from 0, in `users`."""

    name: str
    names: tuple[str, ...]
    users: NDArray[np.int64]
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Groups:
    """`held` (steps, users): the number of the group in which each user is in each step, -1 for none."""

    name: str
    steps: tuple[str, ...]
    groups: tuple[str, ...]
    held: NDArray[np.int64]


def read_words(path: str | Path, letters: int = 0) -> Words:
    """Words, one a row, or with a `count` of users, from 1; with `letters`, in a-z and of so many at most."""
    table = Table.read(path, ("word",), ("word", "count"))
    words = table.texts("word")
    if letters:
        bad = np.array([re.fullmatch(f"[a-z]{{1,{letters}}}", word) is None for word in words])
        table.refuse(bad, "word", f"have 1 to {letters} letters, all of a-z (heavy_hitters/rappor takes any text)")
    if "count" in table.columns:
        table.once("word", words)
        counts = table.numbers("count", 1, MOST_COUNTED, whole=True).astype(np.int64)
        held = pd.Series(counts, index=words)
        if held.sum() > MOST_COUNTED:
            raise ValueError(f"{path}: all counts together must be at most {MOST_COUNTED:,}, got {held.sum():,}")
    else:
        held = pd.Series(words).value_counts()
    held = held.sort_index().sort_values(ascending=False, kind="stable")
    if len(held) < 2:
        raise ValueError(f"{path} must have two words or more, got only {held.index[0]!r}")
    return Words(Path(path).name, tuple(map(str, held.index)), held.to_numpy(dtype=np.int64))


def read_bits(path: str | Path) -> Bits:
    """A bit of every user in every period; or the share of ones among the users, as many in every period."""
    table = Table.read(path, ("period", "user", "bit"), ("period", "share", "users"))
    periods, places = _numbered(table.texts("period"))
    if len(periods) < 2:
        raise ValueError(f"{path} must have two periods or more, got {len(periods)}")
    if "share" in table.columns:
        table.once("period", table.texts("period"))
        many = table.numbers("users", 1, MOST_COUNTED, whole=True)
        table.refuse(many != many[0], "users", f"be the same in every period, {many[0]:.0f} as in the first")
        return Bits(Path(path).name, periods, table.numbers("share", 0, 1), int(many[0]), None)
    users, who = _numbered(table.texts("user"))
    table.once("user", list(zip(table.texts("period"), table.texts("user"), strict=True)), "of the same period")
    told = table.numbers("bit", 0, 1, whole=True)
    if (lacking := np.bincount(places) < len(users)).any():
        period = int(np.argmax(lacking))
        user = np.setdiff1d(np.arange(len(users)), who[places == period])[0]
        raise ValueError(
            f"{path} must have a bit of every user in every period; {users[user]!r} has none in {periods[period]!r}"
        )
    bits = np.empty((len(periods), len(users)), dtype=np.int64)
    bits[places, who] = told
    return Bits(Path(path).name, periods, bits.mean(axis=1), len(users), bits)


def read_values(path: str | Path, low: float = 0.0, high: float = 1.0) -> Values:
    """Samples of users in the order of arrival, each from `low` to `high`."""
    table = Table.read(path, ("user", "value"))
    names, users = _numbered(table.texts("user"))
    return Values(Path(path).name, names, users, table.numbers("value", low, high))


def read_groups(path: str | Path) -> Groups:
    """The group of a user in a step, at most one; steps in the file's order."""
    table = Table.read(path, ("step", "user", "group"))
    steps, places = _numbered(table.texts("step"))
    users, who = _numbered(table.texts("user"))
    groups, which = _numbered(table.texts("group"))
    table.once("user", list(zip(table.texts("step"), table.texts("user"), strict=True)), "of the same step")
    held = nobody(path, "steps", len(steps), len(users))
    held[places, who] = which
    return Groups(Path(path).name, steps, groups, held)


def nobody(path: str | Path, named: str, steps: int, users: int) -> NDArray[np.int64]:
    """`Groups.held` before anybody holds anything; raises ValueError where a machine's memory would not do."""
    if steps * users > MOST_HELD:
        raise ValueError(
            f"{path} must have at most {MOST_HELD:,} {named} times users, got {steps:,} times {users:,}; join {named}"
        )
    return np.full((steps, users), -1, dtype=np.int64)


def columns_of(path: str | Path) -> tuple[str, ...]:
    """The names of a file's columns, in lower case."""
    return tuple(_loaded(Path(os.path.expanduser(path)), "a CSV or Parquet file").columns)


def as_text(text: str) -> str:
    """`text` as names and words are compared: without blanks around it, in Unicode's form NFC."""
    return unicodedata.normalize("NFC", text.strip())


def _instead(columns: list[str], shapes: tuple[tuple[str, ...], ...]) -> str:
    """What would make `columns` those of a shape, where that is plain."""
    if len(columns) == 1 and re.search(r"\w[;\t|]\w", columns[0]):
        return "; separate columns by commas"
    more = [name for name in columns if not any(name in shape for shape in shapes)]
    if not more or not any(set(shape) <= {*columns} for shape in shapes):
        return ""
    return f"; leave out {repr(', '.join(more)[:80])[1:-1] or 'the column without a name'}"


def _numbered(names: list[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    codes, found = pd.factorize(np.array(names, dtype=object))
    return tuple(map(str, found)), np.asarray(codes, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Table:
    """A file's rows as text, with the columns that are asked for; `first` is the number of the first row."""

    path: Path
    rows: pd.DataFrame
    first: int

    @property
    def columns(self) -> list[str]:
        return list(self.rows.columns)

    @classmethod
    def read(cls, path: str | Path, *shapes: tuple[str, ...], also: str = "") -> Table:
        """`also`: what else than a file would work, where there is none."""
        path = Path(os.path.expanduser(path))  # which leaves a user that nobody knows as it is
        wanted = " or ".join(", ".join(shape) for shape in shapes)
        rows = _loaded(path, f"{also}a CSV or Parquet file with columns {wanted}")
        if not any(sorted(rows.columns) == sorted(shape) for shape in shapes):
            got = repr(", ".join(rows.columns)[:80])[1:-1] or "nothing"
            raise ValueError(
                f"{path} must name its columns {wanted} in the first line, got {got}{_instead([*rows.columns], shapes)}"
            )
        if not 1 <= len(rows) <= MOST_ROWS:
            raise ValueError(f"{path} must have 1 to {MOST_ROWS:,} rows below the names of its columns, got {len(rows):,}")
        return cls(path, rows, 1 if path.suffix.lower() == ".parquet" else 2)

    def refuse(self, bad: NDArray[np.bool_], column: str, must: str) -> None:
        """Raise ValueError for the first row that is `bad`."""
        if np.any(bad):
            row = int(np.argmax(bad))
            got = self.rows[column].iloc[row]
            told = "nothing" if got == "" else repr(got if len(got) <= 40 else f"{got[:39]}…")
            raise ValueError(f"{self.path}, row {row + self.first}: {column} must {must}, got {told}")

    def texts(self, column: str) -> list[str]:
        found = [as_text(text) for text in self.rows[column]]
        self.refuse(np.array([not text for text in found]), column, "not be empty")
        broken = [not text.isprintable() and bool(_BREAKS & set(map(unicodedata.category, text))) for text in found]
        long = [len(text) > MOST_LETTERS for text in found]
        self.refuse(np.array(broken) | np.array(long), column, f"be one line of at most {MOST_LETTERS} characters")
        return found

    def numbers(self, column: str, low: float, high: float, whole: bool = False) -> NDArray[np.float64]:
        kind = "a whole number" if whole else "a number"
        must = f"be {kind} from {low:,.15g} to {high:,.15g}"
        told = self.rows[column].str.strip().str.lower().replace({"true": "1", "false": "0"})
        plain = told.str.fullmatch(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?").to_numpy(dtype=bool)
        self.refuse(~plain, column, must)
        found = told.to_numpy(dtype=float)
        bad = ~((found >= low) & (found <= high)) | (found != np.floor(found) if whole else False)
        self.refuse(bad, column, must)
        return np.asarray(found)

    def once(self, column: str, keys: list[Any], where: str = "") -> None:
        """Raise ValueError for the first row that says again what stands in a row before."""
        seen = pd.Series(keys).duplicated().to_numpy()
        self.refuse(seen, column, " ".join(filter(None, ("stand", "once in the rows", where))))


def _loaded(path: Path, wanted: str) -> pd.DataFrame:
    """Every cell as text; what is missing is empty."""
    if not path.is_file():
        raise ValueError(f"must be {wanted}; {path} {'is no file' if path.exists() else 'does not exist'}")
    try:
        if path.suffix.lower() == ".parquet":
            rows = pd.read_parquet(path)
        else:
            how: dict[str, Any] = {"encoding": "utf-8-sig", "skip_blank_lines": False, "skipinitialspace": True}
            rows = pd.read_csv(path, dtype=str, keep_default_na=False, header=None, **how)
            rows = rows.iloc[1:].set_axis(rows.iloc[0], axis=1)  # names as a row: one with more values is named
        rows = rows.map(_as_cell).reset_index(drop=True)
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path} is empty; the first line must name the columns") from None
    except pd.errors.ParserError as error:
        said = re.search(r"line (\d+), saw (\d+)|EOF inside string starting at row (\d+)", str(error))
        where = f", row {said[1] or int(said[3]) + 1}" if said else ""
        raise ValueError(f"{path}{where} must have a value for each column; quote a text with a comma") from None
    except (UnicodeError, OSError, ValueError, *_COMPRESSED) as error:
        kind = "Parquet" if path.suffix.lower() == ".parquet" else "CSV text in UTF-8"
        raise ValueError(f"{path} is not {kind} ({' '.join(str(error).split())[:80]}); save it as such") from None
    rows.columns = [str(name).strip().lower() for name in rows.columns]
    return rows


def _as_cell(value: Any) -> str:
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, pd.Timestamp) and value == value.normalize():
        return value.date().isoformat()
    whole = isinstance(value, float) and abs(value) < 1e15 and value == int(value)
    return str(int(value) if whole else value)
