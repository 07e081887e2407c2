"""Settings that cannot work are refused in one line that names them: of every mechanism, and of what chooses settings."""

from __future__ import annotations

import inspect
import math
import re
from functools import partial
from typing import Any

import numpy as np
import pytest
from generators import MECHANISMS

from evolvingdp import continual_mean as means
from evolvingdp import evolving, heavy_hitters
from evolvingdp import sparse_vector as sparse
from evolvingdp.core import accounting, noise, reports
from evolvingdp.core.geometry import Geometry
from evolvingdp.core.olh import OLH
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream

PRIVACY: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
USERS: dict[str, Any] = {"n_users": 10, "samples_per_user": 8, "epsilon": 1.0}
BITS: dict[str, Any] = {"n_users": 10**6, "horizon": 64, "epoch_length": 10**5, "epsilon": 2.0}
TREE, HASHES = heavy_hitters.WordTree(), heavy_hitters.hashtogram(4, 16, 1.0, stream(0, "hashes")).hashes
SEARCH = sparse.AboveThreshold.calibrated(**PRIVACY, reports=3, threshold=0.0)
WORKING = [  # each with settings that work
    *(partial(law, 2.0) for law in (noise.Laplace, noise.Exponential, noise.Gaussian)),
    *(partial(law, 2.0) for law in (noise.DiscreteLaplace, noise.DiscreteGaussian)),
    partial(noise.IntegerNoise, 1.0, 4),
    partial(noise.GaussianNoise, 1.0, 4.0),
    partial(noise.MonitorNoise, 1.0, 3.0),
    partial(accounting.advanced, 1.0, 1e-6, 4),
    partial(accounting.optimal, 1.0, 1e-6, 4),
    partial(accounting.basic, 1.0, 4),
    partial(SignFlip, 1.0),
    partial(OLH, 1.0, 4),
    *(partial(kind, 5, 1.0) for kind in (reports.Subset, reports.Hashed, reports.Sign)),
    partial(reports.Projective, 5, 1.0, Geometry(2, 3)),
    partial(reports.best_report, 5, 1.0, 9, 0.1),
    partial(heavy_hitters.Bitstogram, 1.0, 10.0),
    partial(heavy_hitters.FreqOracle, HASHES, 1.0),
    partial(heavy_hitters.ProjectiveOracle.draw, 4, 16, 1.0, stream(0, "draw")),
    heavy_hitters.Rappor,
    partial(heavy_hitters.Rappor.one_shot, 1.0),
    partial(heavy_hitters.Shuffled, 1.0, 10, 2, 0.0),
    partial(heavy_hitters.Texts, 1.0, "spring"),
    partial(heavy_hitters.TreeHist, TREE, 1.0, 10.0),
    heavy_hitters.WordTree,
    partial(heavy_hitters.epsilon_of_a_report, 1.0, 1e-6, 100, lambda _: (4, 1 / 16), 6.0),
    partial(heavy_hitters.explicit_hist, 1.0),
    partial(heavy_hitters.planned, 1.0, 10**6, 20_000.0),
    partial(evolving.BitStream.make, [10], [[0.5] * 4], 10),
    partial(evolving.WordStream.make, [10], [[0.5, 0.5]], [[0] * 4], 10),
    partial(evolving.HeavyThresh, evolving.Thresh(300, 8, 2000, 60.0, 1.5, 2.0, 8, 3, 0.2), 6),
    partial(evolving.HeavyThresh.tuned, **BITS, n_words=100, changes=1),
    partial(evolving.HeavyThresh.paper, **BITS, n_words=100, changes=1),
    partial(evolving.Thresh, 1000, 16, 100, 10.0, 0.5, 2.0, 4, 3, 0.02),
    partial(evolving.Thresh.tuned, **BITS, changes=1),
    partial(evolving.Thresh.paper, **BITS, changes=1),
    partial(evolving.Once, 10, 4, 1.0),
    partial(evolving.Reserve, 1000, 12, 1.0, 1),
    partial(evolving.epsilon_of_report, 1.0, 4, "optimal", 1e-6),
    partial(means.BinaryMechanism, 8, **PRIVACY),
    partial(means.Blocks, **USERS),
    partial(means.Buffered, 8, 0.9),
    partial(means.Days, means.UserMean(**USERS), 3, 1),
    partial(means.Tree, 8),
    partial(means.UserMean, **USERS, delta=1e-6, decay=0.9, reach=3.0),
    partial(means.UserMean, **USERS),
    *(partial(make, **USERS) for make in (means.full, means.naive, means.recommended, means.users_alike)),
    *(partial(make, **USERS, prior_mean=0.5) for make in (means.wishful, means.single_tree, means.multiple_trees)),
    partial(sparse.AboveThreshold, 10.0, 3, noise.Gaussian(2.0), moved=9),
    partial(sparse.AboveThreshold.calibrated, **PRIVACY, reports=3, threshold=10.0, kind="one"),
    partial(SEARCH.silent, 10, 0.05),
    partial(SEARCH.error, 3, 0.05),
    partial(sparse.AboveThreshold.stable_gaussian, **PRIVACY, reports=3, moved=9),
    partial(sparse.AboveThreshold.stable_one, **PRIVACY, reports=3, moved=9, split=0.5),
    partial(sparse.Histogram, noise.Gaussian(2.0), 10.0, 3, 4),
    partial(sparse.ThresholdMonitorEvolving, noise.Gaussian(2.0), 10.0, 3, moved=9),
    partial(sparse.best_threshold, **PRIVACY, reports=3, queries=9, moved=9),
    partial(sparse.calibrate, **PRIVACY, reports=3),
    partial(sparse.histogram, **PRIVACY, horizon=3, n_elements=9),
    partial(sparse.planned_monitor, sparse.calibrate(**PRIVACY, reports=3), 10, 10, 3),
    partial(sparse.smallest_group, sparse.stable_monitor(**PRIVACY, reports=3, moved=9)),
    partial(sparse.smallest_scale, **PRIVACY, reports=3),
    partial(sparse.stable_monitor, **PRIVACY, reports=3, moved=9),
]
BAD: dict[str, tuple[Any, ...]] = {
    "int": (-1, 0, 1.5, math.nan, "1", None, True),
    "float": (-1.0, 0.0, math.nan, math.inf, 10**400, "1", None, True, np.True_, 1j, np.complex64(1)),
    "str": ("nothing", 3),
}
BEYOND: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("branching", "cells"), (1,)),
    **dict.fromkeys(("beta", "delta", "final_share", "leaf_share", "margin", "permanent_noise", "split"), (1.0, 2000.0)),
    **dict.fromkeys(("decay", "frequency"), (1.1,)),
}  # by name: what is larger than it may be, or one
TAKEN = {
    "-1.0": "threshold low",
    "0": "vote_cap changes spare branching moved",
    "0.0": "threshold low both prior_mean permanent_noise frequency",
    "'nothing'": "public",
}  # names of settings of which these are values, as is what is there unless one says otherwise


