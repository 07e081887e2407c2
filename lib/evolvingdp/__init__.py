"""Evolving Privacy: differential privacy on data that changes over time, as code one can check."""
