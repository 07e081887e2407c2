"""The privacy ledger: promises, and what is measured; a file for each chapter, all together in `listing`."""
