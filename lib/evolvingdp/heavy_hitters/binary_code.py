"""Binary codes for Bitstogram: BCH codes, whose encoder is a parity per bit.

**Source.** Berlekamp's and Massey's decoder, of bounded distance, for all words at once: Lin and Costello, Error control
coding (2004), Chapter 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks

# of the fields of 2^2, ..., 2^16 elements, a primitive polynomial each: bit i is the coefficient of x^i
_PRIMITIVE = (7, 11, 19, 37, 67, 137, 285, 529, 1033, 2053, 4179, 8219, 17475, 32771, 69643)


@dataclass(frozen=True)
class BinaryCode:
    """Words of `message_bits` as codewords of `length` bits; `length == message_bits` is no code at all (SuccinctHist).

    (127, 29) corrects 21 errors, a sixth of the bits; (63, 30) corrects 6.  Raises ValueError where there is no such BCH
    code, and names those that exist for that length.
    """

    length: int = 127
    message_bits: int = 29

    def __post_init__(self) -> None:
        checks.integer_at_least(1, length=self.length, message_bits=self.message_bits)
        if self.message_bits > 63:
            raise ValueError(f"message_bits must be at most 63, got {self.message_bits}")
        if not self.trivial:
            _bch(self.length, self.message_bits)

    @property
    def trivial(self) -> bool:
        """Whether it is no code at all."""
        return self.length == self.message_bits

    @property
    def correctable(self) -> int:
        """How many wrong bits are always corrected."""
        return 0 if self.trivial else _bch(self.length, self.message_bits).correctable

    @cached_property
    def _masks(self) -> NDArray[np.uint64]:
        """Bit l of the codeword is the parity of message & masks[l]; message bits most significant first."""
        message = np.uint64(1) << np.arange(self.message_bits - 1, -1, -1, dtype=np.uint64)
        if self.trivial:
            return message
        remainders = _bch(self.length, self.message_bits).remainders
        parity = [
            sum(int(bit) for bit, rest in zip(message, remainders, strict=True) if rest >> place & 1)
            for place in reversed(range(self.length - self.message_bits))
        ]
        return np.append(message, np.array(parity, dtype=np.uint64))

    def bits(self, messages: NDArray[np.uint64], positions: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Bits `positions` of the codewords of `messages`, shapes broadcast: no codeword is formed."""
        return np.asarray(np.bitwise_count(messages & self._masks[positions]) & np.uint8(1))

    def encode(self, messages: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """(n,) messages -> (n, length) bits."""
        return self.bits(messages[:, None], np.arange(self.length)[None, :])

    def decode(self, bits: NDArray[np.uint8]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """(n, length) received bits -> messages (n,), and whether each was within reach of a codeword."""
        decoded = np.ones(len(bits), dtype=bool)
        if not self.trivial:
            wrong, decoded = _bch(self.length, self.message_bits).wrong_bits(bits)
            bits = bits ^ (wrong & decoded[:, None])
        powers = np.uint64(1) << np.arange(self.message_bits - 1, -1, -1, dtype=np.uint64)
        return (bits[:, : self.message_bits].astype(np.uint64) * powers[None, :]).sum(axis=1, dtype=np.uint64), decoded


@dataclass(frozen=True, eq=False)
class _Bch:
    """The code whose generator has the roots x, ..., x^last, and their doubles, x a primitive element of the field."""

    length: int
    last: int

    @cached_property
    def roots(self) -> set[int]:
        return {
            power * 2**turn % self.length for power in range(1, self.last + 1) for turn in range(self.length.bit_length())
        }

    @cached_property
    def correctable(self) -> int:
        return (next(power for power in range(1, self.length + 1) if power not in self.roots) - 1) // 2

    @cached_property
    def _field(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The powers of the primitive element, three times over and then zeros, and of each element its exponent: that of 0
        is so large that every product with it is 0."""
        powers = [1]
        for _ in range(self.length - 1):
            doubled = 2 * powers[-1]
            powers.append(doubled ^ _PRIMITIVE[self.length.bit_length() - 2] if doubled > self.length else doubled)
        exponent = np.full(self.length + 1, 3 * self.length, dtype=np.int32)
        exponent[powers] = np.arange(self.length)
        return np.append(np.tile(powers, 3), np.zeros(5 * self.length)).astype(np.int32), exponent

    @cached_property
    def remainders(self) -> list[int]:
        """What x^i leaves over after division by the generator, for the places i of the message, highest first."""
        power, exponent = self._field
        generator = np.array([1])
        for root in self.roots:
            shifted = np.append(generator, 0)
            shifted[1:] ^= power[exponent[generator] + root]
            generator = shifted
        divisor, top = int("".join(map(str, generator)), 2), 1 << len(self.roots)
        found, rest = [], top ^ divisor
        for _ in range(self.length - len(self.roots)):
            found.append(rest)
            rest = 2 * rest ^ (divisor if 2 * rest & top else 0)
        return found[::-1]

    def wrong_bits(self, bits: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """Which bits differ from the codeword within reach, (n, length), and whether there is one, (n,)."""
        power, exponent = self._field
        places = np.arange(self.length - 1, -1, -1)  # bit 0 is the coefficient of the highest power
        digits = np.arange(self.length.bit_length(), dtype=np.int32)
        steps = np.arange(1, 2 * self.correctable + 1)
        elements = power[np.multiply.outer(places, steps) % self.length]  # a received 1 adds its own to each syndrome
        parts = (elements[:, :, None] >> digits & 1).astype(np.float32).reshape(self.length, -1)
        parity = (bits.astype(np.float32) @ parts).astype(np.int32) & 1  # below 2^16 ones: float32 counts exactly
        syndromes = (parity.reshape(len(bits), len(steps), len(digits)) << digits).sum(axis=2, dtype=np.int32).T
        locator, n_wrong = self._locator(syndromes)
        few = np.flatnonzero(n_wrong <= self.correctable)
        values = np.zeros((len(few), self.length), dtype=np.int32)
        for degree, coefficient in enumerate(locator[: self.correctable + 1, few]):
            values ^= power.take(exponent[coefficient][:, None] + ((-degree * places) % self.length).astype(np.int32))
        wrong = np.zeros(bits.shape, dtype=bool)
        wrong[few] = values == 0
        return wrong.astype(np.uint8), (n_wrong <= self.correctable) & (wrong.sum(axis=1) == n_wrong)

    def _locator(self, syndromes: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The shortest recursion of syndromes (steps, n): its coefficients, lowest first (steps + 1, n), and its length."""
        power, exponent = self._field
        steps, n_words = syndromes.shape
        locator, before = np.zeros((2, steps + 1, n_words), dtype=np.int32)
        locator[0] = before[0] = 1
        length, last = np.zeros(n_words, dtype=np.int64), np.ones(n_words, dtype=np.int32)
        logarithms = exponent.take(syndromes)
        for step in range(steps):
            known = 1 + length.max(initial=0)  # all other coefficients are still zero
            recent = logarithms[step - np.arange(known)]
            products = power.take(exponent.take(locator[:known]) + recent)
            discrepancy = np.bitwise_xor.reduce(products, axis=0)
            before[1 : step + 2] = before[: step + 1].copy()
            before[0] = 0
            ratio = exponent[discrepancy] + self.length - exponent[last]
            longer = (discrepancy != 0) & (2 * length <= step)
            extended = np.where(longer, step + 1 - length, length)
            low = slice(1 + extended.max(initial=0))
            corrected = locator[low] ^ power.take(exponent.take(before[low]) + ratio)
            before[:, longer], last = locator[:, longer], np.where(longer, discrepancy, last)
            length, locator[low] = extended, corrected
        return locator, length


@lru_cache
def _bch(length: int, message_bits: int) -> _Bch:
    known = _codes(length)
    if message_bits not in known:
        raise ValueError(
            f"message_bits must be that of a BCH code of length {length} ({', '.join(map(str, known))}), got {message_bits}"
        )
    return _Bch(length, known[message_bits])


def check_length(length: int) -> None:
    """ValueError where no BCH code has this `length`."""
    if length & (length + 1) or not 3 <= length < 2**16:
        raise ValueError(f"length must be 2^m - 1 for a BCH code, such as 63, 127 or 255, got {length}")


@lru_cache
def _codes(length: int) -> dict[int, int]:
    """Of the BCH codes of `length` the message bits, largest first, which are what the roots leave, and the last power.

    With a power all its doubles are roots, its cyclotomic coset; a code adds the cosets of 1, 3, 5, ...
    """
    check_length(length)
    roots: set[int] = set()
    known: dict[int, int] = {}
    for last in range(1, length, 2):
        power = last
        while power not in roots:
            roots.add(power)
            power = 2 * power % length
        known.setdefault(length - len(roots), last)
    return known
