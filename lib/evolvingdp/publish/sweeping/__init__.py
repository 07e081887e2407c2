"""Sweeps: an experiment over a grid of parameters and seeds, on any number of processes."""
