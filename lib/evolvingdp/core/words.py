"""Words as integers, so that hashing is vectorised: a = 1, ..., z = 26 in base 27, most significant letter first."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

LETTERS = "abcdefghijklmnopqrstuvwxyz"
MAX_LETTERS = 13  # 27^13 < 2^64
_DIGIT = {letter: digit for digit, letter in enumerate(LETTERS, start=1)}


def encode(words: Iterable[str]) -> NDArray[np.uint64]:
    """Keys (n,) of `words`, injective over words of 1 to 13 letters a-z.

    Raises ValueError that names the first word that is empty, too long or outside the alphabet.
    """
    return np.array([_key(word) for word in words], dtype=np.uint64)


def decode(keys: Iterable[int] | NDArray[np.uint64]) -> list[str]:
    """The words of `keys`; inverse of `encode`.  Raises ValueError for a key that is no word's."""
    return [_word(int(key)) for key in keys]


def _key(word: str) -> int:
    if not 1 <= len(word) <= MAX_LETTERS:
        raise ValueError(f"words must have 1 to {MAX_LETTERS} letters, got {word!r} with {len(word)}")
    key = 0
    for letter in word:
        digit = _DIGIT.get(letter)
        if digit is None:
            raise ValueError(f"words must be written in a-z, got {word!r} with {letter!r}")
        key = 27 * key + digit
    return key


def _word(key: int) -> str:
    letters = []
    rest = key
    while rest:
        rest, digit = divmod(rest, 27)
        if digit == 0:
            raise ValueError(f"keys must be made by encode, got {key}")
        letters.append(LETTERS[digit - 1])
    if not 1 <= len(letters) <= MAX_LETTERS:
        raise ValueError(f"keys must be made by encode, got {key}")
    return "".join(reversed(letters))
