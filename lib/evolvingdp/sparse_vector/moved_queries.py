"""What normal noise costs ThresholdMonitor: the loss of one user's moved queries, by value iteration, and a closed bound.

**Computes** the least scale of N(0, scale^2) at which all answers are (epsilon, delta)-private for **replacement** of one
user's inputs, where a user is deleted at the k-th yes to which it contributed (`reports`) and at the m-th query in which its
value is not 0 (`moved`), whatever the answers were.

**Why.** Of each of the user's two inputs the likelihood ratio R of what a best adversary sees is followed by value iteration
(the theorem on normal noise of the chapter): with k yeses and m queries left, the most that E_Q[(r R - 1)+] can be is

    V_{k,m}(r) = max over points (q, p) of (1 - q) V_{k,m-1}(r (1-p)/(1-q)) + q V_{k-1,m-1}(r p/q),

q and p the chances of a yes without the user and with it. **Everything is rounded up:** V is convex with slopes in [0, 1],
so that straight lines between points of a grid lie above it; and each term is jointly convex in (q, p), so that of the curve
of all (q, p) only the corners of a polygon around it are tried. `closed_scale` is what Renyi divergences give (`gaussian`),
for sizes that the iteration does not reach.

**Source.** Ours. `tests/privacy/test_moved_queries.py` has adversaries that attain most of it, and other ways to compute it.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from evolvingdp.core import checks
from evolvingdp.sparse_vector import gaussian
from evolvingdp.sparse_vector.privacy import Array, check_privacy

_TOUCHED = np.array([-7, -5, -3.5, -2.5, -1.7, -1.1, *np.linspace(-0.5, 5.3, 20), 6, 6.7, 7.4, 8.1])  # in scales
_STEP = 0.25  # of the grid of losses, times the scale
MOST = 2000  # k m up to which values are iterated, in a second
_SAVED = 0.945  # of the closed scale: where the search begins
_LARGE = 100.0  # epsilon, from which ratios leave the range of doubles
_PRECISE, _TRIES = 3e-3, 8  # of the scale


def _corners(scale: float) -> tuple[Array, Array, float]:
    """Chances of a yes and of a no (2, corners), without and with the user, at the corners of a polygon around all that a
    threshold can give, between tangents; and the corner in which only the user is ever heard."""
    yes, no = np.stack([ndtr(-_TOUCHED), ndtr(1 / scale - _TOUCHED)]), np.stack([ndtr(_TOUCHED), ndtr(_TOUCHED - 1 / scale)])
    slope = np.exp((_TOUCHED - 0.5 / scale) / scale)  # of the chance with the user, in that without
    gaps = np.where(_TOUCHED[1:] < 0, no[:, 1:] - no[:, :-1], yes[:, :-1] - yes[:, 1:])
    step = (slope[1:] * gaps[0] - gaps[1]) / (slope[1:] - slope[:-1])
    step = np.stack([step, slope[:-1] * step])  # to a corner from the point before it
    said = np.column_stack([yes[:, :-1] - step, [yes[0, 0] + no[1, 0] / slope[0], 1.0]])
    denied = np.column_stack([no[:, :-1] + step, [no[0, 0] - no[1, 0] / slope[0], 0.0]])
    heard = max(0.0, float(yes[1, -1] - slope[-1] * yes[0, -1]))
    return np.maximum(said, 1e-300), np.maximum(denied, 0.0), heard


def most(scale: float, reports: int, moved: int, step: float, reach: float) -> Array:
    """V at ratios e^(i `step`), |i| <= `reach` / `step`, of a user who is never in the sum but for `moved` queries."""
    half = math.ceil(reach / step)
    size, kept = 2 * half + 1, min(reports, moved)
    said, denied, heard = _corners(scale)
    with np.errstate(divide="ignore", invalid="ignore"):
        no = np.where(denied[0] > 0, np.maximum(np.log(denied[1] / denied[0]), -2 * reach), 0.0)
    yes = np.log(said[1] / said[0])
    pad = 1 + math.ceil(max(-no.min(), yes.max()) / step)
    ratios = np.exp(step * np.arange(-half - pad, half + pad + 1))
    inner = slice(pad, pad + size)
    falls = ratios[:pad] / ratios[pad]  # below the grid a line to 0, above it one of slope 1
    climbs = ratios[pad + size :] - ratios[pad + size - 1]
    value = np.tile(np.maximum(ratios - 1, 0.0), (kept + 1, 1))  # a row for each number of yeses that are left
    best, one, other = (np.empty((kept, size)) for _ in range(3))
    corners = zip(no.tolist(), denied[0].tolist(), yes.tolist(), said[0].tolist(), strict=True)
    terms = [(_read(fall, silent, step, pad), _read(rise, loud, step, pad)) for fall, silent, rise, loud in corners]
    for _ in range(moved):
        np.add(value[1:, inner], heard * ratios[inner], out=best)
        for (low, low_near, low_far), (up, up_near, up_far) in terms:
            np.multiply(value[1:, low : low + size], low_near, out=one)
            one += np.multiply(value[1:, low + 1 : low + 1 + size], low_far, out=other)
            one += np.multiply(value[:-1, up : up + size], up_near, out=other)
            one += np.multiply(value[:-1, up + 1 : up + 1 + size], up_far, out=other)
            np.maximum(best, one, out=best)
        value[1:, inner] = best
        value[1:, :pad] = best[:, :1] * falls
        value[1:, pad + size :] = best[:, -1:] + climbs
    return value[kept, inner]


def _read(loss: float, chance: float, step: float, pad: int) -> tuple[int, float, float]:
    """Where a value after this loss is read instead of the grid's first place, and the weights of two neighbours there."""
    places = math.floor(loss / step)
    beyond = math.expm1(loss - places * step) / math.expm1(step)
    return pad + places, chance * (1 - beyond), chance * beyond


