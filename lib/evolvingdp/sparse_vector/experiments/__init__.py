"""What each notebook runs: its parameters, trials, tables, claims and figures in a folder of its name."""
