"""HEAVYTHRESH user by user: what each device keeps and sends, and what the server makes of it.

The state of `start` and `step` is **secret**; the release is public. Guarantee and source: `heavy_thresh`; its simulation is
in `heavy_simulation`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.streams import WordStream
from evolvingdp.evolving.thresh_protocol import Release, State

Words = NDArray[np.float64]  # estimates of all words' frequencies


def start(settings: HeavyThresh) -> State[Words]:
    """Before the first epoch."""
    nothing = np.zeros((settings.voting.n_users, settings.n_words), dtype=np.int64)
    return State(nothing, nothing[:, 0], before(settings), settings)


def before(settings: HeavyThresh) -> Release[Words]:
    """Before the first epoch, nothing is known."""
    unknown = np.full(settings.n_words, math.nan)
    return Release(0, unknown, False, settings.voting.estimate_cap, False, settings.votes_left(0))


def step(
    settings: HeavyThresh,
    state: State[Words],
    counts: NDArray[np.integer],
    public: np.random.Generator,
    private: np.random.Generator,
) -> tuple[State[Words], Release[Words]]:
    """An epoch in which user i has counts[i, v] words v, (n_users, n_words), `epoch_length` in all.

    `public` gives each user its coordinate in an update, `private` all noise. Raises TypeError or ValueError, before any
    noise, for other counts: a mean outside of [-1, 1] would cost more than the budget.
    """
    checks.state(state, State, settings)
    voting, last = settings.voting, state.release
    epoch = last.epoch + 1
    if epoch > voting.horizon:
        raise ValueError(f"horizon must be larger to go on: {voting.horizon} epochs are over")
    counts = histograms(counts, voting.n_users, settings.n_words, voting.epoch_length)
    used = state.used
    if epoch == 1 and voting.start == "forced":
        wanted = True
    else:
        never_updated = last.estimates_left == voting.estimate_cap
        yes = settings.votes_yes(epoch, counts, None if never_updated else state.reference, used)
        votes = voting.vote_randomizer.randomize(2 * yes.astype(np.int8) - 1, private)
        wanted, used = bool(np.mean(votes > 0) > voting.update_cut), used + yes
    if not last.pays(voting, wanted):
        release = last.next(wanted, None, settings.votes_left(epoch))
        return State(state.reference, used, release, settings), release
    estimates = _reported(settings, counts, last.estimates_left > 0, public, private)
    release = last.next(wanted, estimates, settings.votes_left(epoch))
    return State(counts, used, release, settings), release


def _reported(
    settings: HeavyThresh,
    counts: NDArray[np.int64],
    truthful: bool,
    public: np.random.Generator,
    private: np.random.Generator,
) -> Words:
    place = public.integers(0, settings.width, size=settings.voting.n_users)
    means = _signed_means(settings, counts, place) if truthful else np.zeros(len(counts))
    plus = settings.draw_plus(means, private)
    return settings.estimates(np.bincount(place, weights=2 * plus.astype(np.int8) - 1, minlength=settings.width))


def histograms(counts: ArrayLike, n_users: int, n_words: int, length: int) -> NDArray[np.int64]:
    """`counts` as integers, (n_users, n_words); the error names the first user whose words are not `length` in all."""
    shape, array = (n_users, n_words), np.asarray(counts)
    if array.dtype.kind not in "iu" or array.shape != shape:
        raise TypeError(f"counts must be integers, {shape}, got {array.dtype} {array.shape}")
    outside = (array < 0) | (array > length)
    if outside.any():  # before the sums: a negative count can make up for one that is too large
        user, word = np.argwhere(outside)[0].tolist()
        raise ValueError(f"counts must lie in [0, {length}], got {array[user, word]} of word {word} for user {user}")
    array = array.astype(np.int64, copy=False)
    sums = array.sum(axis=1)
    if np.any(sums != length):
        user = int(np.argmax(sums != length))
        raise ValueError(f"counts must add up to epoch_length = {length} words a user, got {sums[user]} for user {user}")
    return array


def _signed_means(settings: HeavyThresh, counts: NDArray[np.integer], place: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n_users,): the mean sign of each user's words at the user's own coordinate; no transform needed."""
    signs = settings.signs(place[:, None], np.arange(settings.n_words)[None, :])
    return np.asarray(np.einsum("iv,iv->i", signs, counts, dtype=float) / settings.voting.epoch_length)


def run(
    settings: HeavyThresh,
    stream: WordStream,
    words: np.random.Generator,
    public: np.random.Generator,
    private: np.random.Generator,
) -> list[Release[Words]]:
    """All epochs of `stream`, user by user; `words` draws the users' data."""
    state, releases = start(settings), []
    for epoch in range(1, stream.horizon + 1):
        state, release = step(settings, state, stream.histograms(epoch, words), public, private)
        releases.append(release)
    return releases
