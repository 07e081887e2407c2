"""Checks that a guarantee is kept: exactly, along random runs, and from outside.

What is here needs no mechanism of the library; `evolvingdp.audit.ledger` measures all of them.
"""

from evolvingdp.audit.empirical.auditor import Batch, Bound, audit, lower_bound
from evolvingdp.audit.empirical.outside import sentence
from evolvingdp.audit.exact.laws import epsilon_at, product, worst_delta, worst_loss

__all__ = ["Batch", "Bound", "audit", "epsilon_at", "lower_bound", "product", "sentence", "worst_delta", "worst_loss"]
