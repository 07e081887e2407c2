"""Frequent texts that nobody listed beforehand, between processes: what a user sends as bytes, what servers add up and keep.

**Computes** a list of the most frequent texts, of any length up to a stated one and in any script, with estimates and
standard errors, from one report of each user.

**Guarantee.** Pure epsilon-local differential privacy per user, who reports once; neighbouring inputs are any two texts.
What a report says in clear (its level and its hash function) is drawn without looking at the text.

**Error.** A text that `found_from` users hold is listed about every other time, one that a fifth more hold nearly always.
Each level of the tree has an equal share of the users, so that this grows with the root of how long a text may be.

**Source.** TreeHist of Bassily et al. (2020) with the reports of `sketches.projective` and this chapter's joint fit.
"""

from __future__ import annotations

import hashlib
import io
import math
import struct
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.core import checks
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.listing import Reports
from evolvingdp.heavy_hitters.sketches.projective import ProjectiveOracle
from evolvingdp.heavy_hitters.text_tree import TextTree
from evolvingdp.heavy_hitters.tree_hist import Protocol, TreeHist

_FORM = struct.Struct("<8sBHI")  # of a report: whose, level, row, point
_ERRORS = 5.5  # standard errors of a level: few texts are lost at any, and few of thousands that nobody holds pass


