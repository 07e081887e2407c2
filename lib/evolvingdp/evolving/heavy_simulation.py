"""HEAVYTHRESH simulated at any number of users, where all of a group vote alike.

The maximum of w correlated coordinates has no closed law; Hoeffding's inequality decides how a group votes: each signed
mean is within u of its expectation but for a probability exp(-ell u^2 / 4). The law of the simulation differs from that of
the protocol by at most `Trace.distance` in total variation, a bound that it adds up and that is refused above `TOLERANCE`.
Reports are drawn exactly, by `Report.draw_sums`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.protocol import Release, before
from evolvingdp.evolving.streams import WordStream

TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Trace:
    """`public`: a release an epoch. The rest is secret but for `distance`, see above: `yes`, the truthful yes votes of each
    epoch, and `votes_cast`, the largest number of truthful votes that a user of each group has cast."""

    public: list[Release[NDArray[np.float64]]]
    yes: list[int]
    votes_cast: list[int]
    distance: float


@checks.draws
def simulate(settings: HeavyThresh, stream: WordStream, rng: np.random.Generator) -> Trace:
    """Releases with the law of `protocol.step`, but for `Trace.distance`.

    Raises ValueError where a stream does not fit, and where some users of a group would see a change and others not: epoch,
    group and what would decide it are named.
    """
    voting = settings.voting
    sizes = (stream.n_users, stream.horizon, stream.epoch_length, stream.n_words)
    if sizes != (voting.n_users, voting.horizon, voting.epoch_length, settings.n_words):
        raise ValueError(
            f"stream must have the sizes of the settings, got n_users, horizon, epoch_length, n_words = {sizes}"
        )
    hashed = Hashed(settings, stream)
    groups = [Alike(hashed, group, size, rng) for group, size in enumerate(stream.sizes.tolist())]
    release, releases, truthful = before(settings), [], []
    randomizer = voting.vote_randomizer
    for epoch in range(1, voting.horizon + 1):
        yes, wanted = 0, True
        if epoch > 1:
            yes = sum(group.vote(epoch) for group in groups)
            shown = rng.binomial(yes, randomizer.keep) + rng.binomial(voting.n_users - yes, randomizer.flip)
            wanted = bool(shown / voting.n_users > voting.update_cut)
        estimates = None
        if release.pays(voting, wanted):
            sums = np.sum([group.update(epoch, release.estimates_left > 0) for group in groups], axis=0)
            estimates = settings.estimates(sums)
        release = release.next(wanted, estimates, voting.votes_left(epoch))
        releases.append(release)
        truthful.append(yes)
    return Trace(releases, truthful, [group.votes_cast for group in groups], hashed.distance)


@checks.draws
class Hashed(dict[int, NDArray[np.float64]]):
    """The expected signed means of each distribution of a stream, (width,), hashed when they are first asked for."""

    def __init__(self, settings: HeavyThresh, stream: WordStream) -> None:
        super().__init__()
        self.settings, self.stream = settings, stream
        self.moved: dict[tuple[int, int], float] = {}
        self.distance = 0.0

    def __missing__(self, law: int) -> NDArray[np.float64]:
        signed = self.settings.signed(self.stream.distributions[law][None, :])
        self[law] = np.clip(signed[0], -1, 1)
        return self[law]

    def largest_move(self, now: int, reference: int) -> float:
        pair = (now, reference)
        if pair not in self.moved:
            self.moved[pair] = float(np.abs(self[now] - self[reference]).max())
        return self.moved[pair]

    def reports(self, size: int, law: int | None, rng: np.random.Generator) -> NDArray[np.int64]:
        """What reports of `size` users add up to, (oracle.width,); None: that hold nothing, or words drawn by lot."""
        words = self.settings.n_words
        nothing = np.full(words, 1 / words if self.settings.report else 0.0)
        held = nothing if law is None else self.stream.distributions[law]
        return self.settings.oracle.draw_sums(np.array([size]), held[None], rng)


class Alike:
    """Users of a group, who vote alike: what each did."""

    def __init__(self, hashed: Hashed, group: int, size: int, rng: np.random.Generator) -> None:
        self.hashed, self.group, self.size, self.rng = hashed, group, size, rng
        self.laws = hashed.stream.which[group].tolist()
        self.reference, self.votes_cast = -1, 0

    def vote(self, epoch: int) -> int:
        voting = self.hashed.settings.voting
        moved = self.hashed.largest_move(self.laws[epoch - 1], self.reference)
        alike, missed = _vote_alike(self.hashed.settings, epoch, moved)
        self.hashed.distance += missed * self.size
        if self.hashed.distance > TOLERANCE:
            raise ValueError(
                f"stream must change so that all users of a group see it alike: in epoch {epoch} group {self.group} has "
                f"moved by {moved:.4g}, the threshold is {voting.threshold(epoch):.4g}; longer epochs would decide it; "
                "protocol.run draws every stream, user by user"
            )
        if not alike or self.votes_cast >= voting.vote_cap:
            return 0
        self.votes_cast += 1
        return self.size

    def update(self, epoch: int, truthful: bool) -> NDArray[np.int64]:
        self.reference = self.laws[epoch - 1]
        return self.hashed.reports(self.size, self.reference if truthful else None, self.rng)


def _vote_alike(settings: HeavyThresh, epoch: int, moved: float) -> tuple[bool, float]:
    """Whether a user votes yes when the expected signed means have moved by `moved` at most, and how likely it does not."""
    voting = settings.voting
    gap = moved - voting.threshold(epoch)
    missed = math.exp(-voting.epoch_length * gap**2 / 4)  # of one coordinate: the one that moved most, or any of them
    return (True, missed) if gap > 0 else (False, min(1.0, 2 * settings.width * missed))


@checks.draws
def reported_sums(hashed: Hashed, epoch: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """What all users' reports in `epoch` add up to, (oracle.width,)."""
    groups = zip(hashed.stream.sizes.tolist(), hashed.stream.which[:, epoch - 1].tolist(), strict=True)
    return np.asarray(np.sum([hashed.reports(size, law, rng) for size, law in groups], axis=0))
