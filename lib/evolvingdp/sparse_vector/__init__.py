"""Kaplan, Mansour and Stemmer (2020), The sparse vector technique, revisited, and what one would do without it."""

from evolvingdp.core.public import attach

__all__, __getattr__, __dir__ = attach(
    __name__,
    **{
        "threshold_monitor": ["Release", "ThresholdMonitor", "ThresholdMonitorEvolving"],
        "calibration": ["Calibration", "calibrate"],
        "noise": ["GaussianNoise", "MonitorNoise"],
        "integer_noise": ["IntegerNoise"],
        "stable": ["smallest_detectable", "smallest_group", "stable_monitor"],
        "moved_queries": ["delta_of_moved", "smallest_moved_scale"],
        "gaussian": ["smallest_gaussian_scale"],
        "privacy": [
            "delta_of_epsilon",
            "epsilon_of_delta",
            "loss_distributions",
            "renyi_epsilon",
            "smallest_renyi_scale",
            "smallest_scale",
        ],
        "adversary": ["delta_attained", "epsilon_attained"],
        "shifting": ["Plan", "plan", "solve"],
        "streams.example": ["ShiftingStream", "example_sizes"],
        "streams.general": ["GeneralStream", "random_stream"],
        "above_threshold": ["AboveThreshold"],
        "histograms": ["Histogram", "HistogramEveryStep", "histogram"],
        "find_step": ["FindStep"],
        "baselines": ["best_threshold", "repeated_threshold", "threshold_error"],
    },
)
