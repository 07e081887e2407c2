"""The registry: how to make each public mechanism, its neighbours at their worst, and what it promises about them."""
