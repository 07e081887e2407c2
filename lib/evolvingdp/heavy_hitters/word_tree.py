"""The prefix tree that TreeHist descends: words level by level, in letters or in bits, any number a level.

A node is an integer: the digits of its prefix in the tree's base, most significant first.  Letters are digits 1 to 26 in
base 27; digit 0 ends a word that is shorter than the tree is deep.  In bits, each of these digits takes five.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.core.words import LETTERS, digits

_LETTER_BITS = 5
_AT_ONCE = 1 << 16  # leaves: arrays that stay in the cache


class TooManyCandidatesError(ValueError):
    """The search would ask for more candidates than allowed; the message says what to change."""


@dataclass(frozen=True)
class WordTree:
    """Words of at most `length` letters a-z (exactly `length` unless `shorter`), `steps[l]` units at level l."""

    steps: tuple[int, ...] = (2, 2, 2)  # letters or bits that each level adds
    length: int = 6  # letters
    unit: str = "letters"  # or "bits"
    shorter: bool = False  # words may have fewer letters

    def __post_init__(self) -> None:
        checks.one_of(("letters", "bits"), unit=self.unit)
        checks.integer_at_least(1, length=self.length, **{f"steps[{i}]": step for i, step in enumerate(self.steps)})
        if self.length > 12:
            raise ValueError(f"length must be at most 12, so that prefixes fit in 60 bits, got {self.length}")
        if sum(self.steps) != self.length * self._digits_a_letter:
            raise ValueError(
                f"steps must sum to {self.length * self._digits_a_letter} {self.unit} for words of {self.length} letters, "
                f"got {self.steps} with sum {sum(self.steps)}"
            )

    @property
    def _digits_a_letter(self) -> int:
        return _LETTER_BITS if self.unit == "bits" else 1

    @property
    def base(self) -> int:
        return 2 if self.unit == "bits" else 27

    @property
    def depth(self) -> int:
        """Levels."""
        return len(self.steps)

    def encode(self, words: Iterable[str]) -> NDArray[np.uint64]:
        """The leaves of `words`, (n,).  Raises ValueError that names the first word that the tree has no leaf for,
        TypeError for what is no text.
        """
        leaves, radix = np.zeros(1, dtype=np.uint64), np.uint64(self.base**self._digits_a_letter)
        for digit in digits(words, 1 if self.shorter else self.length, self.length).T:  # digit 0 ends a shorter word
            leaves = radix * leaves + digit
        return leaves

    def decode(self, leaves: Iterable[int] | NDArray[np.uint64]) -> list[str]:
        """The words at `leaves`; digit 0 is no letter, wherever it is.  Raises ValueError for what no letter has."""
        nodes = leaves if isinstance(leaves, np.ndarray) else np.array(list(leaves), dtype=np.uint64)
        radix, places = np.uint64(self.base**self._digits_a_letter), np.arange(self.length, dtype=np.uint64)[::-1]
        letters = nodes.astype(np.uint64)[:, None] // radix**places
        letters[:, 1:] %= radix
        if len(nodes) and (largest := letters.max(axis=1)).max() > len(LETTERS):
            position = int((largest > len(LETTERS)).argmax())
            raise ValueError(f"leaves must be made by encode, got {nodes[position]} at position {position}")
        codes = np.where(letters > 0, letters + np.uint64(ord("a") - 1), 0).astype(np.uint32)
        return [str(word).replace("\0", "") for word in codes.view(f"U{self.length}").ravel()]

    def checked(self, leaves: NDArray[np.integer]) -> NDArray[np.uint64]:
        """`leaves` as uint64, (n,).  Raises with the first that is no word's."""
        leaves = np.asarray(leaves)
        if leaves.ndim != 1 or leaves.dtype.kind not in "iu":
            raise TypeError(f"leaves must be a one-dimensional array of integers, got {leaves.dtype} {leaves.shape}")
        nodes = leaves.astype(np.uint64, copy=False)
        for first in range(0, len(nodes), _AT_ONCE):
            some = nodes[first : first + _AT_ONCE]
            possible = (some < np.uint64(self.base ** sum(self.steps))) & self._possible(some, sum(self.steps))
            if not possible.all():
                position = first + int(possible.argmin())
                raise ValueError(f"leaves must be made by encode, got {leaves[position]} at position {position}")
        return nodes

    @property
    def root(self) -> NDArray[np.uint64]:
        """The one node above the first level."""
        return np.zeros(1, dtype=np.uint64)

    def keys(self, nodes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """What oracles know nodes by: themselves."""
        return nodes

    def prefixes(self, leaves: NDArray[np.uint64], level: int) -> NDArray[np.uint64]:
        """The nodes of `leaves` at `level` (0 is the first below the root)."""
        below = sum(self.steps[level + 1 :])
        return leaves // np.uint64(self.base**below)

    def children(self, prefixes: NDArray[np.uint64], level: int) -> NDArray[np.uint64]:
        """The nodes of `level` below the nodes `prefixes` of the level above, those that no word can have left out.

        For level 0 the only prefix is the root, 0.
        """
        step, above = self.steps[level], sum(self.steps[:level])
        below = np.arange(self.fan(level), dtype=np.uint64)
        apart = not self.shorter and above % self._digits_a_letter == 0  # no letter is cut, and none ends the word
        if apart:
            below = below[self._possible(below, step)]
        nodes = (prefixes[:, None] * np.uint64(self.fan(level)) + below[None, :]).ravel()
        return nodes if apart else nodes[self._possible(nodes, above + step)]

    def fan(self, level: int) -> int:
        """How many children a node above `level` has at most."""
        return int(self.base ** self.steps[level])

    def _possible(self, nodes: NDArray[np.uint64], digits: int) -> NDArray[np.bool_]:
        """Of nodes of so many digits: whole letters are letters, ends only follow ends, and the first letter is no end."""
        complete = nodes // np.uint64(self.base ** (digits % self._digits_a_letter))
        possible = np.ones(len(nodes), dtype=bool)
        radix = np.uint64(self.base**self._digits_a_letter)
        after = np.zeros(len(nodes), dtype=np.uint64)  # 0 also behind the last letter: an end may stand there
        for _ in range(digits // self._digits_a_letter):
            letter = complete % radix
            complete //= radix
            possible &= (letter <= len(LETTERS)) & ((letter > 0) | ((after == 0) & self.shorter))
            after = letter
        return possible & ((after > 0) | (digits < self._digits_a_letter))
