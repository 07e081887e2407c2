"""The smallest group that each method finds with probability .99, where every user is in k groups of that size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pandas as pd

from evolvingdp.notebooks.sparse_vector import methods
from evolvingdp.notebooks.sparse_vector.methods import Target
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.stable import NOISES, smallest_detectable, smallest_group

FOUND = 0.99
BOUND = "no method finds less"
EVENTS = 100  # for each report of a user, of the map
RIVALS = (methods.REPEATED, methods.ONE, methods.GAUSSIAN)
EVERY = "histogram, Gaussian, stable"


def group_rows(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """A row a method and number of users; computed, nothing is drawn."""
    for n_users in params.group_users_sweep:
        for method, size in smallest_groups(methods.target_of(params), n_users, params.reports).items():
            yield {"part": "groups", "method": method, "n_users": n_users, "size": size}


def smallest_groups(target: Target, n_users: int, reports: int) -> dict[str, float]:
    """Of each method and the lower bound; n steps. AboveThreshold is told how many groups of this size there are."""
    sizes = {
        methods.STABLE: smallest_group(methods.stable(target, n_users, reports)),
        methods.MONITOR: smallest_group(methods.monitor_plan(target, n_users, reports, 1).monitor),
        EVERY: methods.every_step(target, n_users, EVERY).error(1, 2 * (1 - FOUND)),
        BOUND: smallest_detectable(target.epsilon, target.delta, n_users, target.n_elements - n_users, FOUND),
    }
    for name in RIVALS:
        sizes[name] = _with_reports(partial(_needed, target, name, n_users), n_users, reports)
    return sizes


def _with_reports(needed: Callable[[int], float], n_users: int, reports: int) -> float:
    """The least size that is as large as needed for as many groups of it as there are; their number to a thousandth."""

    def of(groups: int) -> float:
        return needed(max(1, reports * groups))

    few, many = 0, n_users + 1  # so few groups may be as large as needed, so many not
    while many - few > max(1, few // 1000):
        between = max(few + 1, math.isqrt(max(1, few) * many))
        few, many = (between, many) if of(between) <= n_users / between else (few, between)
    return max(of(few), n_users // (few + 1) + 1)


def events(n_users: int, reports: int, size: float) -> int:
    """How many groups of `size` there are, each user in as many as `reports`."""
    return max(1, reports * math.floor(n_users / size))


def _needed(target: Target, name: str, horizon: int, reports: int) -> float:
    """The size found with probability `FOUND` by a method that may report this often, at its best setting."""
    return min(map(_alone, methods.lowest(target, name, reports, horizon, horizon * target.n_elements, _alone)))


def rival_until(target: Target, steps: int, reports: int) -> int:
    """Up to how many events in all, of which a user is in as many as `reports`, AboveThreshold with Gaussian noise finds
    smaller groups than StableMonitor."""
    own = methods.stable(target, steps, reports)

    def wins(events: int) -> bool:
        made = methods.lowest(target, methods.GAUSSIAN, events, steps, steps * target.n_elements)
        return min(one.error(events, 2 * (1 - FOUND)) for one in made) < smallest_group(own, events, FOUND)

    low, high = 0, 1 << 14
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wins(middle) else (low, middle)
    return low


def _alone(method: AboveThreshold) -> float:
    """The size that it finds with probability `FOUND`."""
    return method.error(1, 2 * (1 - FOUND))


def map_rows(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """Of steps and k, the smallest group with each noise, with the best rival and with any method; computed.

    `EVENTS` groups for each report of a user, all found with probability `FOUND`; rivals are told how many there are.
    """
    target = methods.target_of(params)
    for steps in params.map_steps:
        for reports in params.map_reports:
            events = EVENTS * reports
            sizes = sizes_of(target, steps, reports, events)
            sizes[BOUND] = smallest_detectable(target.epsilon, target.delta, max(2, steps), target.n_elements, FOUND)
            for method, size in sizes.items():
                yield {"part": "map", "method": method, "steps": steps, "reports": reports, "tops": events, "size": size}


def sizes_of(target: Target, steps: int, reports: int, events: int) -> dict[str, float]:
    """The weight from which all events are found with probability `FOUND`, by both noises of StableMonitor and by rivals."""
    sizes = {noise: smallest_group(methods.stable(target, steps, reports, noise), events, FOUND) for noise in NOISES}
    made = methods.lowest(target, methods.GAUSSIAN, events, steps, steps * target.n_elements)
    sizes |= {name: methods.every_step(target, steps, name).error(events, 2 * (1 - FOUND)) for name in methods.HISTOGRAMS}
    return sizes | {methods.GAUSSIAN: min(one.error(events, 2 * (1 - FOUND)) for one in made)}


def map_table(table: pd.DataFrame) -> pd.DataFrame:
    """A row a number of steps and k."""
    part = table[table.part == "map"].astype({"steps": int, "reports": int, "tops": int})
    return part.pivot(index=["steps", "reports"], columns="method", values="size")
