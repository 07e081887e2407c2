"""All of the notebook `continual_mean/past_the_paper`."""
