"""Joseph, Roth, Ullman and Waggoner (2018): local differential privacy for evolving data."""

from evolvingdp.core.public import attach

__all__, __getattr__, __dir__ = attach(
    __name__,
    baselines=["epsilon_of_report", "recompute", "recompute_words"],
    heavy_thresh=["HeavyThresh"],
    protocol=["Release", "State"],
    streams=["BitStream", "WordStream", "drift", "steps"],
    thresh=["Thresh"],
    **{
        "rivals.choosing": ["Choice", "choose"],
        "rivals.few_changes": ["ChangeTree", "Memoized", "few_changes"],
        "rivals.once": ["Once", "Tally"],
        "rivals.reserve": ["Reserve"],
    },
)
