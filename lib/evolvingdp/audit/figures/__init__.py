"""One module a notebook: its figures."""
