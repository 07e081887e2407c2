"""What the mechanisms of the sparse vector chapter return on fixed seeds."""
