"""One real stream, dated counts of words, under four guarantees: what each tells of every year, and when a change is noticed."""
