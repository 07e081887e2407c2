"""THRESH: keep the mean of a bit up to date, paying for changes and not for epochs.

**Computes** an estimate of the population's mean bit in each of `horizon` epochs. Users compare each epoch's own mean with
that of the last update and vote; only when enough votes say so is the estimate computed again.

**Guarantee.** Pure epsilon-local differential privacy of **everything that one user ever sends**; neighbouring inputs are
any two sequences of bits of that user, whatever the other users and the server do. The loss is exactly 2 * vote_cap *
vote_epsilon + estimate_cap * estimate_epsilon (`privacy_loss`) where the horizon has room for it and thresholds are below 1.

A user sends at most `vote_cap` truthful votes of `vote_epsilon` and `estimate_cap` truthful estimates of `estimate_epsilon`;
two inputs can make it vote at different times.

**Error.** `error_bound`, with probability 1 - beta in all epochs while no more than `changes` changes have happened, if each
group holds `heard_group` users or more and bits are independent within an epoch.

**Source.** Algorithms 1 to 3 of the paper: `votes_yes` is lines 2-3 of Algorithm 2, `update_cut` line 10 of Algorithm 1;
the protocol is in `protocol`, its exact simulation in `thresh_simulation`. beta is the paper's delta. Applies E-EV-1
(integer caps), E-EV-2, E-EV-3, E-EV-4, E-EV-5, E-EV-6 and E-EV-7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.evolving.constants import (
    VOTES_PER_CHANGE,
    check_beta,
    paper_caps,
    paper_epsilons,
    smallest_group,
    smallest_vote_epsilon,
    unit,
)

EXHAUSTIONS = ("freeze", "printed")


@checks.plain
@dataclass(frozen=True)
class Thresh:
    """A THRESH with all its numbers. Make one with `Thresh.paper`, `Thresh.tuned` or, to see it fail, `Thresh.printed`.

    Epoch 1 is a public update without votes (E-EV-2). `exhaustion="freeze"`: when no estimates are left, the last one stays
    and the release says so; `"printed"`: updates go on with reports that hold nothing, and the estimate falls to about 0
    (E-EV-6).
    """

    n_users: int
    horizon: int  # T, epochs
    epoch_length: int  # ell, bits of a user in an epoch
    epsilon: float  # of a user, over the whole horizon
    vote_epsilon: float  # a
    estimate_epsilon: float  # b
    vote_cap: int
    estimate_cap: int
    unit: float  # t_ell: every user's mean of an epoch is this close to the truth, with probability 1 - beta / 6
    beta: float = 0.05
    exhaustion: str = "freeze"
    margin: float | None = None  # share of yes votes above those of silence that makes an update; None: line 10's
    reach: int = 1  # the largest distance that `unit` is a part of: 1 of means, 2 of signed means

    def __post_init__(self) -> None:
        checks.integer_at_least(1, n_users=self.n_users, horizon=self.horizon, epoch_length=self.epoch_length)
        checks.integer_at_least(0, vote_cap=self.vote_cap)
        checks.integer_at_least(1, estimate_cap=self.estimate_cap, reach=self.reach)
        checks.positive(epsilon=self.epsilon, vote_epsilon=self.vote_epsilon, unit=self.unit)
        checks.positive(estimate_epsilon=self.estimate_epsilon)
        check_beta(self.beta)
        if self.margin is not None:
            checks.probability(margin=self.margin)
        checks.one_of(EXHAUSTIONS, exhaustion=self.exhaustion)
        if self.privacy_loss > self.epsilon * (1 + 1e-9):
            raise ValueError(
                f"epsilon must be at least 2 * vote_cap * vote_epsilon + estimate_cap * estimate_epsilon = "
                f"{self.privacy_loss:.4g}, got {self.epsilon!r}"
            )
        if self.vote_cap and self.cut(1 << self.levels) > self.reach * self.epoch_length:  # that nobody can ever cast
            lowest = self.threshold(1 << self.levels)
            needed = math.floor(self.epoch_length * (lowest / self.reach) ** 2) + 1
            raise ValueError(
                f"epoch_length must be at least {needed:,} for anybody to vote, got {self.epoch_length}: the lowest "
                f"threshold is {lowest:.3g}, and no distance is above {self.reach}; vote_cap=0, nobody voting, would work"
            )

    @classmethod
    def paper(
        cls,
        n_users: int,
        horizon: int,
        epoch_length: int,
        epsilon: float,
        *,
        min_group: int | None = None,
        n_groups: int = 1,
        beta: float = 0.05,
        changes: int | None = None,
        spare: int = 0,
        **options: Any,
    ) -> Thresh:
        """The paper's a and b. Caps floor(epsilon / 4a) and floor(epsilon / 4b), which is what its proof allows; with
        `changes`, an estimate for the start, for each change and `spare` more, and votes for what is left.

        Raises ValueError that says from which size on it would work where b is not positive or nothing fits the budget.
        """

        checks.positive(epsilon=epsilon)
        group = smallest_group(min_group, n_users, n_groups)
        own = paper_epsilons(n_users, horizon, epoch_length, group, n_groups, beta)
        caps = paper_caps(epsilon, *own, changes, spare)
        step = unit(n_users, horizon, epoch_length, beta)
        return cls(n_users, horizon, epoch_length, epsilon, *caps, step, beta, **options)

    @classmethod
    def printed(
        cls,
        n_users: int,
        horizon: int,
        epoch_length: int,
        epsilon: float,
        beta: float = 0.05,
    ) -> Thresh:
        """The caps as printed, for one group, which overshoot (E-EV-1): the `epsilon` of the result is what it costs."""
        checks.positive(epsilon=epsilon)
        vote, estimate = paper_epsilons(n_users, horizon, epoch_length, n_users, 1, beta)
        votes, estimates = math.floor(epsilon / (4 * vote)) + 1, math.ceil(epsilon / (4 * estimate))
        cost = 2 * votes * vote + estimates * estimate
        step = unit(n_users, horizon, epoch_length, beta)
        return cls(n_users, horizon, epoch_length, cost, vote, estimate, votes, estimates, step, beta)

    @classmethod
    def tuned(
        cls,
        n_users: int,
        horizon: int,
        epoch_length: int,
        epsilon: float,
        *,
        changes: int,
        min_group: int | None = None,
        n_groups: int = 1,
        beta: float = 0.05,
        spare: int = 1,
        deviation: float | None = None,
        **options: Any,
    ) -> Thresh:
        """The same proof with the budget spent well: the smallest a that Lemma 7.2 allows, four votes a change, and all
        the rest for estimates: one for the start, one a change and `spare` (for an update that nothing asked for).
        Thresholds are multiples of `deviation`, Lemma 7.3's t_ell where it is None.

        Raises ValueError that names the smallest epsilon and group that would work where the votes use up the budget.
        """
        checks.integer_at_least(0, changes=changes, spare=spare)
        checks.positive(epsilon=epsilon)
        group = smallest_group(min_group, n_users, n_groups)
        vote = smallest_vote_epsilon(n_users, horizon, group, n_groups, beta)
        votes = VOTES_PER_CHANGE * changes
        left = epsilon - 2 * votes * vote
        if left <= 0:
            raise ValueError(
                f"epsilon must be > {2 * votes * vote:.4g}, what {votes} votes cost with groups of {group} users and more "
                f"({n_users} users), got {epsilon!r}; fewer changes or larger groups (min_group) would work, too"
            )
        estimates = changes + 1 + spare
        if deviation is not None:
            checks.positive(deviation=deviation)
        step = unit(n_users, horizon, epoch_length, beta) if deviation is None else deviation
        return cls(n_users, horizon, epoch_length, epsilon, vote, left / estimates, votes, estimates, step, beta, **options)

    @property
    def voting(self) -> Thresh:
        """As of HEAVYTHRESH."""
        return self

    @property
    def unknown(self) -> float:
        """The estimate before the first."""
        return math.nan

    @property
    def privacy_loss(self) -> float:
        """The worst case of one user's whole transcript: 2 vote_cap a + estimate_cap b."""
        return 2 * self.vote_cap * self.vote_epsilon + self.estimate_cap * self.estimate_epsilon

    @cached_property
    def vote_randomizer(self) -> SignFlip:
        """Of a vote."""
        return SignFlip(self.vote_epsilon)

    @cached_property
    def estimate_randomizer(self) -> SignFlip:
        """Of a report of an estimate."""
        return SignFlip(self.estimate_epsilon)

    @cached_property
    def update_cut(self) -> float:
        """The share of yes votes above which an update follows: 1/(e^a + 1) + sqrt(ln(10 T / beta) / 2n)."""
        printed = math.sqrt(math.log(10 * self.horizon / self.beta) / (2 * self.n_users))
        return self.vote_randomizer.flip + (printed if self.margin is None else self.margin)

    @property
    def levels(self) -> int:
        """floor(log2 T): the largest j of a threshold."""
        return self.horizon.bit_length() - 1  # floor(log2 T)

    def threshold(self, epoch: int) -> float:
        """The distance of means above which a user votes yes in `epoch` (1 to horizon): 2 (levels - nu2 + 1) t_ell, where
        2^nu2 is the largest power of two that divides the epoch. The same as lines 2-3 of Algorithm 2."""
        trailing = (epoch & -epoch).bit_length() - 1
        return 2 * (self.levels - trailing + 1) * self.unit

    def cut(self, epoch: int) -> int:
        """The smallest difference of counts of ones above the threshold."""
        return math.floor(self.epoch_length * self.threshold(epoch)) + 1

    def voting_epochs(self, epoch: int) -> int:
        """In how many epochs, up to `epoch`, the data of a user can make it vote: not where a threshold is out of reach."""
        for trailing in range(self.levels + 1):
            if self.cut(1 << trailing) <= self.reach * self.epoch_length:
                return (epoch >> trailing) - (trailing == 0 and epoch > 0)
        return 0

    def votes_left(self, epoch: int) -> int:
        """Truthful votes that every user has left after `epoch`, at least, whatever its data: public, and attained."""
        return max(0, self.vote_cap - self.voting_epochs(epoch))

    def votes_yes(
        self, epoch: int, counts: NDArray[np.integer], reference: NDArray[np.integer], used: NDArray[np.integer]
    ) -> NDArray[np.bool_]:
        """VoteYes of Algorithm 2 for users with `counts` ones now and `reference` ones at the last update, who have sent
        `used` truthful votes. Secret."""
        return (np.abs(counts - reference) >= self.cut(epoch)) & (used < self.vote_cap)

    def checked(self, counts: ArrayLike) -> NDArray[np.int64]:
        """`counts` of ones in an epoch as integers, (n_users,)."""
        held = checks.integer_array("counts", counts, below=self.epoch_length + 1)
        if len(held) != self.n_users:
            raise ValueError(f"counts must have one entry per user ({self.n_users}), got {len(held)}")
        return held

    def reported(self, counts: NDArray[np.int64], truthful: bool, public: Any, private: np.random.Generator) -> float:
        """The estimate of an update, from the reports of users with these counts; without `truthful` from noise."""
        shares = counts / self.epoch_length if truthful else np.zeros(len(counts))
        return self.estimate(int(np.count_nonzero(self.draw_reports(shares, private))))

    def report_one(self, share: NDArray[np.floating] | float) -> Any:
        """The probability that a user whose bits have mean `share` reports 1: (1 + share (e^b - 1)) / (e^b + 1)."""
        return self.estimate_randomizer.report_one(share)

    def draw_reports(self, shares: NDArray[np.floating], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Which users report 1, (n_users,), with bits of mean `shares`: a draw per user, never less private for rounding."""
        return self.estimate_randomizer.draw_reports(shares, rng)

    def estimate(self, ones: int) -> float:
        """The population's mean from the number of reported ones: line 16 of Algorithm 1, unbiased, not clipped."""
        randomizer = self.estimate_randomizer
        return (ones / self.n_users - randomizer.flip) / (randomizer.keep - randomizer.flip)

    @property
    def changes(self) -> int:
        """How many changes the caps survive: each may cost an estimate and four votes; the start costs an estimate."""
        return max(0, min(self.estimate_cap - 1, self.vote_cap // VOTES_PER_CHANGE))

    @property
    def estimate_error(self) -> float:
        """Bound on the error of every update, with probability 1 - beta / 3: (coth(b/2) + 1) sqrt(ln(12 T / beta) / 2n)."""
        return (self.estimate_randomizer.debias + 1) * math.sqrt(
            math.log(12 * self.horizon / self.beta) / (2 * self.n_users)
        )

    @property
    def error_bound(self) -> float:
        """Bound on the error of every release while no more than `changes` changes have happened, with probability 1 - beta,
        where all groups hold `heard_group` users or more; inf where that is more than there are (votes too noisy), where
        `margin` is not the printed one, or `unit` less than Lemma 7.3's: nothing is proved for these. From 1 on it says
        nothing.
        """
        proved = unit(self.n_users, self.horizon, self.epoch_length, self.beta)
        if self.margin is not None or self.unit < proved * (1 - 1e-12) or not self.heard:
            return math.inf
        return 2 * (self.levels + 2) * self.unit + self.estimate_error

    def heard_group(self, n_groups: int = 1) -> float:
        """The smallest group whose yes votes make an update, in all epochs but with probability beta / 12: Lemma 7.2 for
        this a and cut; above n_users where nobody is heard."""
        votes = math.sqrt(self.n_users * math.log(12 * n_groups * self.horizon / self.beta) / 2)
        above_silence = self.update_cut - self.vote_randomizer.flip
        return (votes + self.n_users * above_silence) / math.tanh(self.vote_epsilon / 2)

    @property
    def heard(self) -> bool:
        """Whether a change is found that all users see, as the proof needs it."""
        return self.heard_group() <= self.n_users * (1 + 1e-9)

    @property
    def standard_error(self) -> float:
        """Of one update at mean 1/2: coth(b/2) / (2 sqrt(n)), nearly exact for other means at small b."""
        return self.estimate_randomizer.debias / (2 * math.sqrt(self.n_users))
