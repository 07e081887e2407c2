"""What a result is made of and where it comes from: the checkout, digests, keys, provenance."""
