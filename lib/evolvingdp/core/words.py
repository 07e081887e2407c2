"""Words as integers, so that hashing is vectorised: a = 1, ..., z = 26 in base 27, most significant letter first."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

LETTERS = "abcdefghijklmnopqrstuvwxyz"
MAX_LETTERS = 13  # 27^13 < 2^64


def encode(words: Iterable[str]) -> NDArray[np.uint64]:
    """Keys (n,) of `words`, injective over words of 1 to 13 letters a-z.

    Raises ValueError that names the first word that is empty, too long or outside the alphabet, TypeError for what is no
    text.
    """
    keys = np.zeros(1, dtype=np.uint64)
    for digit in digits(words, 1, MAX_LETTERS).T:
        keys = np.where(digit > 0, np.uint64(27) * keys + digit, keys)
    return keys


def decode(keys: Iterable[int] | NDArray[np.uint64]) -> list[str]:
    """The words of `keys`; inverse of `encode`.  Raises ValueError for a key that is no word's."""
    return [_word(int(key)) for key in keys]


def index(words: Iterable[str], length: int) -> NDArray[np.uint64]:
    """The number of each word among the 26^length words of exactly `length` letters, (n,).

    The densest integers that such words have: six letters take 29 bits.  Raises ValueError that names the first word
    that has another length or another letter, TypeError for what is no text.
    """
    numbers = np.zeros(1, dtype=np.uint64)
    for digit in digits(words, length, length).T:
        numbers = np.uint64(26) * numbers + digit - np.uint64(1)
    return numbers


def texts(words: Iterable[str]) -> list[str]:
    """`words`, each a text: str(nan) would be a word.  Raises TypeError with the first that is none."""
    if isinstance(words, str):
        raise TypeError(f"words must be a list of words, got the text {words!r}")
    words = list(words)
    for position, word in enumerate(words):
        if not isinstance(word, str):
            raise TypeError(f"words must be text, got {word!r} at position {position}")
    return words


def digits(words: Iterable[str], least: int, most: int) -> NDArray[np.uint64]:
    """The letters of words of `least` to `most` letters, (n, most): 1 to 26, and 0 behind the end.

    Raises ValueError that names the first word that has another length or another letter, TypeError for what is no text.
    """
    words = texts(words)
    lengths = np.array([len(word) for word in words], dtype=np.int64)
    codes = np.array(words, dtype=f"U{most}").view(np.uint32).reshape(len(words), most)
    behind = np.arange(most) >= lengths[:, None]
    possible = (lengths >= least) & (lengths <= most) & (behind | (codes - np.uint32(ord("a")) < len(LETTERS))).all(axis=1)
    if not possible.all():
        position = int(possible.argmin())
        raise ValueError(f"{_wrong(str(words[position]), least, most)}, at position {position}")
    return np.where(behind, 0, codes - np.uint32(ord("a") - 1)).astype(np.uint64)


def from_index(numbers: NDArray[np.uint64], length: int) -> list[str]:
    """The words with these numbers; inverse of `index`.  Raises ValueError for a number of 26^length or more."""
    words = []
    for number in map(int, numbers):
        if number >= 26**length:
            raise ValueError(f"numbers must be below 26^{length}, got {number}")
        words.append("".join(LETTERS[number // 26**place % 26] for place in reversed(range(length))))
    return words


def _wrong(word: str, least: int, most: int) -> str:
    if not least <= len(word) <= most:
        wanted = f"exactly {most}" if least == most else f"{least} to {most}"
        return f"words must have {wanted} letters, got {word!r} with {len(word)}"
    letter = next(letter for letter in word if letter not in LETTERS)
    return f"words must be written in a-z, got {word!r} with {letter!r}"


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
