"""FreqOracle: merging, chunks, linearity, errors, and theory by hand."""

from __future__ import annotations

import math
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvingdp.core import hadamard
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import count_sketch, theory
from evolvingdp.heavy_hitters.count_sketch import FreqOracle

KEYS = np.arange(7, dtype=np.uint64)


def oracle(epsilon=2.0, rows=5, width=16):
    return FreqOracle(MultiplyShift.draw(rows, width, stream(0, "hashes")), epsilon)


@given(st.lists(st.integers(0, 6), max_size=30), st.lists(st.integers(0, 6), max_size=30))
def test_merged_sketches_are_the_sketch_of_all_users(first, second):
    freq = oracle()
    slots = freq.assign(60, stream(0, "slots"))
    users = np.array(first + second, dtype=np.uint64)
    slots = slots[: len(users)]
    reports = freq.report(users, slots, stream(0, "noise"))
    cut = len(first)
    parts = [freq.add(freq.empty(), slots[:cut], reports[:cut]), freq.add(freq.empty(), slots[cut:], reports[cut:])]
    whole = freq.add(freq.empty(), slots, reports)
    for merged in (parts[0] + parts[1], parts[1] + parts[0], freq.add(parts[0], slots[cut:], reports[cut:])):
        assert np.array_equal(merged.sums, whole.sums)
        assert merged.n_reports == whole.n_reports == len(users)


def test_collecting_does_not_depend_on_the_chunk_size(monkeypatch):
    freq = oracle()
    users = stream(0, "users").integers(0, 7, size=1000).astype(np.uint64)

    def collect():
        return freq.collect(users, stream(0, "slots"), stream(0, "noise"))

    whole = collect()
    monkeypatch.setattr(count_sketch, "_AT_ONCE", 7)
    assert np.array_equal(collect().sums, whole.sums)
    assert whole.n_reports == 1000


def test_simulation_refuses_what_are_no_counts():
    rng = stream(0, "noise")
    with pytest.raises(TypeError, match="counts must be a one-dimensional array of integers"):
        oracle().simulate(KEYS, np.full(7, 1.5), rng)
    with pytest.raises(ValueError, match="one entry per key, got 6 for 7"):
        oracle().simulate(KEYS, np.arange(6), rng)


def test_nobody_reports_nothing():
    freq = oracle()
    nobody = freq.collect(KEYS[:0], stream(0, "slots"), stream(0, "noise"))
    assert nobody.n_reports == 0
    assert np.array_equal(freq.estimate(nobody, KEYS), np.zeros(7))


def test_the_median_of_normals_has_the_deviation_of_its_order_statistics():
    """Of 1, 2 and 3 in closed form, of 4 and 15 from tables (Sarhan and Greenberg, 1962), of many in the limit."""
    known = {1: 1.0, 2: math.sqrt(1 / 2), 3: math.sqrt(1 - math.sqrt(3) / math.pi), 4: 0.5461, 15: 0.3189}
    for size, deviation in (known | {2001: math.sqrt(math.pi / 2 / 2001)}).items():
        assert theory.normal_median_deviation(size) == pytest.approx(deviation, rel=5e-3)


def test_the_paper_s_constants_at_ten_million_users_are_those_the_errata_evaluate():
    rows = theory.paper_rows(10**7, 0.05)
    assert round(rows) == 2103
    assert round(theory.paper_width(10**7, 0.05)) == 34719
    assert theory.paper_error_bound(10**7, 2.0, rows) / 1e7 == pytest.approx(0.1015, abs=1e-4)
    eta = theory.paper_threshold(10**7, 2.0, 0.05, math.log2(26**6))
    assert eta == pytest.approx(147 * math.sqrt(1e7 * 19.1138 * 28.2026) / 2, rel=1e-4)
    assert eta / 1e7 == pytest.approx(0.5396, abs=1e-4)


def test_collisions_only_add_to_the_error_and_vanish_with_the_width():
    others = np.array([10**6, 10**5])
    alone = theory.noise_standard_error(10**7, 2.0, 285)
    scale = SignFlip(2.0).debias * math.sqrt(1e7 * 285)
    for width in (2, 64):  # one other word: the density at zero is that of a mixture of two normals, by hand
        density = 1 - 1 / width + math.exp(-((3e6 / scale) ** 2) / 2) / width
        one = theory.median_error(np.array([3 * 10**6]), 10**7, 2.0, 285, width)
        rounding = 285 * SignFlip(2.0).debias * math.sqrt((1 - 1 / 285) / 12)
        assert one == pytest.approx(math.hypot(math.sqrt(alone**2 - rounding**2) / density, rounding), rel=1e-6)
    narrow, wide = (theory.median_error(others, 10**7, 2.0, 285, width) for width in (64, 2**20))
    assert narrow > wide > alone
    assert wide == pytest.approx(alone, rel=1e-4)


