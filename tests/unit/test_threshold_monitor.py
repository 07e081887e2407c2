"""ThresholdMonitor and AboveThreshold: the noise against quadrature, calibrations, online against batch, bad input."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import nbinom

from evolvingdp.book.checkout import params_of
from evolvingdp.core.noise import DiscreteLaplace, Laplace, MonitorNoise
from evolvingdp.core.seeds import stream
from evolvingdp.notebooks.sparse_vector import threshold_monitor as notebook
from evolvingdp.sparse_vector import privacy
from evolvingdp.sparse_vector.above_threshold import SPLITS, AboveThreshold
from evolvingdp.sparse_vector.calibration import METHODS, calibrate, paper_noise, theorem_loss
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

NOISES = [MonitorNoise(2.0969, 2.3978), MonitorNoise(1.0, 3.0), MonitorNoise(0.2, 2.0), MonitorNoise(0.05, 1.5)]


def by_quadrature(noise, z):
    """Pr[w + min(v, cap) >= z]: the survival function of w, averaged over v."""
    a, b, d = noise.scale, noise.inner, noise.cap

    def outer(y):
        return 0.5 * math.exp(-y / a) if y > 0 else 1 - 0.5 * math.exp(y / a)

    edges = [-60 * b, *sorted({p for p in (0.0, z) if -60 * b < p < d}), d]
    pieces = [
        quad(lambda v: math.exp(-abs(v) / b) / (2 * b) * outer(z - v), low, high, epsabs=1e-13, epsrel=1e-10)[0]
        for low, high in pairwise(edges)
    ]
    return sum(pieces) + 0.5 * math.exp(-d / b) * outer(z - d)


@pytest.mark.parametrize("noise", NOISES)
def test_the_noise_is_what_quadrature_finds(noise):
    for z in [-8.0, -1.0, -0.01, 0.0, 0.4 * noise.cap, noise.cap, 1.5 * noise.cap, 4 * noise.cap]:
        assert float(noise.sf(z)) == pytest.approx(by_quadrature(noise, z), rel=1e-8)
        assert float(noise.sf(z) + noise.cdf(z)) == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("noise", NOISES)
def test_tails_are_exact_where_probabilities_hardly_exist(noise):
    far = 680 * noise.scale
    assert 0 < float(noise.sf(far)) < 1e-290
    assert float(noise.log_sf(far)) == pytest.approx(math.log(noise.tail_constant) - 680, rel=1e-14)
    slowest = max(noise.scale, noise.inner)
    assert float(noise.log_cdf(-far) - noise.log_cdf(-far / 2)) == pytest.approx(-far / 2 / slowest, abs=1)
    assert float(noise.sf(noise.isf(1e-300))) == pytest.approx(1e-300, rel=1e-9)
    assert float(noise.cdf(noise.lower_quantile(1e-9))) == pytest.approx(1e-9, rel=1e-9)


@pytest.mark.parametrize(
    ("delta", "reports", "scale"),
    [
        (1e-6, 1, 16.068), (1e-6, 3, 20.969), (1e-6, 10, 31.382), (1e-6, 100, 86.350), (1e-6, 1000, 267.80),
        (1e-12, 1, 34.905), (1e-12, 3, 41.639), (1e-12, 10, 56.300), (1e-12, 100, 137.95), (1e-12, 1000, 417.08),
    ],
)  # fmt: skip
def test_the_exact_calibration_has_these_scales(delta, reports, scale):
    found = calibrate(1.0, delta, reports)
    assert found.scale == pytest.approx(scale, rel=4e-5)
    assert privacy.delta_of_epsilon(1.0, found.scale, reports) == pytest.approx(delta, rel=1e-8)
    assert privacy.epsilon_of_delta(delta, found.scale, reports) == pytest.approx(1, rel=1e-8)


def test_queries_with_fractions_are_calibrated_as_one_report_more():
    for unit in privacy.UNITS:
        found = calibrate(1.0, 1e-6, 3, queries="interval", unit=unit)
        assert found.scale == calibrate(1.0, 1e-6, 4, unit=unit).scale


def test_the_paper_s_constants_are_thousands_of_times_too_large():
    assert calibrate(1.0, 1e-6, 1, method="theorem").scale == pytest.approx(7.66e4, rel=1e-3)
    assert calibrate(1.0, 1e-6, 3, method="theorem").scale == pytest.approx(1.01e5, rel=1e-3)
    assert calibrate(1.0, 1e-6, 3, method="theorem").scale / calibrate(1.0, 1e-6, 3).scale == pytest.approx(4815, rel=1e-3)


@pytest.mark.parametrize("unit", privacy.UNITS)
@pytest.mark.parametrize("reports", [1, 3, 30, 1000])
def test_methods_are_ordered_as_their_proofs_are(unit, reports):
    scale = {method: calibrate(1.0, 1e-6, reports, method=method, unit=unit).scale for method in METHODS}
    assert 1000 * scale["exact"] < scale["epochs"] <= scale["theorem"] * (1 + 1e-12)
    if reports == 1000:
        assert scale["epochs"] < 0.8 * scale["theorem"]
    assert calibrate(1.0, 1e-6, reports, unit="add-remove").scale < calibrate(1.0, 1e-6, reports).scale


def test_the_theorem_s_calibration_is_the_theorem():
    found = calibrate(1.0, 1e-6, 5, method="theorem", unit="add-remove")
    inner_delta = 1e-6 / 3
    inner_epsilon = math.log(1 / inner_delta) / found.noise.inner
    assert theorem_loss(inner_epsilon, inner_delta, 5) == pytest.approx(1)
    assert found.noise.cap == pytest.approx(found.noise.inner * math.log(found.noise.inner))


def test_delta_and_epsilon_invert_each_other():
    for unit in privacy.UNITS:
        for epsilon in (0.1, 0.7, 3.0):
            delta = privacy.delta_of_epsilon(epsilon, 5.0, 4, unit)
            assert privacy.epsilon_of_delta(delta, 5.0, 4, unit) == pytest.approx(epsilon, rel=1e-8)
    assert privacy.epsilon_of_delta(0.999, 50.0, 1) == 0


MONITOR = ThresholdMonitorEvolving(MonitorNoise(0.3, 1.5), 4.0, 2)
INTERVAL = ThresholdMonitorEvolving(MonitorNoise(0.3, 1.5), 4.0, 2, "interval")


@pytest.mark.parametrize("kind", [bool, int, float])
def test_queries_may_be_bools_integers_or_floats(kind):
    values = stream(0, "kinds").integers(0, 2, size=(40, 12))
    told: list[list[bool]] = []
    for table in (values.astype(kind), values.astype(float)):
        state, rng = MONITOR.start(12), stream(0, "noise")
        told.append([])
        for row in table:
            state, release = MONITOR.step(state, row, np.asarray, rng)
            told[-1].append(release)
    assert told[0] == told[1]
    assert any(told[0])


@pytest.mark.parametrize("value", [0.0, -0.0, 5e-324, 0.5, 1.0, np.nextafter(1, 0)])
def test_every_number_from_0_to_1_is_a_value(value):
    table = np.array([[0.25, value], [value, 1.0]])  # columns are not contiguous
    INTERVAL.step(INTERVAL.start(2), table[:, 1], np.asarray, stream(0, "n"))


@pytest.mark.parametrize("value", [np.nextafter(1, 2), -5e-324, math.inf, -math.inf, math.nan, -math.nan, -1.0])
def test_no_other_number_is(value):
    with pytest.raises(ValueError, match=r"query must have values in \[0, 1\], got .* for user 1"):
        INTERVAL.step(INTERVAL.start(2), [0.25, value], np.array, stream(0, "n"))


def test_a_no_leaves_the_state_itself():
    quiet = ThresholdMonitorEvolving(NOISES[0], 1e9, 2)
    state = quiet.start(2)
    assert quiet.step(state, np.array([1, 2]), lambda rows: np.equal(rows, 1), stream(0, "n"))[0] is state


def test_a_step_of_elements_is_the_general_step():
    inputs = stream(0, "inputs").integers(0, 6, size=20)
    elements, batch = MONITOR.start(20), MONITOR.start(20)
    noises = [stream(0, "noise") for _ in range(2)]
    for _ in range(3):
        batch, above = MONITOR.step_elements(batch, inputs, 6, noises[0])
        for x in range(6):
            elements, release = MONITOR.step(elements, inputs, lambda data, x=x: data == x, noises[1])
            assert release == above[x]
    assert np.array_equal(batch.counted, elements.counted)
    assert batch.counted.max() >= 1


def test_a_sum_is_compared_with_its_own_public_past():
    """The same answer, for the same noise, as of a monitor whose threshold is higher by the past."""
    values, higher = np.arange(20) < 9, replace(MONITOR, threshold=MONITOR.threshold + 5.5)
    for number in range(40):
        _, release = MONITOR.step(MONITOR.start(20), values, np.asarray, stream(0, "past", number), past=5.5)
        _, same = higher.step(higher.start(20), values, np.asarray, stream(0, "past", number))
        assert release == same
    with pytest.raises(ValueError, match="past must be finite, got nan"):
        MONITOR.step(MONITOR.start(20), values, np.asarray, stream(0, "past"), past=math.nan)


def test_users_are_deleted_when_they_have_counted_enough_and_queries_may_be_fractions():
    sure = ThresholdMonitorEvolving(Laplace(0.01), 0.5, 2, "interval")
    state = sure.start(3)
    for _ in range(2):
        state, release = sure.step(state, None, lambda _: [1.0, 0.7, 0.0], stream(0, "n"))
        assert release
    assert state.counted.tolist() == [2.0, 1.4, 0.0]
    assert state.active.tolist() == [False, True, True]
    assert not sure.step(state, None, lambda _: [1.0, 0.0, 0.0], stream(0, "n"))[1]


def test_above_threshold_halts_and_refreshes_its_threshold():
    method = AboveThreshold.calibrated(50.0, 1e-6, 3, 10.0)
    rng, state = stream(0, "svt"), method.start(stream(0, "start"))
    shifts = [state.shift]
    for value in (-100.0, 100.0, -100.0, 100.0, 100.0):
        state, release = method.step(state, value, rng)
        assert release == (value > 0)
        shifts.append(state.shift)
    assert state.left == 0
    assert len(set(shifts)) == 3
    with pytest.raises(ValueError, match="has halted after 3"):
        method.step(state, 0.0, rng)
    single = AboveThreshold.calibrated(1.0, 1e-6, 3, 10.0, kind="one")
    assert 1 / single.shift.scale + 2 * 3 / single.noise.scale == pytest.approx(1)
    state = single.start(rng)
    after, release = single.step(state, 1e9, rng)
    assert (release, after.shift, after.left) == (True, state.shift, 2)  # which pays for the threshold once
    scales = [AboveThreshold.calibrated(1.0, 1e-6, 100, 0.0, kind=kind).noise.scale for kind in ("repeated", "one")]
    assert scales == pytest.approx([166.6, 205.8], rel=1e-3)


@pytest.mark.parametrize("epsilon", [10.0, 100.0, 1000.0])
@pytest.mark.parametrize("unit", privacy.UNITS)
def test_a_large_epsilon_is_calibrated_like_any_other(epsilon, unit):
    exact = calibrate(epsilon, 1e-6, 3, unit=unit).scale
    assert privacy.delta_of_epsilon(epsilon, exact, 3, unit) == pytest.approx(1e-6, rel=1e-6)
    assert privacy.delta_of_epsilon(epsilon, 0.97 * exact, 3, unit) > 1e-6


def test_an_epsilon_beyond_all_sums_gets_more_noise_than_it_needs_and_an_answer():
    found = calibrate(1e6, 1e-6, 3).scale
    assert privacy.delta_of_epsilon(1e6, found, 3) <= 1e-6
    assert calibrate(1e9, 1e-6, 3).scale <= found


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: privacy.smallest_scale(1.0, 1e-6, 0.5), "reports must be >= 1, got 0.5"),
        (lambda: privacy.delta_of_epsilon(1.0, 2.0, math.nan), "reports must be > 0 and finite, got nan"),
        (lambda: calibrate(1e4, 0.5, 1, method="theorem", unit="add-remove"), "inner must be > 2, got"),
        (lambda: calibrate(1e4, 0.5, 1, method="theorem"), "epsilon must be smaller for method='theorem', got"),
        (lambda: paper_noise(2.0), "inner must be > 2, got 2.0"),
        (lambda: NOISES[0].lower_quantile(0.0), r"probability must lie in \(0, 1\], got 0.0"),
        (lambda: ThresholdMonitorEvolving(DiscreteLaplace(2.0), 4.5, 2), "threshold must be a whole number"),
        (lambda: ThresholdMonitorEvolving(DiscreteLaplace(2.0), 4.0, 2, "interval"), "queries must be binary for Discrete"),
        (lambda: calibrate(1.0, 1e-6, 10**9), "scale must be larger, or reports smaller: the waiting time for 1000000000"),
        (lambda: AboveThreshold.calibrated(1.0, 1e-6, 2, 1.0, kind="one", moved=3), "moved must be left out for kind='one'"),
        (lambda: AboveThreshold.calibrated(1.0, 1e-6, 2, 1.0, kind="gaussian", moved=3, split=0.5), "split must be left"),
        (lambda: privacy.delta_of_epsilon(-1.0, 5.0, 3), "epsilon must be >= 0 and finite, got -1.0"),
        (lambda: privacy.delta_of_epsilon(1.0, 0.01, 3), "scale must be larger, or reports smaller"),
        (lambda: privacy.epsilon_of_delta(0.0, 5.0, 3), r"delta must lie in \[1e-30, 1\), got 0.0"),
        (lambda: privacy.delta_attained(1.0, NOISES[0], 0, 0.5), "reports must be >= 1, got 0"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(("epsilon", "delta", "made"), [(5.0, 0.01, 0), (0.05, 0.01, 1), (1.0, 1e-6, 1)])
def test_an_adversary_is_claimed_to_attain_the_promise_only_where_it_does(epsilon, delta, made):
    own = {"epsilon": epsilon, "delta": delta, "reports_sweep": [1, 3], "repetitions": 2}
    params = params_of("sparse_vector/threshold_monitor").make("quick", own)
    found = notebook.values(params, notebook.run(params, 0))
    attained = {"least_attained": 0.98}
    claimed = [name for name in attained if not math.isnan(found[name])]
    assert len(claimed) == made
    assert all(found[name] >= attained[name] for name in claimed)


def test_one_threshold_finds_smaller_groups_than_normal_noise_up_to_more_yeses_the_more_is_asked():
    few, many = (notebook.single_until(1.0, 1e-6, queries) for queries in (100, 10**9))
    assert 1 < few < many
    for reports, ahead in ((many, True), (many + 1, False)):
        size = 1.0, 1e-6, reports
        single = [AboveThreshold.calibrated(*size, 0.0, kind="one", split=split) for split in SPLITS]
        normal = AboveThreshold.calibrated(*size, 0.0, kind="gaussian", moved=10**9)
        smallest = [one.silent(10**9, 0.05).error(1, 0.02) for one in (*single, normal)]
        assert (min(smallest[:-1]) < smallest[-1]) == ahead


@pytest.mark.parametrize("ask", [partial(privacy.delta_of_epsilon, 1.0), partial(privacy.epsilon_of_delta, 1e-6)])
def test_scales_at_which_a_yes_is_too_rare_to_be_waited_for_are_refused(ask):
    with pytest.raises(privacy.TooLongError, match=r"scale must be larger: at loss 1e.03 a yes comes too rarely"):
        ask(1e-3, 3)


@pytest.mark.parametrize("reports", [1, 2.5, 40, 30_000])
@pytest.mark.parametrize("chance", [1e-6, 0.01, 0.5, 0.9999])
def test_waiting_times_end_where_a_negative_binomial_law_has_them_end(reports, chance):
    """Seen to fail with a tail of 1e-39."""
    law = nbinom(reports, chance)
    ends = pytest.approx((max(0, law.ppf(1e-40)), law.isf(1e-40)), rel=1e-9, abs=0)  # as doubles tell beyond 1e10
    assert privacy._waits(reports, chance) == ends
