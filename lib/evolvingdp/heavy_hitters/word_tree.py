"""The prefix tree that searches descend: words in digits of a public alphabet, any number of digits a level.

A node is its digits, one uint8 each; a leaf has all of them.  Words of a-z have a digit a letter, 1 to 26, or five bits;
words of any script have the bytes of their UTF-8.  A letter of 0 ends a word that is shorter than the tree is deep.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks, words
from evolvingdp.core.hashing import scramble

Nodes = NDArray[np.uint8]  # (nodes, digits)
_UNITS = {"letters": (27, 1, 26), "bits": (2, 5, 26), "bytes": (256, 1, 255)}  # digits to choose from, of a letter; letters
_LONGEST = 64
_AT_ONCE = 1 << 20  # candidates


class TooManyCandidatesError(ValueError):
    """The search would ask for more candidates than allowed; the message says what to change."""


@dataclass(frozen=True)
class WordTree:
    """Words of at most `length` letters, of `unit` "bytes" bytes (exactly `length` unless `shorter`), `steps[l]` digits at
    level l."""

    steps: tuple[int, ...] = (2, 2, 2)  # digits that each level adds
    length: int = 6  # letters
    unit: str = "letters"  # or "bits" or "bytes"
    shorter: bool = False  # words may have fewer letters

    def __post_init__(self) -> None:
        checks.one_of(tuple(_UNITS), unit=self.unit)
        checks.integer_at_least(1, length=self.length, **{f"steps[{i}]": step for i, step in enumerate(self.steps)})
        if self.length > _LONGEST:
            raise ValueError(f"length must be at most {_LONGEST}, got {self.length}")
        if sum(self.steps) != self.length * self._places:
            raise ValueError(
                f"steps must sum to {self.length * self._places} {self.unit} for words of {self.length} letters, "
                f"got {self.steps} with sum {sum(self.steps)}"
            )

    @property
    def base(self) -> int:
        """How many digits there are to choose from."""
        return _UNITS[self.unit][0]

    @property
    def _places(self) -> int:
        """Digits of a letter."""
        return _UNITS[self.unit][1]

    @property
    def depth(self) -> int:
        """Levels."""
        return len(self.steps)

    @property
    def root(self) -> Nodes:
        """The one node above the first level."""
        return np.zeros((1, 0), dtype=np.uint8)

    def fan(self, level: int) -> int:
        """How many children a node above `level` has, at most where a word may end or a letter be cut above them."""
        if self._whole(sum(self.steps[:level])) and self._whole(self.steps[level]):
            return int(_UNITS[self.unit][2] ** (self.steps[level] // self._places))
        return int(self.base ** self.steps[level])

    def encode(self, texts: Iterable[str]) -> Nodes:
        """The leaves of `texts`, (n, digits).  Raises ValueError that names the first text that the tree has no leaf for,
        TypeError for what is no text.  In bytes, texts are brought to Unicode's form NFC."""
        if self.unit != "bytes":
            letters = words.digits(texts, 1 if self.shorter else self.length, self.length)
            digits = letters[:, :, None] >> self._shifts & np.uint64(1) if self._places > 1 else letters
            return digits.astype(np.uint8).reshape(-1, sum(self.steps))
        found = []
        for position, text in enumerate(words.texts(texts)):
            try:
                code = unicodedata.normalize("NFC", text).encode()
            except UnicodeEncodeError:
                code = b"\0"
            if not (1 if self.shorter else self.length) <= len(code) <= self.length or 0 in code:
                wanted = f"{'1 to ' if self.shorter else ''}{self.length} bytes of UTF-8, none of them 0"
                raise ValueError(f"words must have {wanted}, got {text!r} at position {position}")
            found.append(code.ljust(self.length, b"\0"))
        return np.frombuffer(b"".join(found), dtype=np.uint8).reshape(-1, self.length)

    def decode(self, leaves: Nodes) -> list[str]:
        """The words at `leaves`, or the prefixes at other nodes; bytes that no text has, as noise may list, are shown as the
        replacement character.  Raises ValueError for what no letter has."""
        letters = self._letters(leaves)
        if self.unit != "bytes":
            if (foreign := (letters > _UNITS[self.unit][2]).any(axis=1)).any():
                position = int(foreign.argmax())
                raise ValueError(f"leaves must be made by encode, got {leaves[position].tolist()} at position {position}")
            letters = np.where(letters > 0, letters + (ord("a") - 1), 0).astype(np.uint8)
        return [letter.tobytes().replace(b"\0", b"").decode(errors="replace") for letter in letters]

    def checked(self, leaves: Nodes) -> Nodes:
        """`leaves`; raises with the first that is no word's."""
        leaves = np.asarray(leaves)
        if leaves.ndim != 2 or leaves.shape[1] != sum(self.steps) or leaves.dtype != np.uint8:
            raise TypeError(
                f"leaves must be made by encode, (n, {sum(self.steps)}) uint8, got {leaves.dtype} {leaves.shape}"
            )
        if not (possible := self._possible(leaves)).all():
            position = int(possible.argmin())
            raise ValueError(f"leaves must be made by encode, got {leaves[position].tolist()} at position {position}")
        return leaves

    def keys(self, nodes: Nodes) -> NDArray[np.uint64]:
        """What oracles know nodes by, (nodes,): the number that the digits write, or where that may not fit 64 bits of their
        hash, which two of a million nodes share once in 37 million cases, unless somebody looked for two that do."""
        found = np.zeros(len(nodes), dtype=np.uint64)
        fits = self.base ** sum(self.steps) < 2**64
        for digit in nodes.T:
            found = found * np.uint64(self.base) + digit if fits else scramble(found + digit + np.uint64(1))
        return found

    def prefixes(self, leaves: Nodes, level: int) -> NDArray[np.uint64]:
        """The keys of the nodes of `leaves` at `level` (0 is the first below the root)."""
        return self.keys(leaves[:, : sum(self.steps[: level + 1])])

    def children(self, parents: Nodes, level: int) -> Nodes:
        """The nodes of `level` below the nodes `parents` of the level above, those that no word can have left out."""
        below = _below(self.base, self.steps[level])
        apart = self._whole(parents.shape[1])
        if apart:
            below = below[self._possible(below)]
        nodes = np.hstack([np.repeat(parents, len(below), axis=0), np.tile(below, (len(parents), 1))])
        return nodes if apart else nodes[self._possible(nodes)]

    def below(self, parents: Nodes, level: int) -> Iterator[Nodes]:
        """`children`, about a million at a time; no parents are one empty block."""
        size = max(1, _AT_ONCE // self.fan(level))
        for first in range(0, max(len(parents), 1), size):
            yield self.children(parents[first : first + size], level)

    def _whole(self, digits: int) -> bool:
        """So many digits cut no letter, and none may end a word."""
        return not self.shorter and digits % self._places == 0

    @property
    def _shifts(self) -> NDArray[np.uint64]:
        return np.arange(self._places, dtype=np.uint64)[::-1]

    def _letters(self, nodes: Nodes) -> Nodes:
        """Those of nodes that are whole, (nodes, letters)."""
        if self._places == 1:
            return nodes
        letters = nodes.shape[1] // self._places
        whole = nodes[:, : letters * self._places].reshape(len(nodes), letters, self._places)
        return np.asarray((whole << self._shifts.astype(np.uint8)).sum(axis=2, dtype=np.uint8))

    def _possible(self, nodes: Nodes) -> NDArray[np.bool_]:
        """Whole letters are letters, ends only follow ends, and the first letter is no end."""
        letters = self._letters(nodes)
        some, behind = letters > 0, letters <= _UNITS[self.unit][2]
        behind[:, 1:] &= some[:, :-1] | ~some[:, 1:]
        return np.asarray(behind.all(axis=1) & (some[:, :1] if self.shorter else some).all(axis=1))


@lru_cache(maxsize=8)
def _below(base: int, step: int) -> Nodes:
    """All that so many digits may be, in ascending order."""
    return np.asarray(np.indices((base,) * step, dtype=np.uint8).reshape(step, -1).T)
