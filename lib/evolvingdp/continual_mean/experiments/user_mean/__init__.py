"""All of the notebook `continual_mean/user_mean`."""