@pytest.mark.parametrize("peak", [127, 128, 2**15, 2**31, 2**40])
def test_many_keys_are_read_from_sums_of_any_size_as_few_are_by_hand(peak):
    """More keys than are read at once; sums at the ends of the integers that hold them, whose opposites need more."""
    freq, keys = FreqOracle(MultiplyShift.draw(4, 16, stream(0, "hashes")), 1.0), np.arange(20_000, dtype=np.uint64)
    sums = stream(0, "sums", peak).integers(-peak, peak, size=(4, 16), dtype=np.int64)
    sums[0] = [-peak, *[0] * 15]  # so all cells of this row
    columns, rows = np.arange(16), np.arange(4)[:, None]
    cells, signs = freq.hashes.cells(rows, keys[None, :]), freq.hashes.signs(rows, keys[None, :])
    read = sums @ hadamard.signs(columns[:, None], columns).astype(np.int64)
    assert set(read[0].tolist()) == {-peak}
    by_hand = 4 * freq.randomizer.debias * read[rows, cells] * signs
    sketch = count_sketch.Sketch(freq, sums, 10**9)
    assert np.allclose(freq.row_estimates(sketch, keys), by_hand, rtol=1e-12)
    assert np.allclose(freq.estimate(sketch, keys), np.median(by_hand, axis=0), rtol=1e-12)
    assert np.allclose(freq.estimate(sketch, keys, "mean"), by_hand.mean(axis=0), rtol=1e-9, atol=1e-9 * peak)


def test_the_standard_error_is_that_of_the_estimator():
    freq = oracle(epsilon=2.0, rows=285)
    a = 1 / math.tanh(1.0)
    assert freq.standard_error(10**7) == pytest.approx(math.sqrt(math.pi / 2) * a * math.sqrt(1e7), rel=2e-3)
    assert freq.standard_error(10**7, "mean") == pytest.approx(a * math.sqrt(1e7))
    with pytest.raises(ValueError, match="estimator must be one of median, mean, got 'joint'"):
        freq.estimate(freq.empty(), KEYS, "joint")


OTHERS = [
    FreqOracle(MultiplyShift.draw(5, 16, stream(1, "hashes")), 2.0),
    oracle(epsilon=1.0),
    *(oracle(rows=rows, width=width) for rows, width in ((5, 32), (5, 8), (6, 16), (4, 16))),
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: other.fingerprint)
def test_sketches_of_another_oracle_are_neither_merged_nor_read(other):
    freq = oracle()
    own, foreign = (each.simulate(KEYS, np.arange(7), stream(0, "noise")) for each in (freq, other))
    with pytest.raises(ValueError, match=r"sketches must be of one oracle to be merged, got one of FreqOracle, .*, one of"):
        own + foreign
    for read in (freq.estimate, freq.row_estimates, lambda sketch, _: freq.cell_estimates(sketch)):
        with pytest.raises(ValueError, match=r"sketch must hold reports made for FreqOracle, .*, got one of FreqOracle"):
            read(foreign, KEYS)
    with pytest.raises(ValueError, match=r"sketch must hold reports made for FreqOracle, .*, got one of FreqOracle"):
        freq.add(foreign, np.array([0]), np.array([1]))
    if (shape := foreign.sums.shape) != (5, 16):
        with pytest.raises(ValueError, match=rf"oracle's shape \(5, 16\) \(rows, width\), got {re.escape(str(shape))}"):
            count_sketch.Sketch(freq, foreign.sums, 0)


def test_the_same_oracle_made_twice_or_pickled_reads_the_same_sketches():
    freq = oracle(epsilon=2)
    fresh = pickle.loads(pickle.dumps(freq))
    sketch = freq.simulate(KEYS, np.arange(7) * 100, stream(0, "noise"))
    for same in (oracle(epsilon=np.float64(2.0)), fresh, pickle.loads(pickle.dumps(freq))):
        again = same.empty() + pickle.loads(pickle.dumps(sketch))
        assert np.array_equal(freq.estimate(again, KEYS), same.estimate(sketch, KEYS))


