"""What each step of trust buys in words found, at one central guarantee: nobody, a shuffler, one of two servers, a curator.

`run` gives a row a rung, epsilon and run, `values` the numbers that claims and prose read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import poisson

from evolvingdp.book import engine
from evolvingdp.book.params import Metric
from evolvingdp.core.noise import DiscreteLaplace
from evolvingdp.core.olh import OLH
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.listing import Ask, HeavyHitters, adaptive_cut, descend
from evolvingdp.heavy_hitters.shuffling import Shuffled, epsilon_of_a_report, fewest, hashed
from evolvingdp.heavy_hitters.word_tree import Nodes, WordTree
from evolvingdp.notebooks.heavy_hitters.lists import data

METRIC = Metric("local_words", "words found without any trust, at the largest epsilon", "words")

CLAIMS = """
groups_over_local >= 1      Trust never costs words: found at “a shuffler, levels public” over “nobody (local)”, least
shuffled_over_local >= 1    Trust never costs words: found at “a shuffler” over “nobody (local)”, least
servers_over_shuffled >= 1  Trust never costs words: found at “one of two servers” over “a shuffler”, least
curator_over_servers >= 1   Trust never costs words: found at “a curator” over “one of two servers”, least
most_false <= expected_false  Listed words that nobody holds, expected one a run at most: most of a setting
largest_delta <= delta      The shuffled reports keep the central guarantee: largest delta at epsilon
"""

LOCAL, GROUPS, SHUFFLED = "nobody (local)", "a shuffler, levels public", "a shuffler"
SERVERS, CURATOR = "one of two servers", "a curator"
RUNGS = (LOCAL, GROUPS, SHUFFLED, SERVERS, CURATOR)
SHORT = {LOCAL: "local", GROUPS: "groups", SHUFFLED: "shuffled", SERVERS: "servers", CURATOR: "curator"}
SHARES = (0.15, 0.20, 0.65)  # of the users, by level; of epsilon where all are counted at every level:
BUDGETS = (0.10, 0.20, 0.70)  # the best of five by a power law of the ranks
MOST = 20_000_000  # candidates at one level
LARGEST = 10.0  # epsilon of a report of local hashing
LETTERS = WordTree((2, 2, 2))


def check(params: Any) -> dict[str, Any]:
    """Epsilons in ascending order."""
    return {"epsilon_sweep": tuple(sorted(params.epsilon_sweep))}


@dataclass(frozen=True)
class Hashed:
    """The same search by the reports of local hashing, simulated: no server could ask each of them about every candidate."""

    epsilon: float  # of a report
    threshold: float  # users

    def simulate(self, leaves: Nodes, counts: NDArray[np.int64], rng: np.random.Generator) -> HeavyHitters:
        oracle, groups = OLH(self.epsilon), rng.multinomial(counts, SHARES).T

        def ask(level: int, parents: Nodes, asked: int) -> tuple[Nodes, NDArray[np.float64], float, float]:
            nodes, own = _held(level, parents, leaves, groups[level])
            share, size = SHARES[level], int(groups[level].sum())
            error = oracle.standard_error(size) / share
            cut = self.threshold if level == LETTERS.depth - 1 else adaptive_cut(self.threshold, error, asked)
            least = math.floor(oracle.expected_support(cut * share, size)) - 1  # the estimates decide, not rounding
            estimates = oracle.estimate(oracle.simulate_support(own, size, rng, least), size) / share
            return nodes[estimates >= cut], estimates[estimates >= cut], error, cut

        return _listed(ask)


@dataclass(frozen=True)
class Counted:
    """The same search on all counts of prefixes, each with the integer noise of two servers: whoever knows the noise of one
    still has the other's, which is enough for epsilon, as a user's word moves two counts a level by 1 (Boneh et al., 2021)."""

    epsilon: float  # of all levels
    threshold: float  # users

    def noise(self, level: int) -> DiscreteLaplace:
        """Of one server."""
        return DiscreteLaplace(2 / (self.epsilon * BUDGETS[level]))

    def drawn(self, level: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Of both servers, added up, in a simulation: a draw of one has the law of the difference of two geometric numbers,
        which take a fifth of the time, or less, of the draws without rounding that a server needs."""
        chance = -math.expm1(-2 * math.asinh(math.sqrt(0.5 / self.noise(level).variance)))
        both = np.zeros(size, dtype=np.int64)
        for sign in (1, 1, -1, -1):
            both += sign * rng.geometric(chance, size)
        return both

    def simulate(self, leaves: Nodes, counts: NDArray[np.int64], rng: np.random.Generator) -> HeavyHitters:
        def ask(level: int, parents: Nodes, _: int) -> tuple[Nodes, NDArray[np.float64], float, float]:
            nodes, own = _held(level, parents, leaves, counts)
            sums, error = own + self.drawn(level, len(own), rng), math.sqrt(2 * self.noise(level).variance)
            cut = self.threshold if level == LETTERS.depth - 1 else adaptive_cut(self.threshold, error)
            return nodes[sums >= cut], sums[sums >= cut].astype(float), error, cut

        return _listed(ask)


