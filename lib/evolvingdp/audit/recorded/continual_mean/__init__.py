"""What the mechanisms of the continual mean return on fixed seeds."""
