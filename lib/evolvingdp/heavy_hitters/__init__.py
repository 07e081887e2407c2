"""Bassily, Nissim, Stemmer and Thakurta (2020), Practical locally private heavy hitters, and what it is compared with."""

from evolvingdp.core.public import attach

__all__, __getattr__, __dir__ = attach(
    __name__,
    **{"sketches.local_rnd": ["LocalRnd"], "sketches.projective": ["ProjectiveOracle"]},
    **{"trust.shuffling": ["Shuffled", "epsilon_of_a_report"], "trust.prefix_counts": ["PrefixCounts"]},
    count_sketch=["FreqOracle", "Sketch"],
    tree_hist=["Algorithm3", "TreeHist"],
    text_search=["Texts"],
    text_tree=["TextTree"],
    listing=["HeavyHitters", "Reports"],
    word_tree=["TooManyCandidatesError", "WordTree"],
    bitstogram=["Bitstogram", "explicit_hist", "hashtogram"],
    binary_code=["ReedMuller"],
    planning=["planned"],
    rappor=["BitCounts", "Rappor"],
    rappor_decoding=["Decoded", "decode"],
)
