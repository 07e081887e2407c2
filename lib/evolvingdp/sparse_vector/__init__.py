"""Kaplan, Mansour and Stemmer (2020), The sparse vector technique, revisited, and what one would do without it."""

from evolvingdp.core.public import attach

__all__, __getattr__, __dir__ = attach(
    __name__,
    **{
        "threshold_monitor": ["ThresholdMonitorEvolving"],
        "calibration": ["Calibration", "calibrate"],
        "stable": ["smallest_detectable", "smallest_group", "stable_monitor"],
        "moved_queries": ["delta_of_moved", "smallest_moved_scale"],
        "gaussian": ["smallest_gaussian_scale"],
        "privacy": [
            "delta_attained",
            "delta_of_epsilon",
            "epsilon_attained",
            "epsilon_of_delta",
            "loss_distributions",
            "smallest_scale",
        ],
        "shifting": ["Plan", "planned_monitor", "solve"],
        "streams.example": ["ShiftingStream", "example_sizes"],
        "above_threshold": ["AboveThreshold", "best_threshold"],
        "histograms": ["Histogram", "histogram"],
    },
)
