"""Kaplan, Mansour and Stemmer (2021), The sparse vector technique, revisited, and what one would do without it."""

from evolvingdp.sparse_vector.above_threshold import AboveThreshold, best_threshold
from evolvingdp.sparse_vector.calibration import Calibration, calibrate
from evolvingdp.sparse_vector.gaussian import smallest_gaussian_scale
from evolvingdp.sparse_vector.histograms import Histogram, histogram
from evolvingdp.sparse_vector.moved_queries import delta_of_moved, smallest_moved_scale
from evolvingdp.sparse_vector.privacy import (
    delta_attained,
    delta_of_epsilon,
    epsilon_attained,
    epsilon_of_delta,
    loss_distributions,
    smallest_scale,
)
from evolvingdp.sparse_vector.shifting import Plan, planned_monitor, solve
from evolvingdp.sparse_vector.stable import smallest_detectable, smallest_group, stable_monitor
from evolvingdp.sparse_vector.streams.example import ShiftingStream, example_sizes
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

__all__ = [
    "AboveThreshold", "Calibration", "Histogram", "Plan",
    "ShiftingStream", "ThresholdMonitorEvolving", "best_threshold", "calibrate", "delta_attained", "delta_of_epsilon",
    "delta_of_moved", "epsilon_attained", "epsilon_of_delta", "example_sizes", "histogram", "loss_distributions",
    "planned_monitor", "smallest_detectable", "smallest_gaussian_scale", "smallest_group", "smallest_moved_scale",
    "smallest_scale", "solve", "stable_monitor",
]  # fmt: skip
