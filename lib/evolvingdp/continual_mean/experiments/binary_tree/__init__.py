"""All of the notebook `continual_mean/binary_tree`."""
