"""The ladder of trust: how many words are found at one central guarantee, by whom users trust."""
