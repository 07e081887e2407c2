"""What every paper uses: checks, seeds, randomizers, hashing, the Hadamard transform, exact sampling, experiments."""
