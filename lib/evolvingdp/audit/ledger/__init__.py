"""The privacy ledger: promises, what is measured, and mutants; a file for each chapter, all together in `listing`."""
