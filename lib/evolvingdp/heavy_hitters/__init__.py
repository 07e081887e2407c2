"""Bassily, Nissim, Stemmer and Thakurta (2020), Practical locally private heavy hitters, and what it is compared with."""

from evolvingdp.heavy_hitters.binary_code import ReedMuller
from evolvingdp.heavy_hitters.bitstogram import Bitstogram, explicit_hist, hashtogram
from evolvingdp.heavy_hitters.count_sketch import FreqOracle, Sketch
from evolvingdp.heavy_hitters.listing import HeavyHitters, Reports
from evolvingdp.heavy_hitters.planning import planned
from evolvingdp.heavy_hitters.rappor import BitCounts, Rappor
from evolvingdp.heavy_hitters.rappor_decoding import Decoded, decode
from evolvingdp.heavy_hitters.shuffling import Shuffled, epsilon_of_a_report
from evolvingdp.heavy_hitters.sketches.projective import ProjectiveOracle
from evolvingdp.heavy_hitters.text_search import Texts
from evolvingdp.heavy_hitters.tree_hist import Algorithm3, TreeHist
from evolvingdp.heavy_hitters.word_tree import TooManyCandidatesError, WordTree

__all__ = [
    "Algorithm3", "BitCounts", "Bitstogram", "Decoded", "FreqOracle", "HeavyHitters",
    "ProjectiveOracle", "Rappor", "ReedMuller", "Reports", "Shuffled", "Sketch", "Texts",
    "TooManyCandidatesError", "TreeHist", "WordTree", "decode", "epsilon_of_a_report", "explicit_hist", "hashtogram",
    "planned",
]  # fmt: skip
