"""The privacy ledger: promises, what is measured, and mutants; a file for each chapter, all together in `listing`."""

from evolvingdp.core.public import attach

__all__, __getattr__, __dir__ = attach(__name__, entry=["Entry", "kept", "tight"], listing=["entries", "table"])
