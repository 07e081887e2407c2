"""The fast Walsh-Hadamard transform.

W[r, c] = (-1)^popcount(r & c), the sign matrix sqrt(m) H_m of Section 2.3 of Bassily et al. (2020); W W = m I.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks

_FACTOR = 64


def signs(rows: NDArray[np.integer], columns: NDArray[np.integer]) -> NDArray[np.int8]:
    """W[rows, columns], entrywise: int8 of +-1, shapes broadcast.  No matrix is formed."""
    parity = np.bitwise_count(rows & columns) & np.uint8(1)
    result: NDArray[np.int8] = 1 - 2 * parity.view(np.int8)
    return result


def transform(values: NDArray[np.number]) -> NDArray[np.float64]:
    """values @ W along the last axis, whose length m is a power of two: float64 (..., m).

    W is a Kronecker product of small W's, so up to six bits of the index are transformed at once by a dense product of at
    most 64 x 64: faster than the textbook butterfly, whose passes over memory cost more than the additions they save.
    Exact for integers while the sums of absolute values stay below 2^53.
    """
    width = values.shape[-1]
    checks.power_of_two(width=width)
    result = np.asarray(values, dtype=np.float64)
    behind = 1  # the product of the factors already transformed
    while behind < width:
        factor = min(_FACTOR, width // behind)
        index = np.arange(factor)
        dense = signs(index[:, None], index[None, :]).astype(np.float64)
        result = (dense @ result.reshape(-1, factor, behind)).reshape(values.shape)
        behind *= factor
    return result if result is not values else result.copy()
