"""Reed-Muller codes: a codeword is the truth table of a Boolean polynomial, decoded from how certain each bit is.

**Source.** Reed (1954); the decoder is Dumer, Recursive decoding and its performance for low-rate Reed-Muller
codes (2004): a codeword is (u, u + v), u one of the same degree and v of one less, each in half the variables' table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks, hadamard


@dataclass(frozen=True)
class ReedMuller:
    """Polynomials of `degree` or less in so many `variables`; of degree `variables` it is no code at all."""

    variables: int = 7
    degree: int = 2

    def __post_init__(self) -> None:
        checks.integer_at_least(1, variables=self.variables, degree=self.degree)
        if self.degree > self.variables or self.message_bits > 64:
            raise ValueError(f"degree must be at most variables, with 64 message bits or fewer, got {self}")

    @classmethod
    def least(cls, message_bits: int, corrects: bool = True) -> ReedMuller:
        """The shortest of degree 2 that carries `message_bits`, or where it need not correct, of any degree."""
        checks.integer_at_least(1, message_bits=message_bits)
        if not corrects:
            variables = max(1, (message_bits - 1).bit_length())
            return cls(variables, variables)
        return next(code for code in (cls(variables) for variables in range(2, 11)) if code.message_bits >= message_bits)

    @property
    def length(self) -> int:
        """Bits of a codeword."""
        return int(2**self.variables)

    @property
    def message_bits(self) -> int:
        """How many coefficients a polynomial has."""
        return sum(math.comb(self.variables, order) for order in range(self.degree + 1))

    @property
    def correctable(self) -> int:
        """How many wrong bits are always corrected; where they are random, many more are, nearly always."""
        return int(2 ** (self.variables - self.degree) - 1) // 2

    @cached_property
    def _monomials(self) -> NDArray[np.int64]:
        """The variables of each coefficient, as bits of a number, in ascending order."""
        sets = np.arange(self.length)
        return sets[np.bitwise_count(sets) <= self.degree]

    @cached_property
    def _masks(self) -> NDArray[np.uint64]:
        """Bit l of a codeword is the parity of message & masks[l]: of the monomials that are 1 at l."""
        at_one = (self._monomials & ~np.arange(self.length)[:, None]) == 0
        powers = np.uint64(1) << np.arange(self.message_bits, dtype=np.uint64)
        return np.asarray((at_one * powers).sum(axis=1, dtype=np.uint64))

    def bits(self, messages: NDArray[np.uint64], positions: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Bits `positions` of the codewords of `messages`, shapes broadcast: no codeword is formed."""
        return np.asarray(np.bitwise_count(messages & self._masks[positions]) & np.uint8(1))

    def encode(self, messages: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """(n,) messages -> (n, length) bits."""
        return self.bits(messages[:, None], np.arange(self.length)[None, :])

    def decode(self, certain: NDArray[np.number]) -> NDArray[np.uint64]:
        """How much each bit (n, length) seems to be a 0 and not a 1 -> the messages (n,) of codewords that fit well."""
        table = _nearest(np.asarray(certain, dtype=float), self.degree) < 0
        for variable in range(self.variables):  # coefficients are sums of values over subsets, modulo 2
            halves = table.reshape(len(table), -1, 2, 2**variable)
            halves[:, :, 1] ^= halves[:, :, 0]
        powers = np.uint64(1) << np.arange(self.message_bits, dtype=np.uint64)
        return np.asarray((table[:, self._monomials] * powers).sum(axis=1, dtype=np.uint64))


def _nearest(certain: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """The signs (n, length) of codewords that fit `certain`: exactly the best of degree 1 and of all degrees."""
    length = certain.shape[1]
    if 2**degree >= length:
        return np.where(certain >= 0, 1.0, -1.0)
    if degree == 1:
        fits = hadamard.transform(certain)
        best = np.abs(fits).argmax(axis=1)[:, None]
        return np.where(np.take_along_axis(fits, best, 1) >= 0, 1.0, -1.0) * hadamard.signs(best, np.arange(length))
    left, right = certain[:, : length // 2], certain[:, length // 2 :]
    v = _nearest(np.sign(left) * np.sign(right) * np.minimum(np.abs(left), np.abs(right)), degree - 1)
    u = _nearest(left + v * right, degree)
    return np.hstack([u, u * v])
