"""What the mechanisms of evolving data return on fixed seeds."""
