"""All of a notebook on a real stream, a folder each."""
