"""Section 4.1: the frequency oracle on a power law and on the Brown corpus, against n, epsilon and m (Figures 1 to 3)."""
