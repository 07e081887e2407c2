"""Joseph, Roth, Ullman and Waggoner (2018): local differential privacy for evolving data."""
