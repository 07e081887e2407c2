"""HEAVYTHRESH on words: the Brown corpus whose category changes, and large dictionaries whose frequent words change."""
