"""Scenes of dated counts, of files that are refused, and of every method on a small stream of dated words."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.scene import Scene, outcome
from evolvingdp.streams import addresses, dated
from evolvingdp.streams.experiments.two_centuries import methods, trusted, words
from evolvingdp.streams.experiments.two_centuries.params import Params

_HEADER = "date,word,count\n"
_READ = (
    _HEADER + "2001,yes,3\n2000,no,4\n2001,no,1\n",
    "count,Word, DATE\n3,a,2020-02\n\n5,b,2020-01\n5,c,2019-12\n",
    _HEADER + "2020-02-29,a,0\n2020-02-28,b,1\n2020-02-29,b,9\n2020-02-29,c,9\n",
    _HEADER + "".join(f"{1900 + at % 2},w{at:04},{1 + at % 7}\n" for at in range(3010)) + "1900,(other),77\n",
)
_REFUSED = (
    "2000,a,1", "2000,a,1\n2001,a,2", "2000,a,1\n2000,a,2", "2000,a,1\n2001-01,b,1", "0,a,1\n1,b,1", "2000,a,1,1",
    "2001-02-29,a,1\n2001-02-28,b,1", "2000,,1\n2001,b,1", "2000,a,-1\n2001,b,1", "2000,a,0\n2001,b,1", "x,a,1",
    "2000-13,a,1", "2000,a," + "9" * 15 + "\n2001,b,1", "2000,a," + "9" * 16 + "\n2001,b,1",
    '2000,"a', "2000,a\n2001,b,1", "",
)  # fmt: skip


def dated_counts(_: np.random.Generator) -> Iterator[Any]:
    few = {("b", 1800): Counter({"the": 30, "oak": 2}), ("a", 1801): Counter({"oak": 17, "ash": 20, "the": 1, "yew": 1})}
    yield addresses.count_table(few), addresses.LEAST, dated.MOST_EPOCHS, dated.MOST_WORDS
    with tempfile.TemporaryDirectory() as folder:
        for place, text in enumerate((*_READ, "date,word\n", "", *(_HEADER + rows for rows in _REFUSED))):
            path = Path(folder, f"{place}.csv")
            path.write_text(text, encoding="utf-8-sig" if place % 2 else "utf-8")
            found = outcome(dated.read_counts, path)
            if isinstance(found, str):
                yield found
                continue
            yield found, found.years[-50:], found.horizon, found.moving(2), found.moving(3, found.moving(1))
            yield found.place(found.words[1]), outcome(found.place, "zebra?")
        Path(folder, "wrong.csv").write_bytes(b"\xff\xfe")
        yield outcome(dated.read_counts, f"{folder}/wrong.csv"), outcome(dated.read_counts, folder)
        yield outcome(dated.read_counts, f"{folder}/none.csv")


def _params(folder: str, **options: Any) -> Params:
    """A stream of eight epochs and five words, two of which rise and fall; one is no plain word."""
    table = Path(folder, "few.csv")
    rows = ((1900 + at, *row) for at in range(8) for row in (
        ("we", 90 if at < 4 else 500), ("oak", 400 if at < 5 else 20), ("the", 900), ("ash-tree", 30 + 9 * at),
        ("(other)", 70),
    ))  # fmt: skip
    table.write_text(_HEADER + "".join(f"{date},{word},{count}\n" for date, word, count in rows))
    return Params(**({"data": str(table), "window": 2, "repetitions": 2, "sample_users": 1000} | options))


def dated_methods(rng: np.random.Generator) -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as folder:
        for options in ({}, {"n_users": 10**5, "epsilon": 0.3, "words_per_user": 9, "delta": 1e-4}):
            params = _params(folder, **options)
            yield params.followed, params.watched, methods.followed(params)
            found, refused, last = methods.shares(params, params.n_users, rng)
            yield found, sorted(refused), last, [methods.clipped(each) for each in found.values()]
            yield [methods.predicted(params, method, params.n_users) for method in methods.GUARANTEES.values()]
            yield from _told(words.word_rows(params, 3))
            yield from _told(trusted.hot_rows(params, 3))
            if not options:
                yield from _told(trusted.mean_rows(params, 3))
                yield from _told(words.search_rows(params, 3))
        yield (
            list(words.search_rows(_params(folder, searched=0), 3)),
            methods.five_deviations(40),
            methods.five_deviations(9, 6.0),
        )
    share = np.array([0.01] * 6 + [0.03] * 6)[:, None]
    for spread in (0.0, 5.3e-6, 5.5e-6):
        for column in (share, share[::-1], share / 10, np.tile(share, 2)):
            yield words.noticed(column, np.full_like(column, spread), 2)


def _told(rows: Iterator[dict[str, Any]]) -> Iterator[Any]:
    """Rows without the reasons of refusals, which are prose."""
    for row in rows:
        yield {name: value for name, value in row.items() if name != "why"}


def scenes() -> dict[str, Scene]:
    return {scene.__name__: scene for scene in (dated_counts, dated_methods)}
