"""A folder a notebook: its parameters, run, tables, claims and figures."""
