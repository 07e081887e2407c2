"""Bounds from runs: of a reader's own mechanism, of the library's as black boxes, and of failures that must be caught."""

from evolvingdp.core.public import attach

__all__, __getattr__, __dir__ = attach(
    __name__, auditor=["Bound", "audit", "lower_bound"], outside=["Guarded", "inputs_of", "load", "sentence"]
)
