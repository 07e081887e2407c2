"""What users get who trust a shuffler, one server of two, or a curator."""
