"""Checks that a guarantee is kept: exactly, by sensitivity, and from outside; and the ledger of all mechanisms."""

from evolvingdp.core.public import attach

__all__, __getattr__, __dir__ = attach(
    __name__,
    **{
        "exact.laws": ["epsilon_at", "product", "worst_delta", "worst_loss"],
        "empirical.auditor": ["Batch", "Bound", "audit", "lower_bound"],
        "empirical.outside": ["sentence"],
        "ledger.entry": ["Entry"],
        "ledger.listing": ["entries"],
    },
)
