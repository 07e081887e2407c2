"""HEAVYTHRESH user by user, and simulated for changes that all users see alike.

The state of `start` and `step` is **secret**; the release is public. Guarantee and source: `heavy_thresh`. The start is a
public update in epoch 1.

**The simulation** draws the votes of a group all at once. That is possible where every user of it votes alike, which
Hoeffding's inequality decides: each signed mean is within u of its expectation but for a probability exp(-ell u^2 / 4). Its
law then differs from that of the protocol by at most `Trace.distance` in total variation, a bound that it adds up and that
is refused above `TOLERANCE`; the reports of an update are drawn exactly, coordinate by coordinate, at a cost that does not
grow with the users.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.evolving.heavy_thresh import HeavyThresh

TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class WordStream:
    """`sizes` (groups,) users; in epoch t (from 1) the words of group g are drawn from distributions[which[g, t - 1]]."""

    sizes: NDArray[np.int64]
    distributions: NDArray[np.float64]  # (k, n_words), rows sum to 1
    which: NDArray[np.int64]  # (groups, epochs)
    epoch_length: int

    @classmethod
    def make(cls, sizes: ArrayLike, distributions: ArrayLike, which: ArrayLike, epoch_length: int) -> WordStream:
        checks.counts(sizes=sizes)
        checks.integer_at_least(1, epoch_length=epoch_length)
        laws, index = np.atleast_2d(np.asarray(distributions, dtype=float)), np.atleast_2d(np.asarray(which))
        if not np.all(laws >= 0) or not np.allclose(laws.sum(axis=1), 1):
            raise ValueError("distributions must hold rows of probabilities that sum to 1")
        if len(index) != np.size(sizes) or index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= len(laws):
            raise ValueError(f"which must be (groups, epochs) row numbers below {len(laws)} for {np.size(sizes)} groups")
        return cls(np.asarray(sizes, dtype=np.int64), laws, index.astype(np.int64), epoch_length)

    @property
    def n_users(self) -> int:
        return int(self.sizes.sum())

    @property
    def truth(self) -> NDArray[np.float64]:
        """(epochs, n_words): the mean of all users' distributions in each epoch."""
        weights = np.zeros((self.which.shape[1], len(self.distributions)))
        for size, row in zip(self.sizes, self.which, strict=True):
            weights[np.arange(len(row)), row] += size / self.n_users
        return weights @ self.distributions

    def counts(self, epoch: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """(n_users, n_words) counts of every user's words in `epoch`, group by group."""
        laws = (self.distributions[row[epoch - 1]] for row in self.which)
        drawn = [rng.multinomial(self.epoch_length, law, size=size) for size, law in zip(self.sizes, laws, strict=True)]
        return np.concatenate(drawn)


@dataclass(frozen=True, eq=False)
class HeavyRelease:
    """What everybody sees after an epoch."""

    epoch: int
    estimates: NDArray[np.float64]  # (n_words,) frequencies, unbiased, not clipped; the same object until the next update
    updated: bool
    estimates_left: int
    frozen: bool


@dataclass(frozen=True, eq=False)
class HeavyState:
    """What the devices keep. Secret, but for `release`, the last one."""

    reference: NDArray[np.int64]  # (n_users, n_words) counts in the epoch of the last update
    used: NDArray[np.int64]  # (n_users,) truthful votes sent
    release: HeavyRelease


def start(settings: HeavyThresh) -> HeavyState:
    """Before the first epoch; raises ValueError for another start than a forced one, and for the printed exhaustion."""
    voting = settings.voting
    if (voting.start, voting.exhaustion) != ("forced", "freeze"):
        raise ValueError(f"start must be 'forced' and exhaustion 'freeze', got {voting.start!r} and {voting.exhaustion!r}")
    nothing = np.zeros((voting.n_users, settings.n_words), dtype=np.int64)
    return HeavyState(nothing, nothing[:, 0], _before(settings))


def _before(settings: HeavyThresh) -> HeavyRelease:
    unknown = np.full(settings.n_words, math.nan)
    return HeavyRelease(0, unknown, False, settings.voting.estimate_cap, False)


def _after(last: HeavyRelease, wanted: bool, estimates: NDArray[np.float64] | None) -> HeavyRelease:
    """The release of the next epoch; `estimates` where an update was wanted and could be paid for."""
    if estimates is None:
        return HeavyRelease(last.epoch + 1, last.estimates, False, last.estimates_left, wanted)
    return HeavyRelease(last.epoch + 1, estimates, True, last.estimates_left - 1, False)


def step(
    settings: HeavyThresh,
    state: HeavyState,
    counts: NDArray[np.integer],
    public: np.random.Generator,
    private: np.random.Generator,
) -> tuple[HeavyState, HeavyRelease]:
    """An epoch in which user i has counts[i, v] words v, (n_users, n_words), `epoch_length` in all.

    `public` gives each user its coordinate in an update, `private` all noise.
    """
    voting, last = settings.voting, state.release
    epoch = last.epoch + 1
    if epoch > voting.horizon:
        raise ValueError(f"horizon must be larger to go on: {voting.horizon} epochs are over")
    if counts.shape != (voting.n_users, settings.n_words) or not np.all(counts.sum(axis=1) == voting.epoch_length):
        raise ValueError(
            f"counts must be ({voting.n_users}, {settings.n_words}) with {voting.epoch_length} words a user, got "
            f"{counts.shape}"
        )
    wanted, used = epoch == 1, state.used
    if epoch > 1:
        yes = settings.votes_yes(epoch, counts, state.reference, used)
        votes = voting.vote_randomizer.randomize(2 * yes.astype(np.int8) - 1, private)
        wanted, used = bool(np.mean(votes > 0) > voting.update_cut), used + yes
    if not wanted or last.estimates_left == 0:
        release = _after(last, wanted, None)
        return HeavyState(state.reference, used, release), release
    place = public.integers(0, settings.width, size=voting.n_users)
    plus = private.random(voting.n_users) < settings.report_plus(_signed_means(settings, counts, place))
    sums = np.bincount(place, weights=2 * plus.astype(np.int8) - 1, minlength=settings.width)
    release = _after(last, wanted, settings.estimates(sums))
    return HeavyState(np.asarray(counts, dtype=np.int64), used, release), release


def _signed_means(settings: HeavyThresh, counts: NDArray[np.integer], place: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n_users,): the mean sign of each user's words at the user's own coordinate; no transform needed."""
    signs = settings.projection.signs(place[:, None], np.arange(settings.n_words)[None, :])
    return np.asarray(np.einsum("iv,iv->i", signs, counts, dtype=float) / settings.voting.epoch_length)


@dataclass(frozen=True, eq=False)
class Trace:
    """`public`: a release an epoch. `votes_cast`: how often each group has voted yes, secret. `distance`: see above."""

    public: list[HeavyRelease]
    votes_cast: list[int]
    distance: float


def simulate(settings: HeavyThresh, stream: WordStream, rng: np.random.Generator) -> Trace:
    """Releases with the law of `step`, but for `Trace.distance`.

    Raises ValueError where a stream does not fit, and where some users of a group would see a change and others not: epoch,
    group and what would decide it are named.
    """
    voting = settings.voting
    sizes = (stream.n_users, stream.which.shape[1], stream.epoch_length, stream.distributions.shape[1])
    if sizes != (voting.n_users, voting.horizon, voting.epoch_length, settings.n_words):
        raise ValueError(
            f"stream must have the sizes of the settings, got n_users, horizon, epoch_length, n_words = {sizes}"
        )
    release, releases, distance = _before(settings), [], 0.0
    reference, cast, moved = stream.which[:, 0], [0] * len(stream.sizes), {}
    hashed = Hashed(settings, stream)
    for epoch in range(1, voting.horizon + 1):
        now, wanted = stream.which[:, epoch - 1], epoch == 1
        if epoch > 1:
            yes = 0
            for group, pair in enumerate(zip(now.tolist(), reference.tolist(), strict=True)):
                if pair not in moved:
                    moved[pair] = float(np.abs(hashed[pair[0]] - hashed[pair[1]]).max())
                alike, missed = _vote_alike(settings, epoch, moved[pair])
                distance += missed * int(stream.sizes[group])
                if distance > TOLERANCE:
                    raise ValueError(
                        f"stream must change so that all users of a group see it alike: in epoch {epoch} group {group} has "
                        f"moved by {moved[pair]:.4g}, the threshold is {voting.threshold(epoch):.4g}; longer epochs would "
                        "decide it, or fewer users run one by one"
                    )
                if alike and cast[group] < voting.vote_cap:
                    cast[group] += 1
                    yes += int(stream.sizes[group])
            randomizer = voting.vote_randomizer
            shown = rng.binomial(yes, randomizer.keep) + rng.binomial(voting.n_users - yes, randomizer.flip)
            wanted = bool(shown / voting.n_users > voting.update_cut)
        estimates = None
        if wanted and release.estimates_left:
            estimates, reference = settings.estimates(reported_sums(hashed, epoch, rng)), now
        release = _after(release, wanted, estimates)
        releases.append(release)
    return Trace(releases, cast, distance)


def _vote_alike(settings: HeavyThresh, epoch: int, moved: float) -> tuple[bool, float]:
    """Whether a user votes yes when the expected signed means have moved by `moved` at most, and how likely it does not."""
    voting = settings.voting
    gap = moved - voting.threshold(epoch)
    missed = math.exp(-voting.epoch_length * gap**2 / 4)  # of one coordinate: the one that moved most, or any of them
    return (True, missed) if gap > 0 else (False, min(1.0, 2 * settings.width * missed))


class Hashed(dict[int, NDArray[np.float64]]):
    """The expected signed means of each distribution of a stream, (width,), hashed when they are first asked for."""

    def __init__(self, settings: HeavyThresh, stream: WordStream) -> None:
        super().__init__()
        self.settings, self.stream = settings, stream

    def __missing__(self, law: int) -> NDArray[np.float64]:
        signed = self.settings.projection.signed(self.stream.distributions[law][None, :])
        self[law] = np.clip(signed[0], -1, 1)
        return self[law]


def reported_sums(hashed: Hashed, epoch: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """All users' reports in `epoch`, summed by coordinate, (width,): users spread evenly, reports binomial given that."""
    settings, stream = hashed.settings, hashed.stream
    sums = np.zeros(settings.width, dtype=np.int64)
    for size, law in zip(stream.sizes, stream.which[:, epoch - 1], strict=True):
        users = rng.multinomial(size, np.full(settings.width, 1 / settings.width))
        sums += 2 * rng.binomial(users, settings.report_plus(hashed[int(law)])) - users
    return sums


def run(
    settings: HeavyThresh,
    stream: WordStream,
    words: np.random.Generator,
    public: np.random.Generator,
    private: np.random.Generator,
) -> list[HeavyRelease]:
    """All epochs of `stream`, user by user; `words` draws the users' data."""
    state, releases = start(settings), []
    for epoch in range(1, stream.which.shape[1] + 1):
        state, release = step(settings, state, stream.counts(epoch, words), public, private)
        releases.append(release)
    return releases
