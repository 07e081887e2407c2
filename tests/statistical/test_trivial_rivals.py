"""Recommendations against their trivial transformations, at the same guarantee, by what releases state."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rivals import better

from evolvingdp.continual_mean import choosing, streams
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.seeds import stream

N_USERS, MOST, STEPS, EPSILON = 1000, 512, 20_000, 2.0


def test_the_gate_names_who_is_better_and_takes_no_refusal_for_a_rival():
    def refuses():
        raise ValueError

    assert better(1.0, {"worse": lambda: 2.0, "a little better": lambda: 0.95, "refuses": refuses}) == {}
    assert better(1.0, {"better": lambda: 0.85, "not a number": lambda: math.nan}).keys() == {"better", "not a number"}
    with pytest.raises(LookupError, match="must have a rival that can be tried"):
        better(1.0, {"refuses": refuses})


def stated(settings, users, alone=False):
    """Root mean square of standard error and possible bias over the second half; values play no part.

    `alone`: of the mean of the samples in the sum, in which the others do not count as the middle of the range.
    """
    release = settings.release(users, np.zeros(len(users), dtype=int), stream(0, "rivals", "noise"))
    late = slice(len(users) // 2, None)
    noise, bias = release.standard_error[late], release.bias[late]
    return math.sqrt(np.mean((noise / (1 - 2 * bias)) ** 2 + (2 * bias) ** 2 if alone else noise**2 + bias**2))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("order", streams.ORDERS)
def test_no_trivial_transformation_of_the_recommended_mean_has_a_tenth_less_error(order, delta):
    before, users = (streams.arrivals(order, N_USERS, MOST, STEPS, stream(0, "rivals", order, run)) for run in range(2))

    def chosen(own_delta, **options):
        return choosing.recommended(N_USERS, MOST, EPSILON, own_delta, arrivals=before, horizon=STEPS, **options)

    own = chosen(delta)
    changes = {f"batch times {by}": {"batch": max(1, round(by * own.batch))} for by in (0.25, 0.5, 2, 4)} | {
        "batch 1": {"batch": 1}
    }
    if own.delta:
        changes |= {f"reach times {by}": {"reach": by * own.norm} for by in (0.5, 0.8, 1.25, 2)}
        changes |= {f"decay to the {by}": {"decay": own.decay**by} for by in (0, 0.25, 0.5, 2, 4)}
    else:
        caps = {by: max(1, round(by * own.samples_per_user)) for by in (0.5, 0.8, 1.25, 2)}
        changes |= {f"cap times {by}": {"samples_per_user": cap} for by, cap in caps.items()}
        changes |= {f"a plain tree of base {base}": {"branching": base} for base in (2, 4, 16)}
        changes |= {"real noise": {"integer": False}}
    rivals = {name: lambda change=change: stated(own.but(**change), users) for name, change in changes.items()}
    rivals["the samples in the sum alone"] = lambda: stated(own, users, alone=True)
    rivals["every second sample"] = lambda: math.hypot(stated(own, users[::2]), 0.5)
    if delta:
        rivals["pure"] = lambda: stated(chosen(0.0), users)
        rivals["the square root, chosen again"] = lambda: stated(chosen(delta, decay=1.0), users)
        rivals["no batches, chosen again"] = lambda: stated(chosen(delta, batch=1), users)
    assert better(stated(own, users), rivals) == {}
    plain = UserMean(N_USERS, 2 * STEPS // N_USERS, EPSILON, delta, horizon=STEPS, excess="drop")
    if order == "random":  # the gate notices what was recommended once: samples one by one, for the worst order
        assert {"batch times 0.5", "batch times 2"} <= better(stated(plain, users), rivals).keys()
