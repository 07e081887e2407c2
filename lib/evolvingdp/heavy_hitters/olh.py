"""ExplicitHist: the paper's frequency oracle of one bit a user, which is local hashing with two hash values.

**Guarantee, error.** Those of `core.olh`, which is also what PEM asks.

**Source.** Algorithm 5 of Bassily et al. (2020): Z[v, j] is +1 where user j's hash of v is 1.
"""

from __future__ import annotations

from evolvingdp.core import checks
from evolvingdp.core.olh import OLH, LocalHashes

__all__ = ["OLH", "LocalHashes", "explicit_hist"]


@checks.plain
def explicit_hist(epsilon: float) -> OLH:
    """ExplicitHist (Algorithm 5): one randomized bit Z[v_j, j] a user, a(v) = (e^eps + 1)/(e^eps - 1) sum_j y_j Z[v, j]."""
    return OLH(epsilon, values=2)
