"""The pictures of ideas, by name."""

from __future__ import annotations

from collections.abc import Callable

from drawn import continual_mean, evolving, heavy_hitters, sparse_vector, trust
from drawn.svg import Drawing

PICTURES: dict[str, Callable[[], Drawing]] = {
    "trust": trust.trust,
    "count-sketch": heavy_hitters.count_sketch,
    "prefix-tree": heavy_hitters.prefix_tree,
    "thresholds": evolving.thresholds,
    "blocks": continual_mean.blocks,
    "user-blocks": continual_mean.user_blocks,
    "counters": sparse_vector.counters,
}
