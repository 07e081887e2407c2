"""Exact losses: of laws that are enumerated, and of noise that is moved so that it hides a change; no sampling."""