def made(call):
    """What is called, and all of its arguments by name."""
    called = getattr(call, "func", call)
    bound = inspect.signature(called).bind(*getattr(call, "args", ()), **getattr(call, "keywords", {}))
    bound.apply_defaults()
    arguments = dict(bound.arguments)
    for each in inspect.signature(called).parameters.values():
        if each.kind is each.VAR_KEYWORD:
            arguments |= arguments.pop(each.name)
    return called, arguments


@pytest.mark.parametrize("call", WORKING, ids=lambda call: getattr(call, "func", call).__qualname__)
def test_a_setting_of_a_wrong_kind_or_size_is_refused_in_one_line_that_names_it(call):
    called, working = made(call)
    called(**working)
    for each in inspect.signature(called).parameters.values():
        optional, kind = "None" in str(each.annotation), str(each.annotation).split(" |")[0]
        if each.kind is each.VAR_KEYWORD or kind not in BAD:
            continue
        for bad in (*BAD[kind], *BEYOND.get(each.name, ())):
            if (bad is None and optional) or bad == each.default or each.name in TAKEN.get(repr(bad), "").split():
                continue
            with pytest.raises((TypeError, ValueError), match=rf"^[^\n]*\b{each.name}\b[^\n]*$") as refused:
                called(**working | {each.name: bad})
            got = rf"got .*{re.escape(repr(bad)[:9])}"
            assert re.search(rf" must .*({got}|given|left out|go with)", str(refused.value)), refused.value


def test_all_that_the_registry_makes_mechanisms_with_is_tried():
    makers = {maker for one in MECHANISMS.values() for maker in one.made_by}
    assert makers <= {made(call)[0] for call in WORKING}
