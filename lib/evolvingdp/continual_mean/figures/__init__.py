"""One module per notebook: its parameters, its run, its tables."""
