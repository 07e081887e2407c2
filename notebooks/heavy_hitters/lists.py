"""What the experiments that find lists of words share: the data of Section 4.2, and how good a list is."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.core import brown
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.listing import HeavyHitters
from evolvingdp.heavy_hitters.word_tree import Nodes, WordTree
from evolvingdp.notebooks.heavy_hitters import streams

LETTERS = WordTree((2, 2, 2))
BITS = WordTree((1,) * 30, unit="bits")


def data(n_items: int, dataset: str, n_users: int, seed: int, repetition: int) -> pd.Series:
    """How many users hold each word, by word: a new data set in every repetition, the same for all variants."""
    rng = stream(seed, "data", dataset, n_users, repetition)
    if dataset == "brown":
        return pd.Series(streams.brown_counts(n_users, rng), index=brown_words())
    words = pd.Index(streams.random_words(n_items, rng))
    return pd.Series(streams.power_law_counts(n_users, rng, n_items=n_items), index=words)


@cache
def brown_words() -> pd.Index:
    """Brown's words, the same in every run, so that what follows from them is worked out once."""
    words: pd.Index = pd.Index(brown.words()["word"].to_numpy(dtype=str))
    return words


def find(method: Any, truth: pd.Series, seed: int, *name: str | int) -> HeavyHitters:
    """One run on a data set of `method`."""
    leaves, counts = leaves_of(method.tree, truth.index), truth.to_numpy()
    rng = stream(seed, "reports", *name)
    found: HeavyHitters = method.draw_hashes(stream(seed, "hashes", *name)).simulate_search(leaves, counts, rng)
    return found


def leaves_of(tree: WordTree, words: pd.Index) -> Nodes:
    """Those of `words` in a tree of six letters, whatever its steps."""
    return _brown_leaves(BITS if tree.unit == BITS.unit else LETTERS) if words is brown_words() else tree.encode(words)


@cache
def _brown_leaves(tree: WordTree) -> Nodes:
    return tree.encode(brown_words())


def score(found: pd.Series, truth: set[str]) -> dict[str, float]:
    """Precision, recall and F1 of the words `found` against the words of `truth`; 1 where nothing was to be found."""
    hits = len(truth & set(found))
    precision = hits / len(found) if len(found) else 1.0
    recall = hits / len(truth) if truth else 1.0
    f1 = 2 * hits / (len(found) + len(truth)) if len(found) or truth else 1.0
    return {"precision": precision, "recall": recall, "f1": f1}


def judge(found: pd.DataFrame, truth: pd.Series, heavy_from: float) -> dict[str, Any]:
    """Scores of the list `found`; its error over words twice as heavy as needed: a cut selects others by their noise."""
    heavy = set(truth.index[truth > heavy_from])
    true = truth.reindex(found.word, fill_value=0).to_numpy(float)  # also of a list without words
    clear = true > 2 * heavy_from
    errors, stated = (found.estimate - true)[clear], found.standard_error[clear]
    return {
        "distinct": int((truth > 0).sum()),
        "heavy": len(heavy),
        "found": len(found),
        "hits": len(heavy & set(found.word)),
        **score(found.word, heavy),
        "rmse": float(np.sqrt(np.mean(np.square(errors)))) if len(errors) else math.nan,
        "standard_error": float(np.sqrt(np.mean(np.square(stated)))) if len(stated) else math.nan,
    }
