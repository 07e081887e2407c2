"""Bitstogram: all bits of a word at once, with a code.  What the code, the sign and the split buy, and what the lemmas ask."""
