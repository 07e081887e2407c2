"""Rendering the book: HTML, PDF and zip."""
