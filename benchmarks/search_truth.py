"""Lists judged as lists: what random searches of the chapter find, beside what is predicted of them.

    python benchmarks/search_truth.py [--searches 60] [--runs 50] [--seed 0]

A search has ten words of a twentieth of the users each, twice its threshold, and 300 light words.  Compared with the
prediction are the errors of all ten together: their root mean square ("each"), and the deviation of their mean ("joint"),
which an offset that they share would raise; both as shares of what is predicted.  "lost" is the share of the ten that is
not listed (a search that loses half of them is not compared), "false" how many words a list has that nobody holds.

Ten runs each, of trees: without the ten, at a threshold of three standard errors, "survivors" are the
prefixes that pass the first level, and "listed" the words that nobody holds, both as shares of what is predicted (the second
is predicted as an upper bound); with ten words of 1.1 times `found_from`, at a threshold of four, "found" is the share of
them that is listed, less what is predicted.

Writes benchmarks/results/search_truth.csv, a row a search, and says how many of them are within 15 % and two standard
errors of the simulation ("found": within .02 and two).
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import measure
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evolvingdp.core.geometry import geometry
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import theory
from evolvingdp.heavy_hitters.bitstogram import Bitstogram
from evolvingdp.heavy_hitters.planning import prospect
from evolvingdp.heavy_hitters.tree_hist import TreeHist
from evolvingdp.heavy_hitters.word_tree import WordTree
from evolvingdp.notebooks.heavy_hitters.streams import random_words

TREE = WordTree((2, 2), length=4)  # half a million words
WORDS, LIGHT = 10, 300
FEW = 10  # runs of lists that hold nothing, or hardly anything
KINDS = ("TreeHist", "Bitstogram")


def drawn(seed: int, number: int) -> tuple[str, float, int, float]:
    """Kind, epsilon, users and the share of whole words of a random search."""
    rng = stream(seed, "search", number)
    epsilon = float(np.exp(rng.uniform(math.log(0.5), math.log(10.0))))
    return KINDS[number % len(KINDS)], epsilon, int(10 ** rng.uniform(5.0, 6.3)), float(rng.uniform(0.5, 0.9))


def settled(kind: str, epsilon: float, n_users: int, share: float) -> tuple[Any, int]:
    """The search, and how many users hold each of its words: as many as can be, so that its threshold is far below."""
    held = n_users // 20
    if kind == "Bitstogram":
        return Bitstogram(epsilon, held / 2, length=4), held
    width = min(max(n_users, 1 << 17), 1 << 20) >> 6
    rows = max(8, math.ceil(8 * width / geometry(epsilon, width).points))
    return TreeHist(TREE, epsilon, held / 2, rows, width, share), held


def predicted(search: Any, n_users: int, held: int) -> float:
    """The standard error of one of the words, those who were dealt to its level included."""
    if isinstance(search, Bitstogram):
        return theory.mean_standard_error(round(search.final_share * n_users), epsilon=search.epsilon) / search.final_share
    error: float = search.level_error(1, n_users, held)
    return error


def found(search: Any, leaves: NDArray[Any], counts: NDArray[np.int64], seed: int, run: int) -> pd.Series:
    """Estimates by word."""
    rng = stream(seed, "reports", run)
    if isinstance(search, Bitstogram):
        protocol = search.draw_hashes(stream(seed, "hashes", run))
        words = protocol.search(protocol.simulate(leaves, counts, rng), int(counts.sum())).words
    else:
        words = search.draw_hashes(stream(seed, "hashes", run)).simulate_search(leaves, counts, rng).words
    return words.set_index("word").estimate


def quiet(search: TreeHist, words: NDArray[np.str_], light: int, seed: int) -> dict[str, Any]:
    """Lists that hold nothing, and lists of words that are just found, beside what is predicted of them."""
    leaves, error, told = search.tree.encode(words), search.level_error(1, LIGHT * light), dict[str, Any]()
    for factor, held in ((3.0, 0), (4.0, round(1.1 * (4.0 + 1.645) * error))):
        counts = np.append(np.full(WORDS, held), np.full(LIGHT, light))
        lower = replace(search, threshold=factor * error)
        expected, lists = prospect(lower, leaves, counts), []
        for run in range(FEW):
            drawn = lower.draw_hashes(stream(seed, "hashes", held, run))
            lists.append(drawn.simulate_search(leaves, counts, stream(seed, "reports", held, run)))
        if held:
            chance = expected.passed[:WORDS].mean()
            off = np.mean([np.isin(words[:WORDS], one.words.word).mean() for one in lists]) - chance
            told |= {"found": off}
            told |= {"found_agrees": abs(off) <= 0.02 + 2 * math.sqrt(chance * (1 - chance) / FEW / WORDS)}
            continue
        survivors = np.array([one.path.survivors[0] for one in lists])
        strangers = np.array([(~one.words.word.isin(words)).sum() for one in lists])
        for name, numbers, predicted, least in (
            ("survivors", survivors, expected.survivors[0], 0.85),
            ("listed", strangers, expected.empty, 0.0),
        ):
            ratio, error_of_it = numbers.mean() / predicted, max(numbers.std(ddof=1), 1.0) / math.sqrt(FEW) / predicted
            told |= {name: ratio, f"{name}_agrees": least <= ratio + 2 * error_of_it and ratio - 2 * error_of_it <= 1.15}
    return told


def judged(seed: int, number: int, runs: int) -> dict[str, Any]:
    """The row of one search."""
    kind, epsilon, n_users, share = drawn(seed, number)
    search, held = settled(kind, epsilon, n_users, share)
    words = random_words(WORDS + LIGHT, stream(seed, "words", number), length=4)
    light = (n_users - WORDS * held) // LIGHT
    counts = np.append(np.full(WORDS, held), np.full(LIGHT, light))
    n_users = int(counts.sum())
    leaves = search.encode(words) if isinstance(search, Bitstogram) else search.tree.encode(words)
    lists = [found(search, leaves, counts, 1000 * seed + number, run) for run in range(runs)]
    errors = np.array([(one.reindex(words[:WORDS]) - held).to_numpy() for one in lists])
    one, lost = predicted(search, n_users, held), float(np.isnan(errors).mean())
    tolerance = {"each": 2 / math.sqrt(2 * errors.size), "joint": 2 / math.sqrt(2 * (runs - 1))}
    shared = dict.fromkeys(tolerance, math.nan)
    if lost < 0.5:
        means = np.nanmean(errors[~np.isnan(errors).all(axis=1)], axis=1)
        shared = {"each": np.sqrt(np.nanmean(errors**2)) / one, "joint": means.std(ddof=1) * math.sqrt(WORDS) / one}
    agree = {f"{name}_agrees": abs(ratio - 1) <= 0.15 + tolerance[name] for name, ratio in shared.items()}
    row = {"kind": kind, "epsilon": epsilon, "n_users": n_users, "whole_words": share, "held": held, "predicted": one}
    row |= {**shared, **agree, "lost": lost, "false": float(np.mean([(~one.index.isin(words)).sum() for one in lists]))}
    if isinstance(search, TreeHist):
        row |= quiet(search, words, light, 1000 * seed + number)
    print(row, flush=True)
    return row


def main() -> None:
    asked, started = measure.asked(__doc__, searches=60, runs=50, seed=0), time.process_time()
    found = pd.DataFrame([judged(asked.seed, number, asked.runs) for number in range(asked.searches)])
    compared = found[found.each.notna()]
    agree = ", ".join(
        f"{name}: {compared[f'{name}_agrees'].sum():g} of {compared[name].count()}"
        for name in ("each", "joint", "survivors", "listed", "found")
    )
    measure.write("search_truth", found.round(4), "make searches")
    wrong = f"lost {compared.lost.mean():.4f}, false {found['false'].mean():.3f} a run"
    print(f"{agree}; {wrong}; {time.process_time() - started:.0f} s")


if __name__ == "__main__":
    main()
