"""The picture of trust: where the noise is added, and what that costs a count."""

from __future__ import annotations

import math

from drawn.svg import Drawing
from evolvingdp.core.noise import DiscreteLaplace
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.heavy_hitters import epsilon_of_a_report

USERS, EPSILON, DELTA = 10_000, 1.0, 1e-6


def errors() -> dict[str, float]:
    """Standard errors of the count of those of `USERS` who say yes, whoever they are: noisy bits, bits that a
    shuffler mixes, and a noisy sum."""
    mixed = epsilon_of_a_report(EPSILON, DELTA, USERS, lambda _: (2, 0.0), 15.0)
    bits = {"local": EPSILON, "shuffled": mixed}
    local = {lane: math.sqrt((SignFlip(one).debias ** 2 - 1) * USERS) / 2 for lane, one in bits.items()}
    return local | {"central": math.sqrt(DiscreteLaplace(1 / EPSILON).variance)}


def trust() -> Drawing:
    """Three ways from users to an analyst."""
    drawing = Drawing("Where the noise is added", "", 254)
    error = errors()
    lanes = {
        "local": ("nobody", f"± {error['local']:.0f} users", "every user"),
        "shuffled": ("a shuffler, which sees no names; δ = 10⁻⁶", f"± {error['shuffled']:.1f} users", "users, a little"),
        "central": ("a server, which sees all data", f"± {error['central']:.1f} users", "the server, once"),
    }
    for place, (lane, (trusted, cost, noise)) in enumerate(lanes.items()):
        y = 44 + 74 * place
        drawing.text(4, y - 22, lane, "strong")
        drawing.text(70, y - 22, f"trusted: {trusted}", "small")
        for user in range(3):
            drawing.dot(18, y + 14 * user - 8, "other" if lane == "central" else "ours", 5)
        for user in range(3):
            ends = 150 if lane == "local" else 118
            drawing.line(26, y + 14 * user - 8, ends, y + 6)
        if lane == "shuffled":
            drawing.box(118, y - 6, 66, 24)
            drawing.text(151, y + 10, "shuffler", "small", at="middle")
        elif lane == "central":
            drawing.box(118, y - 6, 88, 24, "ours")
            drawing.text(162, y + 10, "server", "on", at="middle")
        drawing.arrow({"local": 150, "shuffled": 184, "central": 206}[lane], y + 6, 250, y + 6)
        drawing.text(256, y + 2, f"noise: {noise}", "small")
        drawing.text(256, y + 18, cost, "strong")
    drawing.dot(18, 243, "other", 5)
    drawing.text(28, 247, "data as they are", "small")
    drawing.dot(146, 243, "ours", 5)
    drawing.text(156, 247, f"noise; error of a count of {USERS:,}, ε = {EPSILON:g}", "small")
    drawing.says = (
        f"Three rows, at epsilon = {EPSILON:g}. Local: each user adds noise, nobody is trusted, and a count of {USERS:,} "
        f"users has a standard error of {error['local']:.0f}. Shuffled: users add a little noise and a shuffler takes their "
        f"names off: {error['shuffled']:.1f}, at a delta of {DELTA:g}. Central: a trusted server sees all data and adds "
        f"noise once; its error is {error['central']:.1f}."
    )
    return drawing
