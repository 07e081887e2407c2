"""Section 4.2: heavy hitters without a dictionary.  Table 2, what each change buys, and how far it goes."""