@checks.plain
def delta_of_moved(epsilon: float, scale: float, reports: int, moved: int, step: float = _STEP) -> float:
    """The delta at `epsilon`, an upper bound; `step` is that of the grid of losses, times the scale.

    Raises ValueError for what is out of range.
    """
    checks.positive(epsilon=epsilon, scale=scale, step=step)
    checks.integer_at_least(1, reports=reports, moved=moved)
    step /= scale
    reach = 1.5 * epsilon + 6 / scale  # beyond it losses count as infinite
    value = most(scale, reports, moved, step, reach)
    ratios = np.exp(step * (np.arange(len(value)) - len(value) // 2))
    slopes = np.concatenate([[value[0] / ratios[0]], np.diff(value) / np.diff(ratios), [1.0]])
    with_user = np.maximum(np.diff(slopes), 0.0)  # chances, with the user, that 1 / R is each of these ratios
    without = with_user * ratios  # the same, without
    never = slopes[0] + max(0.0, 1 - float(without.sum()))  # only with the user, only without
    law = np.convolve(with_user[::-1], without)
    losses = step * (np.arange(len(law)) - (len(value) - 1))
    above = losses > epsilon
    return min(1.0, float(never + np.sum(law[above] * -np.expm1(epsilon - losses[above]))))


def _closed(order: float, scale: float, reports: int, moved: int) -> float:
    """By Renyi divergences: k yeses and m queries of each input, each direction at its own prices."""
    return sum(gaussian.search_cost(order, scale, reports, moved, way) for way in (0, 1))


def closed_scale(epsilon: float, delta: float, reports: int, moved: int) -> float:
    """The least scale by Renyi divergences."""
    return gaussian.smallest_joint(epsilon, delta, lambda order, scale: _closed(order, scale, reports, moved))


def smallest_delta(epsilon: float, scale: float, reports: int, moved: int) -> float:
    """The lower of both bounds on the delta at `epsilon`, where values can be iterated."""
    closed = gaussian.joint_delta(epsilon, lambda order: _closed(order, scale, reports, moved))
    if min(reports, moved) * moved > MOST or epsilon > _LARGE:
        return closed
    return min(closed, delta_of_moved(epsilon, scale, reports, moved))


@checks.plain
@lru_cache(maxsize=4096)
def smallest_moved_scale(epsilon: float, delta: float, reports: int, moved: int) -> float:
    """The least scale, up to 0.3 %; by `closed_scale` where `reports` * `moved` is above `MOST`, or epsilon is large."""
    check_privacy(epsilon, delta)
    checks.integer_at_least(1, reports=reports, moved=moved)
    closed = closed_scale(epsilon, delta, reports, moved)
    if min(reports, moved) * moved > MOST or epsilon > _LARGE:
        return closed
    # logarithms of scale and delta lie nearly on a line, whose slope the closed scales tell
    rate = math.log(closed_scale(epsilon, delta / 100, reports, moved) / closed) / math.log(100)
    best, scale, spare = closed, closed * _SAVED, _PRECISE / rate
    for _ in range(_TRIES):
        excess = math.log(delta_of_moved(epsilon, scale, reports, moved) / delta)
        if excess <= 0:
            best = min(best, scale)
            if excess >= -spare:
                break
        scale *= math.exp(rate * (excess + spare / 2))
        if scale >= closed:
            break
    return best
