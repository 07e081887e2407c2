"""Streams with more in them than an array a step can hold: Example 1.4, and any users who hold any sets."""
