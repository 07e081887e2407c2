"""Matching pursuit in a sketch: which of many keys stand out, once the heavier ones are taken out of the cells.

A key that nobody holds and that shares one cell with a word seems to have its part of the word's count.  Where such keys are
many beside the cells, a joint fit of all would spread the word's count over them.  So the heaviest are fitted first, alone.

**Source.** Orthogonal matching pursuit of Pati, Rezaiifar and Krishnaprasad (1993), many keys a round.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evolvingdp.heavy_hitters.count_sketch import FreqOracle, Sketch


def standing_out(oracle: FreqOracle, sketch: Sketch, keys: NDArray[np.uint64], least: float) -> NDArray[np.bool_]:
    """Which of `keys` have `least` > 0 users or more, by the means of their cells, (keys,).

    A round takes those with half of the largest mean or more, fits all who were taken, and takes the fit out of the cells.
    It ends when half as many are taken as there are cells: more would be fitted to noise.
    """
    most = oracle.hashes.rows * oracle.hashes.width // 2
    listed, taken = np.zeros(len(keys), dtype=bool), np.zeros(len(keys))
    means, of_all = oracle.estimate(sketch, keys, "mean"), oracle.joint_fit(keys)
    estimates = means
    while True:
        left = np.where(listed, -np.inf, estimates)
        new = left >= max(least, left.max(initial=0) / 2)
        room = most - np.count_nonzero(listed)
        if np.count_nonzero(new) > room:
            new = np.isin(np.arange(len(keys)), np.argsort(-left, kind="stable")[:room])
        if not new.any():
            return listed
        listed |= new
        if listed.all():
            return listed
        taken[listed] = oracle.joint_fit(keys[listed]).solve(means[listed])
        estimates = means - of_all.means_of(taken)
