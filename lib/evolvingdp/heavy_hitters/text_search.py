"""Frequent texts that nobody listed beforehand: a round in which each user reports once, for `core.exchange`.

**Computes** a list of the most frequent texts, of any length up to a stated one and in any script, with intervals.

**Guarantee.** Pure epsilon-local differential privacy per user, who reports once; neighbouring inputs are any two texts.
What a report says in clear (its level and its hash function) is drawn without looking at the text.

**Error.** A text that `found_from` users hold is listed with 95 %, through all levels of the tree, and .05 texts that nobody
holds are expected.  Each level adds two bytes, and this grows with the root of how long a text may be.  A server asks for
65,536 texts below each that a level keeps, up to 200 by chance and those that are held: 5 to 8 seconds of its processor at
epsilon 3, 50 at epsilon 8 with 300 texts.

**Source.** TreeHist of Bassily et al. (2020) with the reports of `sketches.projective` and this chapter's joint fit.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from evolvingdp.core import checks
from evolvingdp.core.exchange import Round
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.listing import Reports
from evolvingdp.heavy_hitters.planning import reach, with_few
from evolvingdp.heavy_hitters.tree_hist import Protocol, TreeHist
from evolvingdp.heavy_hitters.word_tree import WordTree

if TYPE_CHECKING:  # whose import takes as long as a plan
    import pandas as pd

_FORM = struct.Struct(">BHI")  # of a report: level, row, point
_STEP = 2  # bytes a level: of three, a server would ask for thousands of millions
_LAST = 1.4  # times as many users as another level, as its cut is the highest, by formula
_ANY = 1 << 32  # candidates: how many texts reach the cuts is bounded


@checks.plain
@dataclass(frozen=True)
class Texts(Round):
    """What users and servers agree on before anybody reports: `Client(Texts(...))` sends, `Server(Texts(...))` adds up."""

    form: ClassVar[str] = "points in Singer's order, two bytes a level"
    epsilon: float  # of a user, who reports once
    public: str  # names the collection, and draws its public hash functions
    longest: int = 16  # bytes of a text in UTF-8
    rows: int = 16  # hash functions of a level
    cells: int = 1 << 12  # of a row, at least

    def __post_init__(self) -> None:
        checks.positive(epsilon=self.epsilon)
        object.__setattr__(self, "epsilon", float(self.epsilon))  # 1 and 1.0 are one round
        checks.integer_at_least(2, longest=self.longest, cells=self.cells)
        checks.integer_at_least(1, rows=self.rows)
        if self.rows >= 2**16:
            raise ValueError(f"rows must be below 2^16, which a report has room for, got {self.rows}")
        if not isinstance(self.public, str) or not self.public:
            raise ValueError(f"public must be a string that names the collection, got {self.public!r}")
        _ = self._settings

    @cached_property
    def _settings(self) -> TreeHist:
        steps = (_STEP,) * (self.longest // _STEP) + (1,) * (self.longest % _STEP)
        tree, last = WordTree(steps, self.longest, "bytes", shorter=True), _LAST / max(2, len(steps) - 1 + _LAST)
        return TreeHist(tree, self.epsilon, 1.0, self.rows, self.cells, last, _ANY)

    @cached_property
    def protocol(self) -> Protocol:
        """The search with its hash functions, which `public` draws."""
        return self._settings.draw_hashes(stream(0, "hash functions of a search for texts", self.public))

    @property
    def size(self) -> int:
        return _FORM.size

    @property
    def width(self) -> int:
        return math.prod(self._shape)

    def found_from(self, n_users: int) -> float:
        """How many users hold a text that is listed with 95 %, where `n_users` report, and .05 texts that nobody holds are
        expected on the list."""
        checks.integer_at_least(1, n_users=n_users)
        return reach(self._searched(n_users), n_users)

    def _searched(self, n_users: int) -> TreeHist:
        """The settings with the threshold for so many users."""
        return with_few(self._settings, n_users)

    def encode(self, value: str, rng: np.random.Generator) -> bytes:
        self._settings.tree.encode([value])
        public, private = rng.spawn(2)  # what is published of one says nothing about the other
        level = int(np.searchsorted(np.cumsum(self._settings.shares)[:-1], public.random(), side="right"))
        row = int(public.integers(0, self.rows))
        return _FORM.pack(level, row, self.point(value, level, row, private))

    def point(self, text: str, level: int, row: int, private: np.random.Generator) -> int:
        """What a user of this level and row reports: its secret part."""
        oracle, tree = self.protocol.oracles[level], self._settings.tree
        return int(oracle.report(tree.prefixes(tree.encode([text]), level), np.array([row]), private)[0])

    def add_up(self, payloads: list[bytes]) -> NDArray[np.int64]:
        told, shape = np.array([_FORM.unpack(each) for each in payloads], dtype=np.int64), self._shape
        if (wrong := (told >= shape).any(axis=1)).any():
            place = int(wrong.argmax())
            raise ValueError(
                f"reports must have level, row and point below {', '.join(map(str, shape))}, "
                f"got {told[place].tolist()} in place {place}"
            )
        return np.bincount(np.ravel_multi_index(tuple(told.T), shape), minlength=self.width)

    @property
    def _shape(self) -> tuple[int, ...]:
        return (len(self._settings.shares), *self.protocol.oracles[0].shape)

    def table(self, sums: NDArray[np.int64], n_reports: int, top: int = 100, coverage: float = 0.95) -> pd.DataFrame:
        """Empty where no text stands out; intervals are normal, of each text by itself."""
        levels = sums.reshape(self._shape)
        held = [
            replace(oracle.empty(), sums=own, n_reports=int(own.sum()))
            for oracle, own in zip(self.protocol.oracles, levels, strict=True)
        ]
        search = replace(self.protocol, settings=self._searched(n_reports))
        words = search.search(Reports(tuple(held)), n_reports).words
        share, half = words.estimate / n_reports, ndtri((1 + coverage) / 2) * words.standard_error / n_reports
        return words[["word"]].assign(estimate=share, low=share - half, high=share + half).head(top)
