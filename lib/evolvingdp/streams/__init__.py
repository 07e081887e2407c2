"""Real streams: dated counts of words, shipped or the reader's own, which all four papers' mechanisms are run on."""

from evolvingdp.streams.dated import DatedCounts, read_counts

__all__ = ["DatedCounts", "read_counts"]
