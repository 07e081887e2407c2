"""What came after the paper: a value with each yes, and charging for hits of a target."""
