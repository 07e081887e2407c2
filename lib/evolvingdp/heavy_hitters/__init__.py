"""Practical locally private heavy hitters: Bassily, Nissim, Stemmer and Thakurta (2020)."""
