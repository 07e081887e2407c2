"""The notebook Verified privacy: the ledger, audits from outside, two failures caught, digits of floating point."""
