"""Checks that a guarantee is kept: exactly, by sensitivity, and from outside; and the ledger of all mechanisms."""
