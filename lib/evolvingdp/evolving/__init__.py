"""Joseph, Roth, Ullman and Waggoner (2018): local differential privacy for evolving data."""

from evolvingdp.evolving.baselines import epsilon_of_report, recompute, recompute_words
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals.choosing import Choice, choose
from evolvingdp.evolving.rivals.few_changes import few_changes
from evolvingdp.evolving.rivals.once import Once, Tally
from evolvingdp.evolving.rivals.reserve import Reserve
from evolvingdp.evolving.streams import BitStream, WordStream, drift, steps
from evolvingdp.evolving.thresh import Thresh

__all__ = [
    "BitStream", "Choice", "HeavyThresh", "Once", "Reserve", "Tally", "Thresh", "WordStream", "choose", "drift",
    "epsilon_of_report", "few_changes", "recompute", "recompute_words", "steps",
]  # fmt: skip