def _held(level: int, parents: Nodes, leaves: Nodes, users: NDArray[np.int64]) -> tuple[Nodes, NDArray[np.int64]]:
    """The children of `parents`, and how many of the `users` who tell this level of each leaf hold each."""
    nodes = LETTERS.children(parents, level)
    keys, (prefixes, place) = LETTERS.keys(nodes), np.unique(LETTERS.prefixes(leaves, level), return_inverse=True)
    held, own = np.bincount(place, weights=users).astype(np.int64), np.zeros(len(nodes), dtype=np.int64)
    at = np.minimum(np.searchsorted(keys, prefixes), len(keys) - 1)  # both are in ascending order
    asked = keys[at] == prefixes
    own[at[asked]] = held[asked]
    return nodes, own


def _listed(ask: Ask) -> HeavyHitters:
    nodes, estimates, path = descend(LETTERS, ask, MOST)
    return HeavyHitters.of(LETTERS.decode(nodes), estimates, np.full(len(nodes), path[-1]["standard_error"]), path)


def search(params: Any, rung: str, epsilon: float) -> Hashed | Counted:
    """Its threshold lets one word that nobody holds pass, in expectation, among as many as it may ask for."""
    if rung == SERVERS:
        return Counted(epsilon, _least(Counted(epsilon, 1).noise(LETTERS.depth - 1)))
    one = report_epsilon(params, rung, epsilon)
    error = OLH(one).standard_error(int(params.n_users * SHARES[-1])) / SHARES[-1]
    return Hashed(one, -float(ndtri(1 / MOST)) * error)


def _least(noise: DiscreteLaplace) -> int:
    """The least count that is expected to be reached by one of `MOST` sums of two servers' noise."""
    far = math.ceil(45 * noise.scale)
    one = noise.pmf(np.arange(-far, far + 1))
    law = np.convolve(one, one)
    return int(np.argmax(MOST * law[::-1].cumsum()[::-1] <= 1)) - len(law) // 2


def report_epsilon(params: Any, rung: str, epsilon: float) -> float:
    """Of a user's report.  Where levels are public, the smallest level's users hide among themselves, who may be few."""
    if rung == LOCAL:
        return epsilon
    users, delta = fewest(params.n_users, min(SHARES) if rung == GROUPS else 1, params.delta)
    return _amplified(epsilon, delta, users)


@cache
def _amplified(epsilon: float, delta: float, n_users: int) -> float:
    return epsilon_of_a_report(epsilon, delta, n_users, hashed, LARGEST)


