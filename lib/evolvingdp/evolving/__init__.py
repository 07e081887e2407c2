"""Joseph, Roth, Ullman and Waggoner (2018): local differential privacy for evolving data."""

from evolvingdp.core.public import attach

__all__, __getattr__, __dir__ = attach(
    __name__,
    baselines=["epsilon_of_report", "recompute", "recompute_words"],
    heavy_projection=["Hadamard", "HashSigns", "Projection"],
    heavy_thresh=["HeavyThresh"],
    streams=["BitStream", "WordStream", "drift", "steps"],
    thresh=["Thresh"],
    thresh_protocol=["Release", "State"],
    **{
        "rivals.detection": ["Fit", "detect"],
        "rivals.memoized": ["Memoized"],
        "rivals.once": ["Once", "Tally"],
        "rivals.once_words": ["OnceWords", "WordTally"],
        "rivals.threshold_stream": ["ThresholdStream"],
        "rivals.tree": ["ChangeTree"],
    },
)
