"""What the tests share."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
from scipy.stats import chi2_contingency, chisquare

ALPHA = 1e-6  # the false-alarm rate of every statistical test; seeds are fixed and never chosen
REPOSITORY = Path(__file__).parents[1]
CACHE = os.environ.get("EVOLVINGDP_CACHE", str(REPOSITORY / ".cache"))  # of the whole book, shared with `make book`
TOY = "toy/line"  # the one notebook of the small book


def fits(observed: Counter, law: dict, draws: int) -> float:
    """p-value of `observed` outcomes against the exact `law`; outcomes expected fewer than 5 times are pooled."""
    assert set(observed) <= set(law), "an outcome that the law excludes"
    outcomes = sorted(law, key=law.get, reverse=True)
    expected = np.array([law[outcome] * draws for outcome in outcomes])
    seen = np.array([observed.get(outcome, 0) for outcome in outcomes])
    common = expected >= 5
    pooled_expected = np.append(expected[common], expected[~common].sum())
    pooled_seen = np.append(seen[common], seen[~common].sum())
    if pooled_expected[-1] == 0:
        pooled_expected, pooled_seen = pooled_expected[:-1], pooled_seen[:-1]
    return float(chisquare(pooled_seen, pooled_expected * pooled_seen.sum() / pooled_expected.sum()).pvalue)


def pvalue(one: Counter, other: Counter) -> float:
    """Two samples of outcomes of the same law; rare outcomes are pooled."""
    keys = sorted(set(one) | set(other), key=lambda key: -(one[key] + other[key]))
    table = np.array([[sample[key] for key in keys] for sample in (one, other)])
    common = table.sum(axis=0) >= 20
    return chi2_contingency(
        np.column_stack([table[:, common], table[:, ~common].sum(axis=1)])[:, : common.sum() + (~common).any()]
    ).pvalue
