"""What shipped code returned in many settings when it was verified: every change of it shows."""
