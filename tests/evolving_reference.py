"""THRESH and HEAVYTHRESH line by line, for many runs at once: what the library's two paths are compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass
class Runs:
    """What many runs show, (runs, epochs), and what they keep to themselves: truthful votes sent, (runs, users)."""

    updated: np.ndarray
    frozen: np.ndarray
    reported: np.ndarray  # ones, or sums of signs by coordinate (runs, epochs, width); of the last update
    used: np.ndarray


def says_yes(settings, epoch, distance):
    """Lines 2-3 of Algorithm 2, and of Algorithm 5: the largest b with a distance above 2 (b + 1) t decides."""
    levels = math.floor(math.log2(settings.horizon))
    b = sum((distance > 2 * (each + 1) * settings.unit).astype(int) for each in range(levels + 1)) - 1
    return (b >= 0) & (epoch % 2 ** (levels - np.maximum(b, 0)) == 0)


def vote_shown(settings, yes, uniforms):
    """Randomized response: a vote is turned around with probability 1 / (e^a + 1)."""
    return yes ^ (uniforms < 1 / (math.exp(settings.vote_epsilon) + 1))


def decided(settings, shown):
    """Line 10 of Algorithm 1, whose square root is `margin` if one is given."""
    root = math.sqrt(math.log(10 * settings.horizon / settings.beta) / (2 * settings.n_users))
    cut = 1 / (math.exp(settings.vote_epsilon) + 1) + (root if settings.margin is None else settings.margin)
    return shown.mean(axis=1) > cut


def report_shown(settings, share, uniforms):
    """Algorithm 3: 1 with probability (1 + share (e^b - 1)) / (e^b + 1); small uniforms give the rarer answer."""
    chance = (1 + share * (math.exp(settings.estimate_epsilon) - 1)) / (math.exp(settings.estimate_epsilon) + 1)
    return np.where(chance <= 0.5, uniforms < chance, uniforms >= 1 - chance)


def thresh_runs(settings, counts, votes, reports):
    """Algorithms 1 to 3 with integer caps (E-EV-1) and a first update without votes (E-EV-2) for `counts` of ones, (runs,
    epochs, users).

    votes(t) and reports(t, those) give the uniform numbers of an epoch, (runs, users), those of `those` runs only.
    """
    runs, horizon, users = counts.shape
    shown = Runs(*(np.zeros((runs, horizon), kind) for kind in (bool, bool, int)), np.zeros((runs, users), np.int16))
    reference, left = np.full((runs, users), -settings.epoch_length, counts.dtype), np.full(runs, settings.estimate_cap)
    distances = np.arange(2 * settings.epoch_length + 1) / settings.epoch_length
    for t in range(horizon):
        now = counts[:, t]
        wanted = np.ones(runs, bool)
        if t:
            far = says_yes(settings, t + 1, distances)
            yes = far[np.abs(now - reference)] & (shown.used < settings.vote_cap)
            wanted = decided(settings, vote_shown(settings, yes, votes(t)))
            shown.used += yes
        pays = wanted & ((left > 0) | (settings.exhaustion == "printed"))
        share = np.where(left[pays, None] > 0, now[pays] / settings.epoch_length, 0.0)
        if t:
            shown.reported[:, t] = shown.reported[:, t - 1]
        shown.reported[pays, t] = report_shown(settings, share, reports(t, pays)).sum(axis=1)
        shown.updated[:, t], shown.frozen[:, t] = pays, (wanted | (shown.frozen[:, t - 1] if t else False)) & ~pays
        reference[pays] = now[pays]
        left = np.maximum(0, left - pays)
    return shown


def sign_matrix(settings):
    """sqrt(w) Phi, (width, n_words)."""
    return settings.signs(np.arange(settings.width)[:, None], np.arange(settings.n_words)[None, :]).astype(int)


def heavy_runs(settings, counts, votes, places, reports):
    """Algorithms 4 to 8 in the same way, for `counts` of words, (runs, epochs, users, n_words)."""
    voting, matrix = settings.voting, sign_matrix(settings)
    runs, horizon, users, _ = counts.shape
    shown = Runs(
        *(np.zeros((runs, horizon), bool) for _ in range(2)),
        np.zeros((runs, horizon, settings.width), int),
        np.zeros((runs, users), int),
    )
    reference, left = np.zeros((runs, users, settings.width)), np.full(runs, voting.estimate_cap)
    for t in range(horizon):
        hashed = counts[:, t].astype(float) @ matrix.T.astype(float) / voting.epoch_length
        wanted = np.ones(runs, bool)
        if t:
            moved = says_yes(voting, t + 1, np.abs(hashed - reference).max(axis=2))
            yes = moved & (shown.used < voting.vote_cap)
            wanted = decided(voting, vote_shown(voting, yes, votes[:, t]))
            shown.used += yes
        pays = wanted & ((left > 0) | (voting.exhaustion == "printed"))
        mean = np.take_along_axis(hashed, places[:, t][:, :, None], axis=2)[:, :, 0]
        mean = np.where(left[:, None] > 0, mean, 0.0)
        signs = np.where(report_shown(voting, (1 + mean) / 2, reports[:, t]), 1, -1)
        cells = (np.arange(runs)[:, None] * settings.width + places[:, t]).ravel()
        sums = np.bincount(cells, signs.ravel(), runs * settings.width).reshape(runs, -1).astype(int)
        before = shown.reported[:, t - 1] if t else 0
        shown.updated[:, t], shown.frozen[:, t] = pays, (wanted | (shown.frozen[:, t - 1] if t else False)) & ~pays
        shown.reported[:, t] = np.where(pays[:, None], sums, before)
        reference = np.where(pays[:, None, None], hashed, reference)
        left = np.maximum(0, left - pays)
    return shown


def many_counts(data, runs, rng):
    """What users draw from a stream of bits or words: (runs, epochs, users), or (runs, epochs, users, n_words)."""
    return np.stack([np.concatenate(list(_groups(data, t, runs, rng)), axis=1) for t in range(len(data.truth))], axis=1)


def _groups(data, t, runs, rng):
    for group, size in enumerate(data.sizes):
        if hasattr(data, "which"):
            yield rng.multinomial(data.epoch_length, data.distributions[data.which[group, t]], size=(runs, size))
        else:
            yield rng.binomial(data.epoch_length, data.means[group, t], size=(runs, size))


def draw_thresh(settings, counts, rng):
    runs, _, users = counts.shape
    return thresh_runs(
        settings, counts, lambda t: rng.random((runs, users)), lambda t, pays: rng.random((pays.sum(), users))
    )


class Scripted:
    """A generator that gives out what is written down."""

    def __init__(self, uniforms=(), places=()):
        self.uniforms, self.places = list(uniforms), list(places)

    def random(self, shape):
        given = self.uniforms.pop(0)
        assert given.shape == shape
        return given

    def integers(self, low, high, size):
        given = self.places.pop(0)
        assert (low, given.shape) == (0, (size,))
        assert given.max() < high
        return given


def score_pvalue(observed, law, other):
    """p-value, by the normal law, of the sum over `observed` outcomes of log(law / other), if they have `law`: the test that
    tells the two laws apart with the fewest draws. An outcome that `other` excludes has to be excluded by `law`."""
    outcomes = [outcome for outcome in law if law[outcome] > 0]
    chances = np.array([law[outcome] for outcome in outcomes])
    scores = np.log(chances / np.array([other[outcome] for outcome in outcomes]))
    draws, mean = sum(observed.values()), float(chances @ scores)
    deviation = math.sqrt(float(chances @ (scores - mean) ** 2) * draws)
    seen = float(np.array([observed.get(outcome, 0) for outcome in outcomes]) @ scores)
    return math.erfc(abs(seen - draws * mean) / deviation / math.sqrt(2))
