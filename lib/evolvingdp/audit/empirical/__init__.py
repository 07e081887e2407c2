"""Bounds from runs: of a reader's own mechanism, of the library's as black boxes, and of failures that must be caught."""
