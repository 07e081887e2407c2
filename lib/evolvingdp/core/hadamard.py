"""The fast Walsh-Hadamard transform.

W[r, c] = (-1)^popcount(r & c), the sign matrix sqrt(m) H_m of Section 2.3 of Bassily et al. (2020); W W = m I.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks

_FACTOR = 16
_AT_ONCE = 1 << 16  # numbers: arrays that stay in the cache


def signs(rows: NDArray[np.integer], columns: NDArray[np.integer]) -> NDArray[np.int8]:
    """W[rows, columns], entrywise: int8 of +-1, shapes broadcast.  No matrix is formed."""
    parity = np.bitwise_count(rows & columns) & np.uint8(1)
    result: NDArray[np.int8] = 1 - 2 * parity.view(np.int8)
    return result


def transform(values: NDArray[np.number], kind: type[np.floating] = np.float64) -> NDArray[Any]:
    """values @ W along the last axis, whose length m is a power of two: (..., m) of `kind`.

    W is a Kronecker product of small W's, so up to four bits of the index are transformed at once by a dense product of at
    most 16 x 16: faster than the textbook butterfly, whose passes over memory cost more than the additions they save.
    Exact for integers while the sums of absolute values stay below 2^53 (2^24 in float32).
    """
    width = values.shape[-1]
    checks.power_of_two(width=width)
    result = np.empty(values.shape, dtype=kind)
    rows, all_rows = values.reshape(-1, width), result.reshape(-1, width)
    at_once = max(1, _AT_ONCE // width)
    for first in range(0, len(rows), at_once):
        part = rows[first : first + at_once].astype(kind)
        behind = 1  # the product of the factors already transformed
        while behind < width:
            factor = min(_FACTOR, width // behind)
            index = np.arange(factor)
            dense = signs(index[:, None], index[None, :]).astype(kind)
            # the first factor in one product, W being symmetric
            part = part.reshape(-1, factor) @ dense if behind == 1 else dense @ part.reshape(-1, factor, behind)
            behind *= factor
        all_rows[first : first + at_once] = part.reshape(-1, width)
    return result
