"""What every paper uses: seeds, words as numbers, hash functions, noise, composition; and checks, exact sampling, tables.

Import from its files, `evolvingdp.core.noise` for instance, so that nobody waits for what another one needs.
"""
