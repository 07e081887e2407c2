"""The whole book as one file: a zip that reads from disk, and a PDF."""
