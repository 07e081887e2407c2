"""The joint fit: the frequencies of all words asked for at once, from all cells that they are hashed to.

**Computes** the least-squares fit f of the keys' frequencies to their cells: without noise the mean of a key's rows is G f
with G[u, v] = mean over rows of 1{h(u) = h(v)}, so the fit solves G f = means.  All words lift a cell by their share of it:
both sides are centred by what a uniform hash function gives, 1/width.

**Error.** The variance of a cell's noise, over the rows, times the diagonal of G's inverse, 1 / (1 - a) with a the part of a
key's cells that the others can fit.  Where keys are few for the cells, that is to first order what they have of it one by
one, the sum of G[u, v]^2; where they are many, the inverse is computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

_TOLERANCE = 1e-9  # of the solution; and keys that no cell tells apart get a standard error of 1/sqrt of it
_AT_ONCE = 512  # columns of G
_SPARSE = 1 / 32  # keys a cell and row, of 8 at most, up to which first order is within a few per cent


@dataclass(frozen=True, eq=False)
class JointFit:
    """`design` (cells hashed to, keys) is 1 where a key has a cell; `used` names these cells."""

    design: sparse.csc_array
    used: NDArray[np.int64]  # row * width + cell
    rows: int
    width: int

    @classmethod
    def of(cls, cells: NDArray[np.int64], width: int) -> JointFit:
        """From the cells (rows, keys), each below `width`."""
        rows, n_keys = cells.shape
        used, number = np.unique(cells + np.arange(rows)[:, None] * width, return_inverse=True)
        parts = np.ones(cells.size), number.reshape(cells.shape).T.ravel(), rows * np.arange(n_keys + 1)
        return cls(sparse.csc_array(parts, shape=(len(used), n_keys)), used, rows, width)

    @property
    def _shared(self) -> float:
        """What a uniform hash function gives each cell of a word, and what estimates are centred by."""
        return 1 / self.width

    def solve(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """f (keys,), from the centred means of the keys' rows (keys,).  Keys that collide in every row share their sum.
        Raises ValueError for more keys than cells."""
        if (n_keys := len(means)) > self.rows * self.width:
            raise ValueError(
                f"the joint estimate of {n_keys} keys does not exist with {self.rows} rows of {self.width} cells: "
                "ask for fewer keys, or widen the sketch"
            )
        matrix = sparse.linalg.LinearOperator((n_keys, n_keys), matvec=self.means_of, dtype=float)
        solution, failed = sparse.linalg.cg(matrix, means, x0=means, rtol=_TOLERANCE)
        if failed:  # pragma: no cover - the system is consistent by construction
            raise RuntimeError(f"the joint estimate of {len(means)} keys did not converge in {failed} iterations")
        return np.asarray(solution)

    def means_of(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
        """The means of the keys' rows, (keys,), that keys of these frequencies have without noise."""
        means = self.design.T @ (self.design @ frequencies) / self.rows  # a fit takes a few: G itself would be dearer
        return np.asarray((means - self._shared * frequencies.sum()) / (1 - self._shared))

    def cells_of(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
        """What keys of these frequencies add to each cell, (rows, width)."""
        cells = np.zeros((self.rows, self.width))
        cells.ravel()[self.used] = self.design @ frequencies
        return np.asarray((cells - self._shared * frequencies.sum()) / (1 - self._shared))

    def spread(self) -> NDArray[np.float64]:
        """The diagonal of the inverse, (keys,): 1 for a key that is alone in its cells."""
        n_keys, share = self.design.shape[1], self._shared
        if n_keys > _SPARSE * min(self.rows, 8) * self.rows * self.width:
            return self._exact_spread()
        fitted = np.empty(n_keys)
        for first in range(0, n_keys, _AT_ONCE):
            own = slice(first, first + _AT_ONCE)
            gram = self.design.T @ self.design[:, own] / self.rows
            squares, sums = gram.power(2).sum(axis=0) - 1, gram.sum(axis=0) - 1
            fitted[own] = (squares - 2 * share * sums + (n_keys - 1) * share**2) / (1 - share) ** 2
        return np.asarray(1 / np.maximum(1 - fitted, _TOLERANCE))

    def _exact_spread(self) -> NDArray[np.float64]:
        n_keys = self.design.shape[1]
        gram = self.design.T @ self.design / self.rows + _TOLERANCE * sparse.eye_array(n_keys)
        factor = linalg.cho_factor(gram.toarray(), overwrite_a=True)  # of a sparse one hardly anything would be 0 either
        sums = linalg.cho_solve(factor, np.ones(n_keys))
        spread = linalg.lapack.dpotri(factor[0])[0].diagonal().copy()
        spread += np.square(sums) / max(self.width - sums.sum(), _TOLERANCE)  # less a constant: Sherman and Morrison
        return np.asarray(spread * (1 - self._shared))
