"""THRESH user by user: what each device keeps and sends, and what the server makes of it.

The state of `start` and `step` is **secret** (the users' reference counts and what they have spent); the release is public.
Guarantee and source: `thresh`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.evolving.streams import BitStream
from evolvingdp.evolving.thresh import Thresh

E = TypeVar("E", float, NDArray[np.float64])


@dataclass(frozen=True, eq=False)
class Release(Generic[E]):
    """What everybody sees after an epoch of THRESH, or, with frequencies (n_words,) for `estimate`, of HEAVYTHRESH."""

    epoch: int
    estimate: E  # unbiased, not clipped; the same object until the next update
    updated: bool
    estimates_left: int  # of every user: updates are public, so users run out together
    frozen: bool  # the votes have asked for an update that no user could pay for, and none has come since: may be stale
    votes_left: int  # of every user, at least: how many it has sent is its secret

    @property
    def live(self) -> float:
        """The share of users who can still vote and report truthfully, as far as it is public: all while nobody can have run
        out of votes, none without estimates, else nan: votes are secret, and to estimate their number costs budget."""
        if not self.estimates_left:
            return 0.0
        return 1.0 if self.votes_left else math.nan

    def pays(self, voting: Thresh, wanted: bool) -> bool:
        """Whether an update follows: where the last estimates are used up, only with the printed exhaustion."""
        return wanted and (self.estimates_left > 0 or voting.exhaustion == "printed")

    def next(self, wanted: bool, estimate: E | None, votes_left: int) -> Release[E]:
        """The release of the next epoch; `estimate` where an update follows. Only an update ends `frozen` (E-EV-6)."""
        if estimate is None:
            return Release(self.epoch + 1, self.estimate, False, self.estimates_left, wanted or self.frozen, votes_left)
        return Release(self.epoch + 1, estimate, True, max(0, self.estimates_left - 1), False, votes_left)


@dataclass(frozen=True, eq=False, repr=False)
class State(Generic[E]):
    """What the devices keep. Secret, but for `release`, the last one."""

    reference: NDArray[np.int64]  # (n_users,) ones, or (n_users, n_words) counts, in the epoch of the last update
    used: NDArray[np.int64]  # (n_users,) truthful votes sent
    release: Release[E]
    settings: Any  # whose state it is: `step` refuses it for others


def start(settings: Thresh) -> State[float]:
    """Before the first epoch."""
    nothing = np.zeros(settings.n_users, dtype=np.int64)
    reference = nothing - settings.epoch_length  # a mean of -1: with start="sentinel" all vote yes
    release = Release(0, math.nan, False, settings.estimate_cap, False, settings.votes_left(0))
    return State(reference, nothing, release, settings)


def step(
    settings: Thresh,
    state: State[float],
    counts: NDArray[np.integer],
    rng: np.random.Generator,
) -> tuple[State[float], Release[float]]:
    """An epoch in which user i has counts[i] ones among `epoch_length` bits, (n_users,).

    Raises ValueError when the horizon is over: the thresholds are made for it.
    """
    checks.state(state, State, settings)
    last = state.release
    epoch = last.epoch + 1
    if epoch > settings.horizon:
        raise ValueError(f"horizon must be larger to go on: {settings.horizon} epochs are over")
    counts = checks.integer_array("counts", counts, below=settings.epoch_length + 1)
    if len(counts) != settings.n_users:
        raise ValueError(f"counts must have one entry per user ({settings.n_users}), got {len(counts)}")
    used = state.used
    if epoch == 1 and settings.start == "forced":
        wanted = True
    else:
        yes = settings.votes_yes(epoch, counts, state.reference, used)
        votes = settings.vote_randomizer.randomize(2 * yes.astype(np.int8) - 1, rng)
        wanted = bool(np.mean(votes > 0) > settings.update_cut)
        used = used + yes
    estimate, reference = None, state.reference
    if last.pays(settings, wanted):
        estimate = _reported(settings, counts, last.estimates_left > 0, rng)
        reference = counts
    release = last.next(wanted, estimate, settings.votes_left(epoch))
    return State(reference, used, release, settings), release


def _reported(settings: Thresh, counts: NDArray[np.int64], truthful: bool, rng: np.random.Generator) -> float:
    shares = counts / settings.epoch_length if truthful else np.zeros(len(counts))
    return settings.estimate(int(np.count_nonzero(settings.draw_reports(shares, rng))))


def run(
    settings: Thresh, stream: BitStream, *, bits: np.random.Generator, private: np.random.Generator
) -> list[Release[float]]:
    """All epochs of `stream`, user by user; `bits` draws the users' data, `private` their noise."""
    state, releases = start(settings), []
    for epoch in range(1, stream.horizon + 1):
        state, release = step(settings, state, stream.counts(epoch, bits), private)
        releases.append(release)
    return releases
