"""The constants of HEAVYTHRESH: the deviation of signed means, and the paper's b with the w that it is made for."""

from __future__ import annotations

import math

from evolvingdp.core import checks
from evolvingdp.evolving.thresh_constants import check_beta, smallest_users

PAPER_WIDTH = 20  # w / n, line 5 of Algorithm 4 (E-EV-11)


def unit(n_users: int, horizon: int, epoch_length: int, width: int, beta: float) -> float:
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
    above, below = _parts(n_users, horizon, n_words, beta)
    allowed = 2 * (math.log2(horizon) + 2) * unit(n_users, horizon, epoch_length, PAPER_WIDTH * n_users, beta)
    gap = allowed / math.sqrt(PAPER_WIDTH * n_users) - below
    if gap <= 0:
        longest = epoch_length * (allowed / below) ** 2 / (PAPER_WIDTH * n_users)
        users = smallest_users(lambda n: _positive(n, horizon, epoch_length, n_words, beta), n_users)
        raise ValueError(
            f"epoch_length must be < {longest:,.0f} for the paper's b to be positive with {n_users} users, horizon "
            f"{horizon} and {n_words} words, got {epoch_length} (E-EV-3)"
            + (f"; n_users >= {users:,} would work, too" if users else "")
        )
    return above / gap


def _parts(n_users: int, horizon: int, n_words: int, beta: float) -> tuple[float, float]:
    """The numerator of line 4, and what its denominator subtracts."""
    width = PAPER_WIDTH * n_users
    log_width = math.log(16 * width * horizon / beta)
    crowd = log_width * math.sqrt(width) / n_users**2
    sampling = 2 * math.sqrt(math.log(16 * n_words * horizon / beta) / (2 * width * n_users))
    return 2 * (math.sqrt(log_width / (n_users * width)) + crowd), sampling + crowd


def _positive(n_users: int, horizon: int, epoch_length: int, n_words: int, beta: float) -> bool:
    width = PAPER_WIDTH * n_users
    allowed = 2 * (math.log2(horizon) + 2) * unit(n_users, horizon, epoch_length, width, beta) / math.sqrt(width)
    return allowed > _parts(n_users, horizon, n_words, beta)[1]
