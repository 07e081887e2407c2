"""Everything that the chapter's notebooks run, each in its own folder."""
