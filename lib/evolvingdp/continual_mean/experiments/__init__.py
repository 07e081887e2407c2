"""A folder per notebook: its parameters, its run, its tables, claims and figures; and what they share."""
