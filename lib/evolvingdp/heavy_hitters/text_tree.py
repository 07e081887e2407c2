"""The prefix tree of texts in any script: bytes of UTF-8 are its digits, and a prefix's key is a hash of its bytes."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.core.hashing import scramble

_NEXT = np.array([0, *range(1, 0x80), *range(0xC2, 0xF5)], dtype=np.uint8)  # the end, one-byte characters, first bytes
_INSIDE = np.arange(0x80, 0xC0, dtype=np.uint8)  # bytes after the first of a character
_LONGEST = 64


@dataclass(frozen=True)
class TextTree:
    """Texts of 1 to `longest` bytes, one a level; a node is its bytes, (nodes, bytes), 0 behind the end."""

    longest: int = 16

    def __post_init__(self) -> None:
        checks.integer_at_least(1, longest=self.longest)
        if self.longest > _LONGEST:
            raise ValueError(f"longest must be at most {_LONGEST}, got {self.longest}")

    @property
    def steps(self) -> tuple[int, ...]:
        """Bytes that each level adds."""
        return (1,) * self.depth

    @property
    def depth(self) -> int:
        """Levels."""
        return self.longest

    @property
    def root(self) -> NDArray[np.uint8]:
        """The one node above the first level."""
        return np.zeros((1, 0), dtype=np.uint8)

    def fan(self, level: int) -> int:
        """How many children a node has at most."""
        return len(_NEXT)

    def encode(self, texts: Iterable[str]) -> NDArray[np.uint8]:
        """The leaves of `texts`, (n, longest), in Unicode's form NFC.  Raises ValueError, TypeError with the first that has
        none."""
        if isinstance(texts, str):
            raise TypeError(f"texts must be a list of texts, got the text {texts!r}")
        found = []
        for position, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"texts must be text, got {text!r} at position {position}")
            try:
                letters = unicodedata.normalize("NFC", text).encode()
            except UnicodeEncodeError:
                letters = b"\0"
            if not 1 <= len(letters) <= self.longest or 0 in letters:
                wanted = f"1 to {self.longest} bytes of UTF-8, none of them 0"
                raise ValueError(f"texts must have {wanted}, got {text!r} at position {position}")
            found.append(letters.ljust(self.longest, b"\0"))
        return np.frombuffer(b"".join(found), dtype=np.uint8).reshape(-1, self.longest)

    def decode(self, leaves: NDArray[np.uint8]) -> list[str]:
        """The texts at `leaves`; bytes that no text has, as noise may list, are shown as the replacement character."""
        return [leaf.tobytes().rstrip(b"\0").decode(errors="replace") for leaf in leaves]

    def checked(self, leaves: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """`leaves`; raises ValueError for an array of another shape or type."""
        if leaves.ndim != 2 or leaves.shape[1] != self.longest or leaves.dtype != np.uint8:
            raise ValueError(f"leaves must be made by encode, (n, {self.longest}) uint8, got {leaves.dtype} {leaves.shape}")
        return leaves

    def prefixes(self, leaves: NDArray[np.uint8], level: int) -> NDArray[np.uint64]:
        """The keys of the prefixes of `leaves` at `level`."""
        return self.keys(leaves[:, : level + 1])

    def keys(self, nodes: NDArray[np.uint8]) -> NDArray[np.uint64]:
        """What oracles know nodes by, (nodes,): 64 bits that two of a million nodes share once in 37 million cases."""
        found = np.zeros(len(nodes), dtype=np.uint64)
        for digit in nodes.T:
            found = scramble(found + digit + np.uint64(1))
        return found

    def children(self, nodes: NDArray[np.uint8], level: int) -> NDArray[np.uint8]:
        """The nodes of `level` below `nodes` of the level above, as far as UTF-8 has them."""
        left, ended = _left(nodes), (nodes[:, -1:] == 0).any(axis=1)
        parts = [
            (nodes[ended], _NEXT[:1]),
            (nodes[~ended & (left == 0)], _NEXT if nodes.shape[1] else _NEXT[1:]),
            (nodes[left > 0], _INSIDE),
        ]
        nodes = np.concatenate(
            [np.hstack([np.repeat(one, len(more), axis=0), np.tile(more, len(one))[:, None]]) for one, more in parts]
        )
        return nodes[_left(nodes) == 0] if level == self.depth - 1 else nodes


def _left(nodes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How many bytes the last character of each node lacks, (nodes,)."""
    left = np.zeros(len(nodes), dtype=np.int64)
    for byte in nodes.T[-4:]:
        left = np.where(byte >= 0xC2, 1 + (byte >= 0xE0) + (byte >= 0xF0), np.maximum(left - 1, 0))
    return left
