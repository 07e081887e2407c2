"""Kaplan, Mansour and Stemmer (2020): the sparse vector technique, revisited."""
