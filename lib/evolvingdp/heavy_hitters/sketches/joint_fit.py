"""The joint fit: the frequencies of all words asked for at once, from all cells that they are hashed to.

**Computes** the least-squares fit f of the keys' frequencies to their cells: without noise the mean of a key's rows is G f
with G[u, v] = mean over rows of g(u) g(v) 1{h(u) = h(v)}, so the fit solves G f = means.  Without signs all words lift a
cell by their share of it: both sides are centred by what a uniform hash function gives, 1/width.

**Error.** The variance of a cell's noise, over the rows, times the diagonal of G's inverse (`spread`).  Words that are not
asked for stay in the means.

**Privacy.** Post-processing: it costs nothing.  The paper has no such estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_TOLERANCE = 1e-9  # of the solution; and keys that no cell tells apart get a standard error of 1/sqrt of it
_AT_ONCE = 512  # columns of the inverse
_MANY_ROWS = 64


@dataclass(frozen=True, eq=False)
class JointFit:
    """`design` (rows * width, keys) is the sign of each key in its cell of each row."""

    design: sparse.csc_array
    rows: int
    width: int
    centred: bool

    @classmethod
    def of(cls, cells: NDArray[np.int64], signs: NDArray[np.int8] | None, width: int) -> JointFit:
        """From the cells (rows, keys), each below `width`, and their signs (None: all +1).

        Raises ValueError for more keys than cells.
        """
        rows, n_keys = cells.shape
        if n_keys > rows * width:
            raise ValueError(
                f"the joint estimate of {n_keys} keys does not exist with {rows} rows of {width} cells: "
                "ask for fewer keys, or widen the sketch"
            )
        places = (np.arange(rows)[:, None] * width + cells).ravel()
        columns = np.broadcast_to(np.arange(n_keys), cells.shape).ravel()
        values = np.ones(cells.size) if signs is None else signs.ravel().astype(float)
        design = sparse.csc_array((values, (places, columns)), shape=(rows * width, n_keys))
        return cls(design, rows, width, signs is None)

    @property
    def _gram(self) -> sparse.csc_array:
        return sparse.csc_array((self.design.T @ self.design) / self.rows)

    @property
    def _shared(self) -> float:
        """What a uniform hash function gives each cell of a word, and what estimates without signs are centred by."""
        return 1 / self.width if self.centred else 0.0

    def solve(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """f (keys,), from the means of the keys' rows (keys,), centred ones where there are no signs.

        Keys that collide in every row cannot be told apart: they share their sum.
        """
        shared, n_keys = self._shared, len(means)
        # with many rows most keys meet in some of them: G is dense then, and dearer than what it is made of
        parts = [self._gram] if self.rows < _MANY_ROWS else [self.design / self.rows, self.design.T]

        def seen(f: NDArray[np.float64]) -> NDArray[np.float64]:
            moved = f
            for part in parts:
                moved = part @ moved
            return np.asarray((moved - shared * f.sum()) / (1 - shared))

        matrix = sparse.linalg.LinearOperator((n_keys, n_keys), matvec=seen, dtype=float)
        solution, failed = sparse.linalg.cg(matrix, means, x0=means, rtol=_TOLERANCE)
        if failed:  # pragma: no cover - the system is consistent by construction
            raise RuntimeError(f"the joint estimate of {len(means)} keys did not converge in {failed} iterations")
        return np.asarray(solution)

    def cells_of(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
        """What keys of these frequencies add to each cell, (rows, width)."""
        cells = np.asarray(self.design @ frequencies).reshape(self.rows, self.width)
        return np.asarray((cells - self._shared * frequencies.sum()) / (1 - self._shared))

    def spread(self) -> NDArray[np.float64]:
        """The diagonal of the inverse, (keys,): 1 for a key that is alone in its cells."""
        n_keys = self.design.shape[1]
        factors = sparse.linalg.splu(self._gram + _TOLERANCE * sparse.eye_array(n_keys, format="csc"))
        spread = np.empty(n_keys)
        for first in range(0, n_keys, _AT_ONCE):
            own = np.arange(first, min(first + _AT_ONCE, n_keys))
            columns = np.zeros((n_keys, len(own)))
            columns[own, own - first] = 1
            spread[own] = factors.solve(columns)[own, own - first]
        if self.centred:  # the inverse of a matrix less a constant, by Sherman and Morrison
            sums = factors.solve(np.ones(n_keys))
            spread += np.square(sums) / max(self.width - sums.sum(), _TOLERANCE)
        return spread * (1 - self._shared)
