"""What the mechanisms of heavy hitters return on fixed seeds."""
