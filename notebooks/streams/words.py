"""All words at once: errors by epoch under each guarantee, and what is noticed of the watched ones and when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core.seeds import stream
from evolvingdp.evolving import HeavyThresh, Once, WordStream, heavy_simulation
from evolvingdp.evolving.rivals import once as users_once
from evolvingdp.notebooks.streams.share import GUARANTEES, counted, watched
from evolvingdp.sparse_vector import histogram

Array = NDArray[np.float64]
SPLIT, AVERAGED, HEAVY = (
    "users split (best report)",
    "the same, averaged in hindsight",
    "HEAVYTHRESH, tuned",
)
REPORTS, HISTOGRAM = "every epoch (best report)", "histogram in every epoch (Gaussian)"
TOP = 10
FACTOR, LEAST = 2.0, 0.002  # what counts as a rise or a fall
DEVIATIONS = 4.0  # a private observer waits until it is so far from that
TESTS = 4  # of a word and epoch: rise and fall, ratio and size


def word_rows(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """The largest error over words and the recall of the ten most frequent, by method and epoch; then what is noticed."""
    counts = counted(params)
    truth, refused = counts.shares, dict[str, str]()
    places = [counts.place(word) for word in watched(params)]
    happened = noticed(truth[:, places], np.zeros_like(truth[:, places]), params.window)
    for repetition in range(params.repetitions):
        rng = stream(seed, "words", repetition)
        found, variances = _known(params, truth, rng)
        voted = _voted(params, truth, stream(seed, "voted", repetition), refused) if repetition < 3 else {}
        for method, estimates in (found | voted).items():
            for epoch, (own, true) in enumerate(zip(estimates, truth, strict=True)):
                yield {"part": "words", "method": method, "repetition": repetition, "epoch": epoch} | _judged(own, true)
        for guarantee, method in zip(GUARANTEES, (SPLIT, REPORTS, HISTOGRAM), strict=True):
            seen = noticed(found[method][:, places], variances[method][:, places], params.window)
            for word, own, true in zip(watched(params), seen, happened, strict=True):
                row = {"part": "noticed", "guarantee": guarantee, "word": word, "repetition": repetition}
                yield row | {
                    "epoch": own[0],
                    "kind": own[1],
                    "event": true[0],
                    "event_kind": true[1],
                    "early": _early(own, true),
                }
    for method, why in refused.items():
        yield {"part": "refused", "method": method, "why": why}


def _known(params: Any, truth: Array, rng: np.random.Generator) -> tuple[dict[str, Array], dict[str, Array]]:
    """Estimates (epochs, words) of the words of the list, and variances as an observer would work them out from those."""
    horizon, n_words = truth.shape
    once, each = (Once(params.n_users, epochs, params.epsilon, n_words) for epochs in (horizon, 1))
    data = WordStream.make([params.n_users], truth, np.arange(horizon)[None, :], params.words_per_user)
    tally = users_once.simulate(once, data, rng)
    raw, fit = once.estimates(tally), once.detect(tally)
    users = np.array([params.n_users])
    supports = np.stack([each.report.draw_sums(users, law[None, :], rng) for law in truth])
    every = each.estimates(users_once.Tally(np.full(horizon, params.n_users), supports))
    noise = histogram(params.epsilon, params.delta, horizon, n_words, kind="gaussian").noise.scale
    held = rng.multinomial(params.n_users, truth)
    trusted = (held + rng.normal(0.0, noise, held.shape)) / params.n_users
    found = {SPLIT: raw, AVERAGED: fit.estimates, REPORTS: every, HISTOGRAM: trusted}
    fair = np.clip(trusted, 0, 1)
    variances = {
        SPLIT: once.report.variance(raw) / np.maximum(tally.reports, 1)[:, None],
        REPORTS: each.report.variance(every) / params.n_users,
        HISTOGRAM: fair * (1 - fair) / params.n_users + (noise / params.n_users) ** 2,
    }
    return found, variances


def _voted(params: Any, truth: Array, rng: np.random.Generator, refused: dict[str, str]) -> dict[str, Array]:
    horizon, n_words = truth.shape
    data = WordStream.make([params.n_users], truth, np.arange(horizon)[None, :], params.words_per_user)
    size = (params.n_users, horizon, params.words_per_user, params.epsilon, n_words)
    try:
        trace = heavy_simulation.simulate(HeavyThresh.tuned(*size, changes=params.changes), data, rng)
    except ValueError as error:
        refused[HEAVY] = str(error)
        return {}
    return {HEAVY: np.stack([release.estimate for release in trace.public])}


def _judged(estimates: Array, truth: Array) -> dict[str, float]:
    own, top = np.clip(np.nan_to_num(estimates), 0, 1), min(TOP, len(truth) - 1)
    best, right = (set(np.argpartition(-values, top)[:top].tolist()) for values in (own, truth))
    return {"max_error": float(np.abs(own - truth).max()), "recall": len(best & right) / top}


def noticed(estimates: Array, variances: Array, window: int) -> list[tuple[int, str]]:
    """For each column the first epoch (from 0), and how, in which the mean of the last `window` epochs is certainly twice or
    half of the mean of all epochs before them, and `LEAST` away from it; -1 if never. Certainly: by `DEVIATIONS` standard
    errors."""
    found = []
    for own, spread in zip(estimates.T, variances.T, strict=True):
        seen = [(int(np.argmax(certain)), kind) for kind, certain in _certain(own, spread, window).items() if certain.any()]
        found.append(min(seen, default=(-1, "")))
    return found


def _certain(own: Array, spread: Array, window: int) -> dict[str, NDArray[np.bool_]]:
    """Whether the share has doubled or halved by more than the noise, (epochs,); never before two windows are over."""
    sums, squares = (np.concatenate([[0.0], np.cumsum(values)]) for values in (own, spread))
    ends = np.arange(1, len(own) + 1)
    early = np.maximum(ends - window, 1)
    now, then = (sums[ends] - sums[early]) / window, sums[early] / early
    of_now, of_then = (squares[ends] - squares[early]) / window**2, squares[early] / early**2
    over = ends >= 2 * window
    found = {}
    for kind, high, low, of_high, of_low in (
        ("doubled", now, then, of_now, of_then),
        ("halved", then, now, of_then, of_now),
    ):
        ratio = high - FACTOR * low - DEVIATIONS * np.sqrt(of_high + FACTOR**2 * of_low)
        size = high - low - LEAST - DEVIATIONS * np.sqrt(of_high + of_low)
        found[kind] = over & (ratio > 0) & (size > 0)
    return found


def _early(own: tuple[int, str], true: tuple[int, str]) -> bool:
    """Whether something was noticed before it happened, or that never did."""
    return own[0] >= 0 and (true[0] < 0 or own[0] < true[0])
