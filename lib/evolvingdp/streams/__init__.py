"""Real streams: dated counts of words, shipped or the reader's own, which all four papers' mechanisms are run on."""

from evolvingdp.core.public import attach

__all__, __getattr__, __dir__ = attach(__name__, dated=["DatedCounts", "read_counts"])
