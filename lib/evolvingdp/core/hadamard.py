"""The fast Walsh-Hadamard transform.

W[r, c] = (-1)^popcount(r & c), the sign matrix sqrt(m) H_m of Section 2.3 of Bassily et al. (2020); W W = m I.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks


def signs(rows: NDArray[np.integer], columns: NDArray[np.integer]) -> NDArray[np.int8]:
    """W[rows, columns], entrywise: int8 of +-1, shapes broadcast.  No matrix is formed."""
    parity = np.bitwise_count(rows & columns) & np.uint8(1)
    result: NDArray[np.int8] = 1 - 2 * parity.view(np.int8)
    return result


def transform(values: NDArray[np.number]) -> NDArray[np.float64]:
    """values @ W along the last axis, whose length m is a power of two: float64 (..., m), in m log2(m) additions.

    Exact for integers while the sums of absolute values stay below 2^53.
    """
    width = values.shape[-1]
    checks.power_of_two(width=width)
    result = np.array(values, dtype=np.float64)  # a copy: the caller's array stays as it is
    half = 1
    while half < width:
        pairs = result.reshape(*result.shape[:-1], width // (2 * half), 2, half)
        low, high = pairs[..., 0, :], pairs[..., 1, :]
        low += high
        high *= -2
        high += low  # low + high - 2 high
        half *= 2
    return result