@checks.plain
@dataclass(frozen=True)
class TextSearch:
    """What users and servers agree on before anybody reports; `seed` draws the public hash functions."""

    epsilon: float  # of a user, who reports once
    longest: int = 16  # bytes of a text in UTF-8
    seed: int = 0
    rows: int = 16  # hash functions of a level
    cells: int = 1 << 12  # of a row, at least

    def __post_init__(self) -> None:
        checks.integer_at_least(2, longest=self.longest)
        checks.integer_at_least(0, seed=self.seed)
        checks.integer_at_least(1, rows=self.rows)
        if self.rows >= 2**16:
            raise ValueError(f"rows must be below 2^16, which a report has room for, got {self.rows}")
        _ = self._settings

    @property
    def _tree(self) -> TextTree:
        return TextTree(self.longest)

    @cached_property
    def _settings(self) -> TreeHist:
        tree: Any = self._tree
        return TreeHist(tree, self.epsilon, 1.0, self.rows, self.cells, 1 / tree.depth, "projective")

    @cached_property
    def _protocol(self) -> Protocol:
        return self._settings.draw_hashes(stream(self.seed, "hash functions of a search for texts"))

    @cached_property
    def _mark(self) -> bytes:
        prints = [f"texts of {self.longest} bytes", *(oracle.fingerprint for oracle in self._protocol.oracles)]
        return hashlib.sha256("; ".join(prints).encode()).digest()[:8]

    def found_from(self, n_users: int, heaviest: float = 0.0) -> float:
        """How many users an estimate must show for its text to be listed, where `n_users` report and the most frequent text
        has `heaviest` of them: what shares a cell with that errs by how its users fell on levels and rows."""
        checks.integer_at_least(1, n_users=n_users)
        error = max(self._settings.level_error(level, n_users) for level in range(self._settings.tree.depth))
        return _ERRORS * math.hypot(error, math.sqrt(max(0.0, heaviest) * self._settings.tree.depth))

    def report(self, text: str, public: np.random.Generator, private: np.random.Generator) -> bytes:
        """A user's only report, 15 bytes: to be kept and sent again where it was lost, and never to be drawn twice."""
        protocol = self._protocol
        leaf = self._tree.encode([text])
        level = int(public.integers(0, protocol.tree.depth))
        row = public.integers(0, self.rows, size=1)
        oracle = protocol.oracles[level]
        assert isinstance(oracle, ProjectiveOracle)
        (point,) = oracle.report(self._tree.prefixes(leaf, level), row, private)
        return _FORM.pack(self._mark, level, int(row[0]), int(point))

    def empty(self) -> Reports:
        """What a server holds before any report; `+` merges two servers'."""
        return Reports(tuple(oracle.empty() for oracle in self._protocol.oracles))

    def add(self, held: Reports, reports: Iterable[bytes]) -> Reports:
        """`held` and `reports`.  Raises with the first that is none of this search, before any is added."""
        self._check(held)
        told = np.array([self._read(report, position) for position, report in enumerate(reports)], dtype=np.int64).reshape(
            -1, 3
        )
        levels = []
        for level, (oracle, sketch) in enumerate(zip(self._protocol.oracles, held.levels, strict=True)):
            own = told[told[:, 0] == level]
            levels.append(oracle.add(sketch, own[:, 1], own[:, 2]))
        return Reports(tuple(levels))

    def _read(self, report: bytes, position: int) -> tuple[int, int, int]:
        if not isinstance(report, bytes):
            raise TypeError(f"reports must be bytes, got {type(report).__name__} at position {position}")
        if len(report) != _FORM.size:
            raise ValueError(f"reports must have {_FORM.size} bytes, got {len(report)} at position {position}")
        mark, level, row, point = _FORM.unpack(report)
        if mark != self._mark:
            raise ValueError(f"reports must be made for this search, {self}, got another's at position {position}")
        oracles = self._protocol.oracles
        if not (level < len(oracles) and row < self.rows and point < oracles[level].shape[1]):
            raise ValueError(
                f"reports must be what report makes, got level {level}, row {row}, {point} at position {position}"
            )
        return level, row, point

    def _check(self, held: Reports) -> int:
        """How many users `held` is of; raises ValueError for another search's."""
        n_users = sum(sketch.n_reports for sketch in held.levels)
        self._protocol.check(held, n_users)
        return n_users

    def table(self, held: Reports, top: int = 100) -> pd.DataFrame:
        """The `top` most frequent texts: columns word, estimate, standard_error (users), and the ends low and high of a 95 %
        interval; empty where no text stands out."""
        checks.integer_at_least(1, top=top)
        n_users = self._check(held)
        if not n_users:
            raise ValueError("held must be of one report or more, got none")
        settings = replace(self._settings, threshold=self.found_from(n_users))
        words = replace(self._protocol, settings=settings).search(held, n_users).words
        words = words[words.estimate >= self.found_from(n_users, words.estimate.max())].head(top) if len(words) else words
        half = 1.96 * words.standard_error
        return words.assign(low=words.estimate - half, high=words.estimate + half)

    def save(self, held: Reports) -> bytes:
        """`held` as the bytes of an npz file, for a restart or another server."""
        self._check(held)
        file = io.BytesIO()
        sums = {f"level_{level}": sketch.sums for level, sketch in enumerate(held.levels)}
        np.savez_compressed(file, mark=np.frombuffer(self._mark, dtype=np.uint8), **sums)  # type: ignore[arg-type]
        return file.getvalue()

    def load(self, saved: bytes) -> Reports:
        """What `save` made of reports to this search.  Raises ValueError for anything else."""
        oracles, levels = self._protocol.oracles, []
        try:
            with np.load(io.BytesIO(saved), allow_pickle=False) as file:
                mark = file["mark"].tobytes()
                sums = [file[f"level_{level}"] for level in range(len(oracles))]
        except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile) as error:
            raise ValueError(f"saved must be the bytes that save made, got {len(saved)} others") from error
        if mark != self._mark:
            raise ValueError(f"saved must be of this search, {self}, got another's")
        for oracle, counts in zip(oracles, sums, strict=True):
            if counts.shape != oracle.shape or counts.dtype != np.int64 or counts.min() < 0:
                raise ValueError(f"saved must hold counts of shape {oracle.shape}, got {counts.dtype} {counts.shape}")
            levels.append(replace(oracle.empty(), sums=counts, n_reports=int(counts.sum())))
        return Reports(tuple(levels))
