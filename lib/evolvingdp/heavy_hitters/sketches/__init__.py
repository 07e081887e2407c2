"""What frequency oracles are made of: what a user sends, the law of many reports, and the fit of many words at once."""
