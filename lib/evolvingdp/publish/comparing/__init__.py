"""The results of a reader beside ours."""
