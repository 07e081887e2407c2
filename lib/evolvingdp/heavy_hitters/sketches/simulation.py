"""The sums of a FreqOracle's sketch from the counts of words: the exact law of collecting reports, without the reports.

**Source.** Algorithms 1 and 2 of Bassily et al. (2020) as `count_sketch.FreqOracle` runs them.  The users of each word are
dealt to rows; what follows depends on how many users of a row hold each (cell, sign) alone, which `hashing.places` numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core.hashing import HashFamily, places
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.sampling import blocks, fair_binomial

_AT_ONCE = 1 << 16  # users or cells: arrays that stay in the cache
_FEW = 8  # users a row: up to here dealing them one by one is cheaper than drawing a binomial a row


def one_bit(
    hashes: HashFamily,
    randomizer: SignFlip,
    keys: NDArray[np.uint64],
    counts: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """The sums of Hadamard-compressed reports when counts[i] users hold keys[i], int64 (rows, width).

    A report is a fair coin with probability 2/(e^epsilon + 1), whatever the word, and else the true bit.  Coins are reports
    without noise of users in cell 0 with a fair sign, so that what is left is to give every user a uniform column.
    """
    honest = rng.binomial(counts, 1 / randomizer.debias)
    plus, minus = holders(hashes, keys, honest, rng)
    coins = rng.multinomial(np.sum(counts - honest), np.full(hashes.rows, 1 / hashes.rows))
    heads = rng.binomial(coins, 0.5)
    plus[:, 0] += heads
    minus[:, 0] += coins - heads
    result = np.empty((hashes.rows, hashes.width), dtype=np.int64)
    for rows in blocks(hashes.rows, max(1, _AT_ONCE // hashes.width)):
        users = np.stack([plus[rows], minus[rows]], axis=1)
        few = users.sum() < users.size * hashes.width.bit_length()  # binomials of groups: each as dear as a user's column
        result[rows] = _by_users(users, rng) if few else _by_groups(users, rng)
    return result


def holders(
    hashes: HashFamily, keys: NDArray[np.uint64], counts: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Deal the users to rows: how many hold each cell with sign +1, and with sign -1, int64 (rows, width) each."""
    held, few = np.zeros(2 * hashes.rows * hashes.width, dtype=np.int64), counts <= _FEW * hashes.rows
    alone = np.repeat(keys[few], counts[few])
    for some in blocks(len(alone), _AT_ONCE):
        np.add.at(held, places(hashes, rng.integers(0, hashes.rows, size=len(some)), alone[some]), 1)
    users = rng.multinomial(counts[~few], np.full(hashes.rows, 1 / hashes.rows))
    np.add.at(held, places(hashes, np.arange(hashes.rows), keys[~few][:, None]), users)
    by_cell = held.reshape(hashes.rows, hashes.width, 2)
    return by_cell[..., 0].copy(), by_cell[..., 1].copy()


def _by_users(users: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Give each of the holders (rows, sign, cell) a uniform column, one by one: the sums of the true bits, (rows, width)."""
    n_rows, _, width = users.shape
    place = np.repeat(np.arange(users.size), users.ravel())  # (row * 2 + (sign < 0)) * width + cell
    column, bits = rng.integers(0, width, size=len(place)), width.bit_length() - 1
    negative = (np.bitwise_count(place & column & (width - 1)) ^ (place >> bits)) & 1
    told = ((negative * n_rows + (place >> (bits + 1))) << bits) + column
    return np.asarray(np.subtract(*np.bincount(told, minlength=users.size).reshape(2, n_rows, width)))


def _by_groups(users: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """The same for all holders of a cell and sign at once.

    Bit k of their columns r: half of a group, in law, takes r_k = 0 and keeps its sign; the rest takes r_k = 1 and its sign
    turns where c_k = 1, c the cell.  Bit k of c is then forgotten, so there are never more than 2 * width groups a row and
    the cost is log2(width) fair binomials per group, whatever the number of users.
    """
    users = users[..., None]  # (rows, sign, bits of c still to read, bits of r drawn)
    while users.shape[2] > 1:
        zero = fair_binomial(users, rng)
        one = users - zero
        low_zero, high_zero = zero[:, :, 0::2], zero[:, :, 1::2]
        low_one, high_one = one[:, :, 0::2], one[:, ::-1, 1::2]
        users = np.concatenate([low_zero + high_zero, low_one + high_one], axis=3)
    return np.asarray(users[:, 0, 0] - users[:, 1, 0])
