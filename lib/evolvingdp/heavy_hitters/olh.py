"""ExplicitHist: the paper's frequency oracle of one bit a user, which is local hashing with two hash values.

**Guarantee, error.** Those of `core.olh`, the oracle that PEM uses, too.

**Source.** Algorithm 5 of Bassily et al. (2020): Z[v, j] is +1 where user j's hash of v is 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.core.olh import OLH, LocalHashes

__all__ = ["OLH", "LocalHashes", "consistent", "explicit_hist"]


@checks.plain
def explicit_hist(epsilon: float) -> OLH:
    """ExplicitHist (Algorithm 5): one randomized bit Z[v_j, j] a user, a(v) = (e^eps + 1)/(e^eps - 1) sum_j y_j Z[v, j]."""
    return OLH(epsilon, values=2)


def consistent(estimates: NDArray[np.float64], n_users: int) -> NDArray[np.float64]:
    """The nearest (values,) that are not negative and sum to `n_users`, for estimates of all values that users can hold.

    Never farther from the truth in squares over all values, since the truth is of that kind; it costs no privacy.  Estimates
    are no longer unbiased.  Norm-Sub of Wang et al., Locally differentially private frequency estimation with consistency
    (2020): what is too much is taken from all alike, and negative ones are set to 0.
    """
    checks.integer_at_least(1, n_users=n_users)
    if estimates.ndim != 1 or not len(estimates) or not np.isfinite(estimates).all():
        raise ValueError(f"estimates must be one or more finite numbers in one dimension, got {estimates}")
    falling = np.sort(estimates)[::-1]
    surplus = (np.cumsum(falling) - n_users) / np.arange(1, len(falling) + 1)
    return np.asarray(np.maximum(estimates - surplus[np.flatnonzero(falling > surplus)[-1]], 0.0))
