"""Exact losses: of laws that are enumerated, and of noise that is moved so that it hides a change; no sampling."""

from evolvingdp.core.public import attach

__all__, __getattr__, __dir__ = attach(
    __name__,
    epsilons=["composed_epsilon", "gaussian_epsilon", "smallest_epsilon"],
    laws=["epsilon_at", "pair_epsilon", "product", "worst_delta", "worst_loss"],
)
