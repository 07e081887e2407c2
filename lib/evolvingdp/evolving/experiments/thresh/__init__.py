"""THRESH against recomputation: over time, against the horizon, the users, the size of a change, and where it loses."""
