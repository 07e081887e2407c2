"""The constants of THRESH and HEAVYTHRESH: the paper's a and b, the smallest a that its proof allows, and by how much the
means of a user's bits or hashed words deviate in an epoch."""

from __future__ import annotations

import math

from evolvingdp.core import checks

PAPER_WIDTH = 20  # w / n of HEAVYTHRESH, line 5 of Algorithm 4 (E-EV-11)
VOTES_PER_CHANGE = 4  # that one user may cast, proof on the chapter's page (E-EV-4: the paper has 2)


def unit(n_users: int, horizon: int, epoch_length: int, beta: float) -> float:
    """t_ell = sqrt(ln(12 n T / beta) / (2 ell)), Lemma 7.3."""
    checks.integer_at_least(1, n_users=n_users, horizon=horizon, epoch_length=epoch_length)
    check_beta(beta)
    return math.sqrt(math.log(12 * n_users * horizon / beta) / (2 * epoch_length))


def most_users(step: float, horizon: int, epoch_length: int, beta: float) -> int:
    """The most users for whom `unit` is at most `step`; 0 where it is larger for any."""
    return math.floor(math.exp(min(2 * epoch_length * step**2 - math.log(12 * horizon / beta), 40.0)))


def paper_error_bound(n_users: int, horizon: int, epoch_length: int, beta: float) -> float:
    """Theorem 4.3: 4 (floor(log2 T) + 2) t_ell."""
    return 4 * (horizon.bit_length() + 1) * unit(n_users, horizon, epoch_length, beta)


def paper_epsilons(
    n_users: int, horizon: int, epoch_length: int, min_group: int, n_groups: int, beta: float
) -> tuple[float, float]:
    """Lines 4 and 5 of Algorithm 1: a, b. ValueError where one is not positive, with the size from which it would be."""
    checks.integer_at_least(1, epoch_length=epoch_length)
    vote = paper_vote_epsilon(n_users, horizon, min_group, n_groups, beta)
    log_epochs = math.log(12 * horizon / beta)
    sampling = math.sqrt(log_epochs / (2 * n_users))
    gap = math.log2(horizon) * unit(n_users, horizon, epoch_length, beta) - sampling
    if gap <= 0:
        longest = math.log2(horizon) ** 2 * math.log(12 * n_users * horizon / beta) * n_users / log_epochs
        raise ValueError(
            f"epoch_length must be < {longest:,.0f} for the paper's b to be positive with {n_users} users and horizon "
            f"{horizon}, got {epoch_length} (E-EV-3)"
        )
    return vote, math.sqrt(2) * sampling / gap


def paper_vote_epsilon(n_users: int, horizon: int, min_group: int, n_groups: int, beta: float) -> float:
    """Line 4 of Algorithm 1, line 3 of Algorithm 4: a. ValueError where it is not positive, with the group that would do."""
    checks.integer_at_least(1, n_users=n_users, horizon=horizon, n_groups=n_groups)
    _check_group(min_group, n_users)
    check_beta(beta)
    root = math.sqrt(n_users * math.log(12 * n_groups * horizon / beta))
    room = min_group - 3 / math.sqrt(2) * root
    if room <= 0:
        raise ValueError(
            f"min_group must be > {3 / math.sqrt(2) * root:,.0f} for the paper's a to exist with {n_users} users, "
            f"got {min_group}"
        )
    return 4 * math.sqrt(2) * root / room


def hashed_unit(n_users: int, horizon: int, epoch_length: int, width: int, beta: float) -> float:
    """Lemma 9.2 times sqrt(w): sqrt(2 ln(16 w n T / beta) / ell), how far any signed mean is from its expectation."""
    return math.sqrt(2 * math.log(16 * width * n_users * horizon / beta) / epoch_length)


def paper_margin(n_users: int, horizon: int, beta: float) -> float:
    """Line 11 of Algorithm 4: sqrt(ln(16 T / beta) / 2n)."""
    return math.sqrt(math.log(16 * horizon / beta) / (2 * n_users))


def paper_estimate_epsilon(n_users: int, horizon: int, epoch_length: int, n_words: int, beta: float) -> float:
    """Line 4 of Algorithm 4 with line 5's w = 20 n: b, as printed (E-EV-12). ValueError where it is not positive, with
    sizes that would do."""
    checks.integer_at_least(1, n_users=n_users, horizon=horizon, epoch_length=epoch_length)
    checks.integer_at_least(2, n_words=n_words)
    check_beta(beta)
    above, allowed, below = _parts(n_users, horizon, epoch_length, n_words, beta)
    if allowed <= below:
        longest = epoch_length * (allowed / below) ** 2
        raise ValueError(
            f"epoch_length must be < {longest:,.0f} for the paper's b to be positive with {n_users} users, horizon "
            f"{horizon} and {n_words} words, got {epoch_length} (E-EV-3)"
        )
    return above / (allowed - below)


def _parts(n_users: int, horizon: int, epoch_length: int, n_words: int, beta: float) -> tuple[float, float, float]:
    """The numerator of line 4, and the two parts of its denominator, of which the first has to be the larger."""
    width = PAPER_WIDTH * n_users
    log_width = math.log(16 * width * horizon / beta)
    crowd = log_width * math.sqrt(width) / n_users**2
    sampling = 2 * math.sqrt(math.log(16 * n_words * horizon / beta) / (2 * width * n_users))
    allowed = 2 * (math.log2(horizon) + 2) * hashed_unit(n_users, horizon, epoch_length, width, beta) / math.sqrt(width)
    return 2 * (math.sqrt(log_width / (n_users * width)) + crowd), allowed, sampling + crowd


def paper_caps(
    epsilon: float, vote: float, estimate: float, changes: int | None, spare: int = 0
) -> tuple[float, float, int, int]:
    """a, b, K_V, K_E for a `vote` and an `estimate`: floor(epsilon / 4a) and floor(epsilon / 4b), or with `changes` an
    estimate for the start, each change and `spare` more, and votes for the rest. Raises ValueError that names the smallest
    epsilon that would work."""
    if changes is None:
        votes, estimates, what = (
            math.floor(epsilon / (4 * vote)),
            math.floor(epsilon / (4 * estimate)),
            "a vote and an estimate",
        )
        least = 4 * max(vote, estimate)
    else:
        checks.integer_at_least(0, changes=changes, spare=spare)
        fewest, estimates, what = VOTES_PER_CHANGE * changes, changes + 1 + spare, f"{changes} changes"
        least = 2 * fewest * vote + estimates * estimate
        votes = max(fewest, math.floor((epsilon - estimates * estimate) / (2 * vote)))
    if epsilon < least * (1 - 1e-12):
        raise ValueError(
            f"epsilon must be at least {least:.4g} for {what} with the paper's a = {vote:.4g} and b = {estimate:.4g}, got "
            f"{epsilon!r}"
        )
    return vote, estimate, votes, estimates


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


def told(bound: float, digits: int = 3) -> str:
    """A bound on the error of a share, in text: shares lie in [0, 1], so that 1 or more says nothing, and this is said."""
    return f"{bound:.{digits}f}" + (" (1 or more says nothing)" if bound >= 1 else "")


def check_beta(beta: float) -> None:
    checks.probability(beta=beta)
