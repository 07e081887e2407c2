"""The sums of a FreqOracle's sketch from the counts of words: the exact law of collecting reports, without the reports.

**Source.** Algorithms 1 and 2 of Bassily et al. (2020) as `count_sketch.FreqOracle` runs them.  The users of each word are
dealt to rows; what follows depends on how many users of a row hold each (cell, sign) alone, which `hashing.places` numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core.hashing import HashFamily, places
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.sampling import blocks, fair_binomial, fair_bits

_AT_ONCE = 1 << 16  # users or cells: arrays that stay in the cache
_FEW = 8  # users a row: up to here dealing them one by one is cheaper than drawing a binomial a row


def one_bit(
    hashes: HashFamily,
    randomizer: SignFlip,
    keys: NDArray[np.uint64],
    counts: NDArray[np.int64],
    rng: np.random.Generator,
    path: str = "auto",
) -> NDArray[np.int64]:
    """The sums of Hadamard-compressed reports when counts[i] users hold keys[i], int64 (rows, width).

    A report is a fair coin with probability 2/(e^epsilon + 1), whatever the word, and else the true bit.  Coins are reports
    without noise of users in cell 0 with a fair sign, so that what is left is to give every user a uniform column: one by
    one (`path="users"`) or group by group (`"groups"`); `"auto"` is the cheaper of the two.
    """
    honest = rng.binomial(counts, 1 / randomizer.debias)
    alone, together, users = _deal(hashes, keys, honest, rng)
    coins = rng.multinomial(np.sum(counts - honest), np.full(hashes.rows, 1 / hashes.rows))
    heads = rng.binomial(coins, 0.5)
    of_cell_0 = 2 * hashes.width * np.arange(hashes.rows, dtype=together.dtype)[:, None] + np.arange(2, dtype=together.dtype)
    together = np.hstack([together, of_cell_0])
    users = np.hstack([users, heads[:, None], (coins - heads)[:, None]])
    binomials = 2 * hashes.rows * hashes.width * hashes.width.bit_length()  # of groups: each as dear as a user's column
    if path == "users" or (path == "auto" and np.sum(counts) < binomials):
        return _columns_by_users(hashes, alone, together, users, rng)
    plus, minus = _holders(hashes, alone, together, users)
    result = np.empty((hashes.rows, hashes.width), dtype=np.int64)
    for rows in blocks(hashes.rows, max(1, _AT_ONCE // hashes.width)):
        result[rows] = np.subtract(*_columns_by_groups(plus[rows], minus[rows], rng))
    return result


def holders(
    hashes: HashFamily, keys: NDArray[np.uint64], counts: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Deal the users to rows: how many hold each cell with sign +1, and with sign -1, int64 (rows, width) each."""
    return _holders(hashes, *_deal(hashes, keys, counts, rng))


def _holders(
    hashes: HashFamily,
    alone: NDArray[Any],
    together: NDArray[Any],
    users: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    size = 2 * hashes.rows * hashes.width
    held = np.bincount(together.ravel(), weights=users.ravel(), minlength=size).astype(np.int64)
    held += np.bincount(alone, minlength=size)
    by_cell = held.reshape(hashes.rows, hashes.width, 2)
    return by_cell[..., 0], by_cell[..., 1]


def _deal(
    hashes: HashFamily, keys: NDArray[np.uint64], counts: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """Every user to a uniform row.  Of rare words the place of each user, (n,); of frequent ones the place in each row and
    how many users are there, (rows, words) each."""
    frequent = counts > _FEW * hashes.rows
    held = np.repeat(keys[~frequent], counts[~frequent])
    small = np.uint32 if 2 * hashes.rows * hashes.width < 2**32 else np.int64
    alone = np.empty(len(held), dtype=small)
    for some in blocks(len(held), _AT_ONCE):
        own = slice(some[0], some[-1] + 1)
        alone[own] = places(hashes, rng.integers(0, hashes.rows, size=len(some)), held[own])
    users = rng.multinomial(counts[frequent], np.full(hashes.rows, 1 / hashes.rows)).T
    return alone, places(hashes, np.arange(hashes.rows)[:, None], keys[None, frequent]).astype(small), users


def _columns_by_users(
    hashes: HashFamily,
    alone: NDArray[Any],
    together: NDArray[Any],
    users: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Give each user a uniform column: the sums of the true bits, int64 (rows, width)."""
    width, places_of_row = hashes.width, 2 * hashes.width
    alone.sort()
    ends = np.searchsorted(alone, (np.arange(hashes.rows + 1) * places_of_row).astype(alone.dtype))
    result = np.empty((hashes.rows, width), dtype=np.int64)
    a_row = max(width, (len(alone) + int(users.sum())) // hashes.rows)
    for rows in blocks(hashes.rows, max(1, _AT_ONCE // a_row)):
        first, last = rows[0], rows[-1] + 1
        held = np.concatenate([alone[ends[first] : ends[last]], np.repeat(together[rows].ravel(), users[rows].ravel())])
        held -= held.dtype.type(first * places_of_row)
        column = fair_bits(len(held), width.bit_length() - 1, rng).astype(held.dtype)
        negative = (np.bitwise_count((held >> 1) & column) + held) & 1  # sign times W[column, cell]
        held >>= width.bit_length()  # the row alone
        held <<= width.bit_length() - 1
        held |= column
        negative *= len(rows) * width  # those with sign -1 behind the others
        held += negative
        both = np.bincount(held, minlength=len(rows) * places_of_row).reshape(2, -1)
        np.subtract(both[0], both[1], out=result[first:last].reshape(-1))
    return result


def _columns_by_groups(
    plus: NDArray[np.int64], minus: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give each holder of (cell c, sign s) a uniform column r: the counts of true bits s W[r, c] = +1 and -1 per r.

    Bit k of r is drawn for whole groups at once: half of a group, in law, takes r_k = 0 and keeps its sign; the rest
    takes r_k = 1 and its sign turns where c_k = 1.  Bit k of c is then forgotten, so there are never more than
    2 * width groups a row and the cost is log2(width) fair binomials per group, whatever the number of users.
    """
    n_rows, width = plus.shape
    users = np.stack([plus, minus], axis=1)[..., None]  # (rows, sign, bits of c still to read, bits of r drawn)
    while users.shape[2] > 1:
        zero = fair_binomial(users, rng)
        one = users - zero
        low_zero, high_zero = zero[:, :, 0::2], zero[:, :, 1::2]
        low_one, high_one = one[:, :, 0::2], one[:, ::-1, 1::2]
        users = np.concatenate([low_zero + high_zero, low_one + high_one], axis=3)
    spread = users.reshape(n_rows, 2, width)
    return spread[:, 0], spread[:, 1]
