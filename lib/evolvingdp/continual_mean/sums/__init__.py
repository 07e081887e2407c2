"""Trees and factorizations: noise for all prefix sums of a stream; `prefix_sums` has them all."""
