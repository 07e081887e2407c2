"""HEAVYTHRESH: keep the frequencies of all words of a dictionary up to date, paying for changes and not for epochs.

**Computes** estimates of the words' mean frequencies in each of `horizon` epochs. Users vote as in THRESH, on the distance
of the signed sums of their words over the rows of a Hadamard matrix. In an update each sends the best report of one of its
words, drawn by lot (`core.reports`), or, as in the paper, one randomized sign of them all.

**Guarantee.** That of THRESH: pure epsilon-local differential privacy of everything that one user ever sends; neighbouring
inputs are any two sequences of words of that user. `voting.privacy_loss` is exact in the same way.

**Error.** `error_bound`, the repaired form of Theorem 5.2 (E-EV-9), with the conditions of THRESH.

**Source.** Algorithms 4 to 8 of the paper: `votes_yes` is HeavyVote, `report_plus` the randomizer R, `estimates` the oracle
A_FO, both where no `report` is given: `paper` has none, `tuned` the best. Phi is the Hadamard matrix with `width` >= d rows,
scaled by 1/sqrt(width): the translation from hashes to words is then exact and needs no memory, and words do not blur each
other as with the paper's random Phi. Applies E-EV-8, E-EV-9, E-EV-10 and E-EV-11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks, hadamard
from evolvingdp.core.reports import BITS, Report, Sign, best_report
from evolvingdp.evolving.constants import (
    PAPER_WIDTH,
    check_beta,
    hashed_unit,
    paper_caps,
    paper_estimate_epsilon,
    paper_margin,
    paper_vote_epsilon,
    smallest_group,
)
from evolvingdp.evolving.streams import sampled
from evolvingdp.evolving.thresh import Thresh

_AT_ONCE = 1 << 20  # entries of users x w


@checks.plain
@dataclass(frozen=True)
class HeavyThresh:
    """`voting` holds noise, caps and thresholds; its thresholds are distances of signed means, sqrt(w) times the paper's."""

    voting: Thresh
    n_words: int
    report: Report | None = None  # of an update, of one word; None: the paper's, of the signs of all

    def __post_init__(self) -> None:
        checks.integer_at_least(2, n_words=self.n_words)
        if (self.oracle.n_values, self.oracle.epsilon) != (self.n_words, self.voting.estimate_epsilon):
            raise ValueError(
                f"report must be one of {self.n_words} values with epsilon {self.voting.estimate_epsilon}, got {self.report}"
            )
        object.__setattr__(self, "voting", replace(self.voting, reach=2))  # the distance of signed means is at most 2
        if self.voting.epoch_length * self.n_words >= 2**63:
            raise ValueError(
                f"epoch_length must be below 2^63 / n_words for the words of a user to be counted in 64 bits, got "
                f"{self.voting.epoch_length}"
            )

    @classmethod
    def tuned(
        cls,
        n_users: int,
        horizon: int,
        epoch_length: int,
        epsilon: float,
        n_words: int,
        *,
        changes: int,
        beta: float = 0.05,
        deviation: float | None = None,
        **options: Any,
    ) -> HeavyThresh:
        """`Thresh.tuned` with Lemma 9.2's deviation, if no other is given, and the best report of at most 256 bits; the same
        options and errors."""
        checks.integer_at_least(2, n_words=n_words)
        checks.integer_at_least(1, n_users=n_users, horizon=horizon, epoch_length=epoch_length)
        check_beta(beta)
        step = hashed_unit(n_users, horizon, epoch_length, _width(n_words), beta) if deviation is None else deviation
        size = (n_users, horizon, epoch_length, epsilon)
        voting = Thresh.tuned(*size, changes=changes, beta=beta, deviation=step, reach=2, **options)
        return cls(voting, n_words, best_report(n_words, voting.estimate_epsilon, BITS))

    @classmethod
    def paper(
        cls,
        n_users: int,
        horizon: int,
        epoch_length: int,
        epsilon: float,
        n_words: int,
        *,
        min_group: int | None = None,
        n_groups: int = 1,
        beta: float = 0.05,
        changes: int | None = None,
        spare: int = 0,
        **options: Any,
    ) -> HeavyThresh:
        """The paper's a and b, made for w = 20 n as printed, its cut of line 11, and caps as in `Thresh.paper` (E-EV-8).

        Thresholds are those of w = 20 n, or of ours where that is larger.  Raises as that does.
        """

        checks.positive(epsilon=epsilon)
        group = smallest_group(min_group, n_users, n_groups)
        vote = paper_vote_epsilon(n_users, horizon, group, n_groups, beta)
        estimate = paper_estimate_epsilon(n_users, horizon, epoch_length, n_words, beta)
        caps = paper_caps(epsilon, vote, estimate, changes, spare)
        width = max(PAPER_WIDTH * n_users, _width(n_words))
        step = hashed_unit(n_users, horizon, epoch_length, width, beta)
        margin = paper_margin(n_users, horizon, beta)
        options = {"margin": margin, "reach": 2} | options
        voting = Thresh(n_users, horizon, epoch_length, epsilon, *caps, step, beta, **options)
        return cls(voting, n_words)

    @property
    def unknown(self) -> NDArray[np.float64]:
        """The estimates before the first."""
        return np.full(self.n_words, math.nan)

    @property
    def width(self) -> int:
        """w: the smallest power of two that is at least d."""
        return _width(self.n_words)

    def signs(self, rows: NDArray[np.integer], words: NDArray[np.integer]) -> NDArray[np.int8]:
        """sqrt(w) Phi, entries of +-1; shapes broadcast."""
        return hadamard.signs(rows, words)

    def signed(self, values: NDArray[np.number]) -> NDArray[np.float64]:
        """(k, n_words) -> (k, width): sqrt(w) Phi times each row, exact for integers below 2^53: of counts `epoch_length`
        times sqrt(w) times the paper's hash."""
        padded = np.zeros((len(values), self.width))
        padded[:, : self.n_words] = values
        return hadamard.transform(padded)

    def distances(self, counts: NDArray[np.integer], reference: NDArray[np.integer]) -> NDArray[np.int64]:
        """(users,): the largest change of a signed sum since the last update."""
        step, moved = max(1, _AT_ONCE // self.width), counts - reference
        parts = [moved[first : first + step] for first in range(0, max(1, len(moved)), step)]
        return np.concatenate([np.abs(self.signed(part)).max(axis=1) for part in parts]).astype(np.int64)

    def votes_yes(
        self, epoch: int, counts: NDArray[np.integer], reference: NDArray[np.integer], used: NDArray[np.integer]
    ) -> NDArray[np.bool_]:
        """VoteYes of Algorithm 5. Secret."""
        distances = self.distances(counts, reference)
        return self.voting.votes_yes(epoch, distances, np.zeros_like(distances), used)

    def checked(self, counts: ArrayLike) -> NDArray[np.int64]:
        """`counts` of words in an epoch as integers, (n_users, n_words); the error names the first user whose words are not
        `epoch_length` in all."""
        length, shape, array = self.voting.epoch_length, (self.voting.n_users, self.n_words), np.asarray(counts)
        if array.dtype.kind not in "iu" or array.shape != shape:
            raise TypeError(f"counts must be integers, {shape}, got {array.dtype} {array.shape}")
        outside = (array < 0) | (array > length)
        if outside.any():  # before the sums: a negative count can make up for one that is too large
            user, word = np.argwhere(outside)[0].tolist()
            raise ValueError(f"counts must lie in [0, {length}], got {array[user, word]} of word {word} for user {user}")
        array = array.astype(np.int64, copy=False)
        sums = array.sum(axis=1)
        if np.any(sums != length):
            user = int(np.argmax(sums != length))
            raise ValueError(f"counts must add up to epoch_length = {length} words a user, got {sums[user]} for user {user}")
        return array

    def reported(
        self, counts: NDArray[np.int64], truthful: bool, public: np.random.Generator, private: np.random.Generator
    ) -> NDArray[np.float64]:
        """The estimates of an update, from the reports of users with these counts; without `truthful` from noise, or words
        drawn by lot."""
        if self.report is not None:
            lots = private.integers(0, self.n_words, len(counts))
            return self.estimates(self.report.collect(sampled(counts, private) if truthful else lots, public, private))
        place = public.integers(0, self.width, size=self.voting.n_users)
        plus = self.draw_plus(self.means_at(counts, place) if truthful else np.zeros(len(counts)), private)
        return self.estimates(np.bincount(place, weights=2 * plus.astype(np.int8) - 1, minlength=self.width))

    def means_at(self, counts: NDArray[np.integer], place: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n_users,): the mean sign of each user's words at the user's own coordinate; no transform needed."""
        signs = self.signs(place[:, None], np.arange(self.n_words)[None, :])
        return np.asarray(np.einsum("iv,iv->i", signs, counts, dtype=float) / self.voting.epoch_length)

    def report_plus(self, signed_mean: NDArray[np.floating] | float) -> Any:
        """R: the probability of reporting + at a coordinate where the user's words have mean sign `signed_mean` in [-1, 1];
        1/2 for a user who sends no truthful estimate (mean 0)."""
        return self.voting.report_one((1 + np.clip(signed_mean, -1, 1)) / 2)  # clipped: no input costs more than epsilon

    def draw_plus(self, signed_means: NDArray[np.floating], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Which users report +, (n_users,), by `Thresh.draw_reports`."""
        return self.voting.draw_reports((1 + np.clip(signed_means, -1, 1)) / 2, rng)

    @cached_property
    def oracle(self) -> Report:
        """Whose law the sums of an update have: that of R is that of the sign of a word that is drawn by lot."""
        return self.report or Sign(self.n_words, self.voting.estimate_epsilon)

    def estimates(self, sums: NDArray[np.integer]) -> NDArray[np.float64]:
        """Frequencies of all words, (n_words,), unbiased, from what the reports add up to, (oracle.width,): A_FO, where they
        are signs."""
        return self.oracle.estimates(sums, self.voting.n_users)

    @property
    def error_bound(self) -> float:
        """2 (levels + 2) sqrt(2 ln(16 w n T / beta) / ell) + c_b sqrt(2 ln(8 d T / beta) / n), with 1 / (2 gain) for c_b of
        a `report`, with probability 1 - beta while the caps last (E-EV-9); inf for a `margin`, a `unit` below Lemma 9.2's,
        and where votes are so noisy that nobody is heard: nothing is proved for these. 1 or more says nothing."""
        voting = self.voting
        if voting.margin not in (None, paper_margin(voting.n_users, voting.horizon, voting.beta)) or not voting.heard:
            return math.inf
        if voting.unit < hashed_unit(voting.n_users, voting.horizon, voting.epoch_length, self.width, voting.beta) * (
            1 - 1e-12
        ):
            return math.inf
        noise = math.sqrt(2 * math.log(8 * self.n_words * voting.horizon / voting.beta) / voting.n_users)
        return 2 * (voting.levels + 2) * voting.unit + noise / (2 * self.oracle.gain)

    @property
    def standard_error(self) -> float:
        """Of one rare word in an update: of the paper's signs c_b / sqrt(n)."""
        return self.oracle.standard_error(self.voting.n_users) / self.voting.n_users


def _width(n_words: int) -> int:
    return 1 << (n_words - 1).bit_length()
