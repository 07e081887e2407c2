"""THRESH and HEAVYTHRESH user by user: what each device keeps and sends, and what the server makes of it.

The state of `start` and `step` is **secret** (the users' reference counts and what they have spent); the release is public.
Guarantee and source: `thresh` and `heavy_thresh`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.evolving.streams import BitStream, WordStream
from evolvingdp.evolving.thresh import Thresh

if TYPE_CHECKING:  # THRESH needs nothing of it
    from evolvingdp.evolving.heavy_thresh import HeavyThresh

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


def before(settings: Thresh | HeavyThresh) -> Release[Any]:
    """Before the first epoch, nothing is known."""
    voting = settings.voting
    return Release(0, settings.unknown, False, voting.estimate_cap, False, voting.votes_left(0))


def start(settings: Thresh | HeavyThresh) -> State[Any]:
    """Before the first epoch."""
    nothing = np.zeros(settings.voting.n_users, dtype=np.int64)
    return State(nothing, nothing, before(settings), settings)


@checks.draws
def step(
    settings: Thresh | HeavyThresh,
    state: State[Any],
    counts: ArrayLike,
    public: np.random.Generator,
    private: np.random.Generator,
) -> tuple[State[Any], Release[Any]]:
    """An epoch in which user i has counts[i] ones among `epoch_length` bits, (n_users,), or, of HEAVYTHRESH, counts[i, v]
    words v, (n_users, n_words), `epoch_length` in all.

    `public` gives each user of HEAVYTHRESH its coordinate in an update, `private` all noise. Raises TypeError or ValueError
    before any noise, for other counts (a mean that is out of range would cost more than the budget) and when the horizon is
    over: the thresholds are made for it.
    """
    checks.state(state, State, settings)
    voting, last = settings.voting, state.release
    epoch = last.epoch + 1
    if epoch > voting.horizon:
        raise ValueError(f"horizon must be larger to go on: {voting.horizon} epochs are over")
    held = settings.checked(counts)
    used, wanted = state.used, True
    if epoch > 1:  # the first is a public update, without votes (E-EV-2)
        yes = settings.votes_yes(epoch, held, state.reference, used)
        votes = voting.vote_randomizer.randomize(2 * yes.astype(np.int8) - 1, private)
        wanted = bool(np.mean(votes > 0) > voting.update_cut)
        used = used + yes
    estimate, reference = None, state.reference
    if last.pays(voting, wanted):
        estimate = settings.reported(held, last.estimates_left > 0, public, private)
        reference = held
    release = last.next(wanted, estimate, voting.votes_left(epoch))
    return State(reference, used, release, settings), release


@checks.draws
def run(
    settings: Thresh | HeavyThresh,
    stream: BitStream | WordStream,
    *,
    words: np.random.Generator,
    public: np.random.Generator,
    private: np.random.Generator,
) -> list[Release[Any]]:
    """All epochs of `stream`, user by user; `words` draws the users' data."""
    state, releases = start(settings), []
    for epoch in range(1, stream.horizon + 1):
        held = stream.counts(epoch, words) if isinstance(stream, BitStream) else stream.histograms(epoch, words)
        state, release = step(settings, state, held, public, private)
        releases.append(release)
    return releases
