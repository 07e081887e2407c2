"""What a notebook and who runs it agree on, apart from `page`, whose figures and tables no runner waits for."""

MYST = "text/x-myst"  # the type of an output's source for the book
RESULTS = "EVOLVINGDP_RESULTS"  # the environment variable that names the folder of a run's files
