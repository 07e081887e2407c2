"""One module a notebook: its parameters and the run that fills its table."""
