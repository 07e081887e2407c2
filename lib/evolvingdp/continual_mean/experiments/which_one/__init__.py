"""All of the notebook `continual_mean/which_one`."""
