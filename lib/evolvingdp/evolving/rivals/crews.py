"""How many users serve in crews as voters and how many as reporters: the sizes of `crew_thresh` and `crew_words`.

A crew's voters must be heard when a group that holds `share` of the users votes as one, and its noise must not be: both
are binomial tails, exact for one group; for a part of a crew the tail is bounded by Hoeffding (1956), the part by his
inequality. The rest of the users report: in `changes` + 1 planned updates as many each, in a spare one a quarter of that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from scipy.stats import binom

from evolvingdp.core import checks
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.evolving.constants import VOTES_PER_CHANGE, check_beta, smallest_group, smallest_users
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.evolving.thresh_protocol import E, Release

LARGEST = 2**53  # from here on a float holds no such count, and a binomial quantile is not a number
SPARE = 4  # reporters of a planned update for each of a spare one


@dataclass(frozen=True)
class Crews:
    """`count` crews of `voters` each, whose yes votes make an update when they are more than `cut`."""

    count: int
    voters: int
    cut: int
    cell: int  # reporters of a planned update
    spare_cell: int

    @classmethod
    def plan(
        cls,
        n_users: int,
        horizon: int,
        epsilon: float,
        changes: int,
        spare: int,
        min_group: int | None,
        n_groups: int,
        beta: float,
    ) -> Crews:
        """As few voters as can be heard. Raises ValueError that names a number of users, or says that none would do."""
        checks.integer_at_least(0, changes=changes, spare=spare)
        checks.integer_at_least(1, horizon=horizon)
        checks.positive(epsilon=epsilon)
        check_beta(beta)
        share = smallest_group(min_group, n_users, n_groups) / n_users
        count, planned = changes + 1 + spare, changes + 1

        def cut(voters: int) -> int | None:
            return heard_cut(voters, horizon, epsilon / (2 * VOTES_PER_CHANGE), share, n_groups, count, beta)

        voters = smallest_users(lambda voters: cut(voters) is not None, 1)
        if voters is None:
            raise ValueError(
                f"epsilon must be larger, or groups, which have {share:.3g} of all users: at {epsilon!r} they are not heard "
                f"among any number of voters below {LARGEST:,}, got n_users {n_users:,}"
            )
        needed = count * voters + SPARE * planned + spare
        if n_users < needed:
            raise ValueError(
                f"n_users must be at least {needed:,} for {count} crews of {voters:,} voters, whom {changes} changes of "
                f"groups of {share:.3g} of all users need at epsilon {epsilon!r}, got {n_users:,}"
            )
        cell = int((n_users - count * voters) // (planned + spare / SPARE))
        decided = cut(voters)
        assert decided is not None
        return cls(count, voters, decided, cell, cell // SPARE)

    def voting(self, horizon: int, epoch_length: int, epsilon: float, unit: float, beta: float, reach: int = 1) -> Thresh:
        """The THRESH of the voters of one crew, who spend all of epsilon on votes for one change."""
        a = epsilon / (2 * VOTES_PER_CHANGE)
        margin = (self.cut + 0.5) / self.voters - SignFlip(a).flip
        caps = VOTES_PER_CHANGE, self.count
        return Thresh(self.voters, horizon, epoch_length, epsilon, a, 0.0, *caps, unit, beta, margin=margin, reach=reach)


def check_voting(voting: Thresh, epsilon: float, together: int, n_users: int) -> None:
    """Raise ValueError unless voters spend at most `epsilon`, on votes alone, start and end as crews do, and all `together`
    are at most `n_users`."""
    if voting.estimate_epsilon or voting.privacy_loss > epsilon * (1 + 1e-9):
        raise ValueError(f"voting must have estimate_epsilon 0 and a loss of at most {epsilon}, got {voting}")
    if voting.start != "forced" or voting.exhaustion != "freeze":
        raise ValueError(
            f"voting must have start='forced' and exhaustion='freeze', as nobody is left to report after the last crew, got "
            f"{voting.start!r} and {voting.exhaustion!r}"
        )
    if together > n_users:
        raise ValueError(f"n_users must be at least {together}, all crews together, got {n_users}")


def served(voting: Thresh, release: Release[E], since: int) -> Release[E]:
    """`release` with the votes that every voter of the crew has left at least, when the crew serves since that epoch."""
    voted = voting.voting_epochs(release.epoch) - voting.voting_epochs(since)
    return replace(release, votes_left=max(0, voting.vote_cap - voted))


def heard_cut(
    voters: int, horizon: int, vote_epsilon: float, share: float, n_groups: int, crews: int, beta: float
) -> int | None:
    """The yes votes above which an update follows, from noise alone with probability beta / 10 in all epochs at most; None
    where a group with `share` of the users does not exceed it, but with probability beta / 6 in all epochs and crews."""
    if voters >= LARGEST:
        return None
    randomizer = SignFlip(vote_epsilon)
    cut, group = int(binom.isf(beta / (10 * horizon), voters, randomizer.flip)), float(voters)
    if share < 1:
        group = share * voters - math.sqrt(voters * math.log(12 * n_groups * crews / beta) / 2)
    yes = randomizer.flip + group / voters * (randomizer.keep - randomizer.flip)
    if group <= 0 or cut > yes * voters - 1:
        return None
    return cut if binom.cdf(cut, voters, yes) <= beta / (12 * n_groups * horizon) else None
