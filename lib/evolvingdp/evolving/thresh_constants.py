"""The constants of THRESH: the paper's a and b, the smallest a that its proof allows, and the deviation t_ell."""

from __future__ import annotations

import math

from evolvingdp.core import checks


def unit(n_users: int, horizon: int, epoch_length: int, beta: float) -> float:
    """t_ell = sqrt(ln(12 n T / beta) / (2 ell)), Lemma 7.3."""
    checks.integer_at_least(1, n_users=n_users, horizon=horizon, epoch_length=epoch_length)
    check_beta(beta)
    return math.sqrt(math.log(12 * n_users * horizon / beta) / (2 * epoch_length))


def paper_error_bound(n_users: int, horizon: int, epoch_length: int, beta: float) -> float:
    """Theorem 4.3: 4 (floor(log2 T) + 2) t_ell."""
    return 4 * (horizon.bit_length() + 1) * unit(n_users, horizon, epoch_length, beta)


def paper_epsilons(
    n_users: int, horizon: int, epoch_length: int, min_group: int, n_groups: int, beta: float
) -> tuple[float, float]:
    """Lines 4 and 5 of Algorithm 1: a, b. ValueError where one is not positive, with the size from which it would be."""
    checks.integer_at_least(1, n_users=n_users, horizon=horizon, epoch_length=epoch_length, n_groups=n_groups)
    _check_group(min_group, n_users)
    check_beta(beta)
    log_groups, log_epochs = math.log(12 * n_groups * horizon / beta), math.log(12 * horizon / beta)
    room = min_group - 3 / math.sqrt(2) * math.sqrt(n_users * log_groups)
    if room <= 0:
        raise ValueError(
            f"min_group must be > {3 / math.sqrt(2) * math.sqrt(n_users * log_groups):,.0f} for the paper's a to exist with "
            f"{n_users} users, got {min_group}"
        )
    sampling = math.sqrt(log_epochs / (2 * n_users))
    gap = math.log2(horizon) * unit(n_users, horizon, epoch_length, beta) - sampling
    if gap <= 0:
        longest = math.log2(horizon) ** 2 * math.log(12 * n_users * horizon / beta) * n_users / log_epochs
        raise ValueError(
            f"epoch_length must be < {longest:,.0f} for the paper's b to be positive with {n_users} users and horizon "
            f"{horizon}, got {epoch_length} (E-EV-3)"
        )
    return 4 * math.sqrt(2 * n_users * log_groups) / room, math.sqrt(2) * sampling / gap


def smallest_vote_epsilon(n_users: int, horizon: int, min_group: int, n_groups: int, beta: float) -> float:
    """The smallest a for which a group that votes yes as one causes an update, except with probability beta / 12 over all
    epochs and groups: Lemma 7.2's condition itself, with Hoeffding's inequality for all votes at once."""
    checks.integer_at_least(1, horizon=horizon, n_groups=n_groups)
    _check_group(min_group, n_users)
    check_beta(beta)
    votes = math.sqrt(n_users * math.log(12 * n_groups * horizon / beta) / 2)
    cut = math.sqrt(n_users * math.log(10 * horizon / beta) / 2)
    if votes + cut >= min_group:
        raise ValueError(
            f"min_group must be > {votes + cut:,.0f} for its vote to be heard among {n_users} users, got {min_group}"
        )
    return 2 * math.atanh((votes + cut) / min_group)


def smallest_group(min_group: int | None, n_users: int, n_groups: int) -> int:
    """The size of the smallest group: all users where there is one group."""
    checks.integer_at_least(1, n_users=n_users, n_groups=n_groups)
    if min_group is None:
        if n_groups > 1:
            raise ValueError(f"min_group must be given where there are several groups, got n_groups {n_groups}")
        return n_users
    checks.integer_at_least(1, min_group=min_group)
    if n_groups * min_group > n_users:
        raise ValueError(f"min_group must be at most n_users / n_groups = {n_users // n_groups}, got {min_group}")
    return min_group


def _check_group(min_group: int, n_users: int) -> None:
    checks.integer_at_least(1, min_group=min_group)
    if min_group > n_users:
        raise ValueError(f"min_group must be at most n_users = {n_users}, got {min_group}")


def check_beta(beta: float) -> None:
    if not 0 < beta < 1:
        raise ValueError(f"beta must lie in (0, 1), got {beta!r}")
