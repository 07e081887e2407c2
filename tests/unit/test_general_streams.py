"""General streams: what they hold, k* by hand, sizes of the simulation, and what cannot work."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from evolvingdp.book.checkout import params_of
from evolvingdp.core.seeds import stream
from evolvingdp.notebooks.sparse_vector.methods import GAUSSIAN, MONITOR, REPEATED, Target, calibrated
from evolvingdp.notebooks.sparse_vector.other_streams import general_rows, participation
from evolvingdp.notebooks.sparse_vector.shifting_heavy_hitters import _of_other_streams, general_table, general_values
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.shifting import plan
from evolvingdp.sparse_vector.streams.general import GeneralStream, answer, csr_array, random_stream, simulate
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

STREAM = random_stream(1000, 40, 6, 2**32, stream(0, "general"), vocabulary=30, held=3)
SURE = MonitorNoise(1e-6, 0.0)


def test_weights_and_k_are_those_of_the_users_one_by_one():
    names = sorted({element for elements in STREAM.elements for element in elements.tolist()})
    assert len(names) == 30
    assert 0 <= names[0] < names[-1] < 2**32
    assert STREAM.users.sum() == STREAM.n_users == 1000
    assert STREAM.users.min() >= 1
    taken = np.zeros(1000, dtype=int)
    for step, (elements, held) in enumerate(zip(STREAM.elements, STREAM.held, strict=True)):
        assert np.all(np.diff(elements) > 0)
        everyone = np.repeat(held.todense(), STREAM.users, axis=1)
        assert set(np.unique(everyone)) <= {0, 1}
        assert 1 <= everyone.sum(axis=0).min() <= everyone.sum(axis=0).max() == 3
        assert STREAM.weights[step].tolist() == everyone.sum(axis=1).tolist()
        taken += everyone[everyone.sum(axis=1) >= 100].sum(axis=0)
    assert STREAM.participation(100) == taken.max() > 3
    assert STREAM.n_entries == sum(held.sum() for held in STREAM.held)
    assert STREAM.absent_queries == 6 * 2**32 - sum(len(elements) for elements in STREAM.elements)


def test_popularity_falls_with_the_rank_and_shifts():
    still, shifting = (
        random_stream(10**5, 2000, 30, 1000, stream(0, "shift"), vocabulary=50, held=1, drift=drift, stay=0.0)
        for drift in (0.0, 0.5)
    )
    most = [{int(s.elements[t][s.held[t].sum(axis=1).argmax()]) for t in range(30)} for s in (still, shifting)]  # of types
    assert len(most[0]) == 1
    assert len(most[1]) > 5
    assert still.held[0].sum(axis=1).max() > 5 * np.median(still.held[0].sum(axis=1))
    kept = random_stream(100, 100, 5, 1000, stream(0, "stay"), vocabulary=50, held=1, stay=1.0)
    assert all(np.array_equal(one.todense(), kept.held[0].todense()) for one in kept.held)


def test_a_type_counts_across_steps_and_within_one_and_is_deleted_as_a_whole():
    """Two types of 3 and 4 users; both hold element 5, one of them also 2 and 9; threshold 3.5, no noise."""
    table = csr_array(np.array([[1, 0], [1, 1], [1, 0]]))
    data = GeneralStream(np.array([4, 3]), (np.array([2, 5, 9]),) * 3, (table,) * 3, 100)
    found, absent = simulate(ThresholdMonitorEvolving(SURE, 3.5, 2), data, stream(0, "sure"))
    assert [above.tolist() for above in found] == [[True, True, False], [False, False, False], [False, False, False]]
    assert absent == 0
    found, _ = simulate(ThresholdMonitorEvolving(SURE, 3.5, 5), data, stream(0, "sure"))
    assert [above.tolist() for above in found] == [[True, True, True], [True, True, False], [False, False, False]]
    assert data.participation(4) == 9
    assert data.participation(7) == 3


def test_answers_do_not_depend_on_how_users_are_grouped():
    """Every user a type of its own: the same answers for the same noise."""
    monitor = ThresholdMonitorEvolving(MonitorNoise(2.0, 2.0), 90.0, 4)
    wide = tuple(csr_array(np.repeat(held.todense(), STREAM.users, axis=1)) for held in STREAM.held)
    apart = GeneralStream(np.ones(1000, dtype=np.int64), STREAM.elements, wide, STREAM.n_elements)
    grouped, single = np.zeros(40, dtype=np.int64), np.zeros(1000, dtype=np.int64)
    for step in range(len(STREAM.held)):
        one = answer(monitor, STREAM, step, grouped, stream(0, "grouped", step))
        other = answer(monitor, apart, step, single, stream(0, "grouped", step))
        assert one.tolist() == other.tolist()
    assert np.array_equal(np.repeat(grouped, STREAM.users), single)
    assert grouped.max() >= 4 > grouped.min()


def test_with_k_star_all_that_is_heavy_is_found_and_with_less_it_is_not():
    target = Target(1.0, 1e-6, 0.05, 2**32)
    data = random_stream(10**5, 200, 20, 2**32, stream(0, "enough"), exponent=0.7)
    enough, own = participation(target, data)
    noise, events = own.monitor.noise, sum(len(one) for one in data.elements)
    light = 2 * own.monitor.threshold - own.error
    assert own.error == plan(calibrated(target, enough), 20, 2**32, events, 0.05).error
    assert data.participation(light) <= enough
    assert 3 < enough <= 40
    assert events * float(noise.sf(own.monitor.threshold - light)) <= 0.025  # nothing lighter uses anybody up
    heavy = np.concatenate(data.weights) >= own.error
    assert heavy.sum() > 50
    for reports, least, most in ((enough, 1.0, 1.0), (3, 0.0, 0.7)):
        monitor = plan(calibrated(target, reports), 20, 2**32, events, 0.05).monitor
        found, _ = simulate(monitor, data, stream(0, "found", reports))
        assert least <= np.concatenate(found)[heavy].mean() <= most


Params = params_of("sparse_vector/shifting_heavy_hitters")


def test_rows_of_the_general_stream_make_a_table_and_values():
    table = pd.DataFrame(general_rows(Params.make("quick", {"n_users": 10**6, "sweep_repetitions": 2}), 0))
    values = general_values(table)
    assert general_table(table).k.tolist() == ["3", "10", "30", str(values["general_k"])]
    assert table.groupby("reports").found.mean().is_monotonic_increasing
    assert values["general_events"] > 1000


@pytest.mark.parametrize(("n_users", "epsilon"), [(10**4, 1.0), (10**5, 0.1)])
def test_where_no_element_is_heavy_there_is_no_share_of_them_and_no_claim(n_users, epsilon):
    """The least sizes that the parameters allow: the error at k* is more than anything weighs."""
    own = {"n_users": n_users, "n_users_sweep": [n_users, 10**6], "epsilon": epsilon, "sweep_repetitions": 2}
    params = Params.make("quick", own)
    table = pd.DataFrame(general_rows(params, 0))
    assert table.heavy_share.isna().all()
    assert general_values(table)["general_events"] == 0
    assert set(general_table(table)["heavy elements found"]) == {"there are none"}
    methods = [MONITOR, REPEATED, GAUSSIAN]
    brown = pd.DataFrame({"part": "brown", "reports": 1, "total": 1, "found": [3.0, 1.0, 9.0], "method": methods})
    assert math.isnan(_of_other_streams(pd.concat([table, brown]))["general_share"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_types": 101}, "n_types must be <= n_users = 100, got 101"),
        ({"n_types": 0}, "n_types must be >= 1, got 0"),
        ({"vocabulary": 51}, "vocabulary must be <= n_elements = 50, got 51"),
        ({"exponent": -1.0}, "exponent must be >= 0 and finite, got -1.0"),
        ({"exponent": np.nan}, "exponent must be >= 0 and finite, got nan"),
        ({"drift": 1.5}, r"drift must lie in \[0, 1\], got 1.5"),
        ({"stay": -0.5}, r"stay must lie in \[0, 1\], got -0.5"),
        ({"horizon": 10**12}, "the stream needs"),
    ],
)
def test_what_cannot_work_is_refused(change, message):
    good = {"n_users": 100, "n_types": 10, "horizon": 2, "n_elements": 50, "vocabulary": 20}
    random_stream(rng=stream(0, "good"), **good)
    with pytest.raises(ValueError, match=message):
        random_stream(rng=stream(0, "bad"), **(good | change))
