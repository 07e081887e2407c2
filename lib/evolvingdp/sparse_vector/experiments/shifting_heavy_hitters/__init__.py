"""Example 1.4 made visible, error against the number of reports, a mis-set k, the domain's price, and Brown documents."""
