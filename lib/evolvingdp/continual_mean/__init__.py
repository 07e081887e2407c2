"""User-level private mean of a stream: George, Ramesh, Singh and Tyagi (2022), and past it."""