@pytest.mark.parametrize("kind", [np.uint64, np.uint8, np.int32])
def test_counts_of_every_integer_type_give_one_simulation(kind):
    freq, counts = oracle(), np.arange(7) * 30
    sketch = freq.simulate(KEYS, counts.astype(kind), stream(0, "noise"))
    assert np.array_equal(sketch.sums, freq.simulate(KEYS, counts, stream(0, "noise")).sums)


@pytest.mark.parametrize(
    ("slots", "reports", "error", "message"),
    [
        ([3, 80], [1, 1], ValueError, r"slots must lie in \[0, 80\), got 80 at position 1"),
        ([-1], [1], ValueError, r"slots must lie in \[0, 80\), got -1"),
        ([0.5], [1], TypeError, "slots must be a one-dimensional array of integers"),
        ([3, 4], [1, 100], ValueError, r"reports must be \+1 or -1, got 100 at position 1"),
        ([3, 4], [0, 1], ValueError, r"reports must be \+1 or -1, got 0 at position 0"),
        ([3, 4], [1], ValueError, r"reports must have one entry per slot, got \(1,\) for \(2,\)"),
    ],
)
def test_reports_that_nobody_can_send_are_refused(slots, reports, error, message):
    with pytest.raises(error, match=message):
        oracle().add(oracle().empty(), np.array(slots), np.array(reports))


def test_an_epsilon_that_no_coin_has_is_refused():
    for epsilon in (1e-320, 1e-17, 9.9e-10):
        with pytest.raises(ValueError, match=f"epsilon must be at least 1e-09, .* got {epsilon}"):
            oracle(epsilon=epsilon)
    freq = oracle(epsilon=1e-9)
    coin = freq.randomizer
    assert coin.debias * (1 - 2 * math.ceil(coin.flip * 2**53) / 2**53) == pytest.approx(1, rel=1e-6)
    assert np.all(np.isfinite(freq.estimate(freq.simulate(KEYS, np.full(7, 10**6), stream(0, "noise")), KEYS)))


def test_the_stated_errors_of_means_are_those_of_many_runs_where_keys_are_many_and_collide():
    """300 keys on 15 rows of 64 cells beside a heavy one that is not asked for: the known noise alone is too small."""
    keys, counts, runs = np.arange(301, dtype=np.uint64) ** 2, np.full(301, 40), 30
    counts[7] = 20_000
    errors, stated = np.empty((2, runs, 300))
    for run in range(runs):
        freq = FreqOracle(MultiplyShift.draw(15, 64, stream(0, "hashes", run)), 2.0)
        sketch = freq.simulate(keys, counts, stream(0, "noise", run))
        errors[run] = freq.estimate(sketch, np.delete(keys, 7), "mean") - 40
        stated[run] = freq.standard_errors(sketch, np.delete(keys, 7), "mean")
    ratio = np.sqrt(np.mean(np.square(errors)) / np.mean(np.square(stated)))
    assert abs(ratio - 1) < 0.1
    assert np.sqrt(np.mean(np.square(errors))) > 1.15 * freq.standard_error(int(counts.sum()), "mean")


def test_keys_may_come_as_a_list_or_signed_and_others_are_named():
    freq = oracle()
    sketch = freq.simulate(KEYS.tolist(), np.arange(7), stream(0, "noise"))
    for kind in (KEYS.tolist(), KEYS.astype(np.int64)):
        assert np.array_equal(freq.estimate(sketch, kind), freq.estimate(sketch, KEYS))
        assert freq.collect(kind, stream(0, "slots"), stream(0, "noise")).n_reports == 7
    with pytest.raises(ValueError, match="keys must be >= 0, got -3 at position 1"):
        freq.estimate(sketch, [2, -3])


def test_many_keys_that_reach_a_cut_are_found_without_reading_all_rows_of_all():
    """All that the plain estimates find, and their estimates; the rows left out are three quarters of the reads."""
    oracle = FreqOracle(MultiplyShift.draw(16, 2**10, stream(0, "hashes")), 2.0)
    held, asked = np.arange(50, dtype=np.uint64), np.arange(20_000, dtype=np.uint64)
    sketch = oracle.simulate(held, np.full(50, 20_000), stream(0, "reports"))
    estimates = oracle.estimate(sketch, asked)
    found = oracle.reaching(oracle.cell_estimates(sketch), sketch.n_reports, asked, 12_000.0)
    assert found.tolist() == np.flatnonzero(estimates >= 12_000).tolist()
    assert len(found) >= 45
