"""What the experiments that find lists of words share: the data of Section 4.2, and how good a list is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evolvingdp.core import brown
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import streams


def data(n_items: int, dataset: str, n_users: int, seed: int, repetition: int) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Words and counts: a new data set in every repetition, the same for all variants."""
    rng = stream(seed, "data", dataset, n_users, repetition)
    if dataset == "brown":
        return brown.words()["word"].to_numpy(dtype=str), streams.brown_counts(n_users, rng)
    return streams.random_words(n_items, rng), streams.power_law_counts(n_users, rng, n_items=n_items)


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
