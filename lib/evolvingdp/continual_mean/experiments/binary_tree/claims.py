"""Running sums: what the page claims, and the numbers that prose prints."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evolvingdp.continual_mean.binary_mechanism import best_tree, printed_sums
from evolvingdp.continual_mean.experiments.binary_tree.params import Params
from evolvingdp.continual_mean.experiments.binary_tree.tables import (
    ANYTIME,
    BALANCED,
    BANDED,
    BANDED_BEST,
    BINARY,
    BUFFERED,
    FAR,
    GAUSSIAN,
    GAUSSIAN_HONAKER,
    HONAKER,
    INTEGER,
    PER_STEP,
    ROOT,
    WHOLE,
    WIDE,
    branchings,
    lower_bound,
    recorded_error,
    separated,
    variances,
    whole_stream,
)
from evolvingdp.continual_mean.prefix_sums import Tree
from evolvingdp.experiment import Claim, Scalar, at_least, at_most, within

SEPARATED = {"tree": GAUSSIAN_HONAKER, "root": ROOT, "buffered": BUFFERED, "banded": BANDED, "best": BANDED_BEST}


def claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    errors = whole_stream(table)
    ratio = errors.measured / errors.exact
    by_branching = branchings(params)
    by_branching = by_branching[by_branching.kind.str.endswith("pure")]
    ones = [step & -step for step in range(1, 9)]
    apart = separated(params).set_index(["mechanism", "uses"]).error
    largest = {name: np.sqrt(variances(params, name).max()) for name in (GAUSSIAN, ROOT)}
    return [
        at_most(
            "Measured errors are the exact ones: largest relative distance, all mechanisms",
            float((ratio - 1).abs().max()),
            0.2,
        ),
        at_least("Printed, Algorithm 1 counts eight ones as", float(printed_sums(ones)[-1]), 32),
        at_least(
            "Honaker's estimates cut the tree's error over the stream: binary over Honaker, exact",
            errors.exact[BINARY] / errors.exact[HONAKER],
            1.2,
        ),
        at_most(
            "Integer noise costs nothing: its error over Laplace noise's, exact",
            errors.exact[INTEGER] / errors.exact[HONAKER],
            1.01,
        ),
        at_least(
            "The square root beats both Gaussian trees over the stream: the better of them over it, exact",
            min(errors.exact[GAUSSIAN], errors.exact[GAUSSIAN_HONAKER]) / errors.exact[ROOT],
            1.5,
        ),
        at_least("A wide tree beats the binary one, pure, exact", errors.exact[BINARY] / errors.exact[WIDE], 1.5),
        at_least(
            "The square root beats the Gaussian binary tree at the worst step, too, exact",
            largest[GAUSSIAN] / largest[ROOT],
            1.5,
        ),
        at_least(
            "Negative digits cut the error of the best tree drawn by a tenth or more: the better of wide and Honaker, over it",
            min(errors.exact[WIDE], errors.exact[HONAKER], by_branching.error.min()) / errors.exact[BALANCED],
            1.1,
        ),
        at_least(
            "Sums of a stream that has ended have less error than those released step by step: the best tree's error over theirs, exact",
            errors.exact[BALANCED] / recorded_error(params),
            1.0,
        ),
        at_most(
            "Eight buffers cost next to nothing: their error over the square root's, exact",
            errors.exact[BUFFERED] / errors.exact[ROOT],
            1.02,
        ),
        within(
            "No factorization does much better: the square root's error over the lower bound for all of them",
            errors.exact[ROOT] / lower_bound(params, params.horizon),
            1.0,
            1.2,
        ),
        at_most(
            "Discrete Gaussian noise, accounted as zero-concentrated privacy, costs little: its error over Gaussian noise's, exact",
            errors.exact[WHOLE] / errors.exact[GAUSSIAN_HONAKER],
            1.1,
        ),
        at_most(
            "A length that is not known costs half again at most: the error without an end over the square root's, exact",
            errors.exact[ANYTIME] / errors.exact[ROOT],
            1.5,
        ),
        at_most(
            "Where a person's elements are far apart, bands pay: the banded square root's error over the square root's, 64 elements",
            apart[BANDED, 64] / apart[ROOT, 64],
            0.8,
        ),
        at_least("A tree beats noise at every step, measured", errors.measured[PER_STEP] / errors.measured[BINARY], 100),
    ]


def values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    errors = whole_stream(table)
    apart = separated(params).set_index(["mechanism", "uses"])
    by_branching = branchings(params)
    best = by_branching.loc[by_branching[by_branching.kind == "plain, pure"].error.idxmin()]
    names = {
        "per_step": PER_STEP,
        "binary": BINARY,
        "honaker": HONAKER,
        "wide": WIDE,
        "gaussian": GAUSSIAN,
        "gaussian_honaker": GAUSSIAN_HONAKER,
        "root": ROOT,
        "balanced": BALANCED,
        "buffered": BUFFERED,
    }
    return {
        "horizon": params.horizon,
        "epsilon": params.epsilon,
        "runs": params.repetitions,
        "height": Tree(params.horizon).height,
        "best_branching": int(best.branching),
        "digits_branching": best_tree(params.horizon).branching,
        "recorded_error": recorded_error(params),
        "whole_error": float(errors.exact[WHOLE]),
        "far_error": float(errors.exact[FAR]),
        "anytime_error": float(errors.exact[ANYTIME]),
        "over_bound": float(errors.exact[ROOT] / lower_bound(params, params.horizon)),
        "best_branching_error": float(best.error),
        "apart_horizon": int(apart.horizon.iloc[0]),
        **{f"apart_{short}": float(apart.error[name, 64]) for short, name in SEPARATED.items()},
        **{f"{short}_error": float(errors.exact[name]) for short, name in names.items()},
        **{f"{short}_measured": float(errors.measured[name]) for short, name in names.items()},
    }