def run(params: Any, seed: int) -> pd.DataFrame:
    """A row per rung, epsilon and run: how many of the listed words somebody holds, and how many nobody."""
    settings = [(repetition, epsilon) for repetition in range(params.repetitions) for epsilon in params.epsilon_sweep]
    return pd.DataFrame(engine.rows((_trial, params, seed, *setting) for setting in settings))


def _trial(params: Any, seed: int, repetition: int, epsilon: float) -> Iterator[dict[str, Any]]:
    truth = data(100, "brown", params.n_users, seed, repetition)
    truth = truth[truth > 0]
    leaves, counts = LETTERS.encode(truth.index), truth.to_numpy()
    for rung in RUNGS:
        rng = stream(seed, "noise", rung, str(epsilon), repetition)
        row = {
            "rung": rung,
            "epsilon": epsilon,
            "repetition": repetition,
            "distinct": len(truth),
            "report_epsilon": math.nan,
        }
        if rung == CURATOR:  # all words of the alphabet are counted at once; of those that nobody holds only how many pass
            noise, words = DiscreteLaplace(2 / epsilon), 26**LETTERS.length
            row["threshold"] = noise.isf(1 / words)
            row["words"] = int((counts + noise.draw(len(counts), rng) >= row["threshold"]).sum())
            row["false"] = int(rng.binomial(words - len(counts), float(noise.sf(row["threshold"]))))
            yield row | {"candidates": words}
            continue
        method = search(params, rung, epsilon)
        found = method.simulate(leaves, counts, rng)
        if isinstance(method, Hashed):
            row["report_epsilon"] = method.epsilon
        held = truth.reindex(found.words.word, fill_value=0).to_numpy()
        row |= {"threshold": method.threshold, "words": int((held > 0).sum()), "false": int((held == 0).sum())}
        yield row | {"candidates": int(found.path.candidates.max())}


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Mean and deviation of the words found, per rung and epsilon, in the order of the ladder."""
    grouped = table.groupby(["rung", "epsilon"])
    frame = grouped[["words", "false", "threshold", "report_epsilon"]].mean()
    frame = frame.assign(words_sd=grouped.words.std(), runs=grouped.size()).reset_index()
    frame["rung"] = pd.Categorical(frame.rung, RUNGS, ordered=True)
    return frame.sort_values(["rung", "epsilon"], ignore_index=True).astype({"rung": str})


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    rows = summary(table).set_index(["rung", "epsilon"])
    words = table.pivot_table(index=["epsilon", "repetition"], columns="rung", values="words")
    false = table.groupby(["rung", "epsilon"])["false"].sum()
    shown = 1.0 if 1.0 in params.epsilon_sweep else params.epsilon_sweep[-1]
    one = [report_epsilon(params, SHUFFLED, epsilon) for epsilon in params.epsilon_sweep]
    deltas = [
        Shuffled(report, params.n_users, *hashed(report)).delta(epsilon)
        for report, epsilon in zip(one, params.epsilon_sweep, strict=True)
    ]
    found: dict[str, Any] = {
        "epsilon": shown,
        "distinct": table.distinct.mean(),
        "shuffled_report": rows.report_epsilon[SHUFFLED, shown],
        "most_false": false.max(),
        "expected_false": poisson.isf(1e-4 / len(false), params.repetitions),
        "largest_delta": max(deltas),
        "local_words": rows.words[LOCAL, params.epsilon_sweep[-1]],
        "local_words_shown": rows.words[LOCAL, shown],
    }
    for less, more in ((LOCAL, GROUPS), (LOCAL, SHUFFLED), (SHUFFLED, SERVERS), (SERVERS, CURATOR)):
        found[f"{SHORT[more]}_over_{SHORT[less]}"] = (words[more] / words[less].clip(lower=1)).min()
    for rung, short in SHORT.items():
        found[f"{short}_threshold"] = rows.threshold[rung, shown]
        found |= {} if rung == LOCAL else {f"{short}_words": rows.words[rung, shown]}
    return found
