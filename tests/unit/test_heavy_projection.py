"""Phi: its two forms against the matrix written out, what words do to each other, and how much memory it takes."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from evolving_reference import draw_heavy, many_counts, sign_matrix, spread
from scipy.stats import chisquare, ks_2samp

from evolvingdp.core.seeds import stream
from evolvingdp.evolving import heavy_projection, heavy_simulation
from evolvingdp.evolving.constants import PAPER_WIDTH, hashed_unit
from evolvingdp.evolving.heavy_projection import Hadamard, HashSigns
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.streams import WordStream
from evolvingdp.evolving.thresh import Thresh
from support import ALPHA

MASK = 2**64 - 1
LAW = np.array([0.4, 0.3, 0.2, 0.05, 0.05, 0.0])


def split_mix(state):
    """SplitMix64 with Python's integers, output after output."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        yield mixed ^ (mixed >> 31)


def test_hashed_signs_are_top_bits_of_two_outputs_a_row():
    phi, outputs = HashSigns(5, 7, seed=2**63 + 12345), split_mix(2**63 + 12345)
    expected = []
    for _ in range(7):
        first, second = next(outputs), next(outputs)
        expected.append([-1 if (first * word + second) & MASK >= 2**63 else 1 for word in range(5)])
    assert phi.signs(np.arange(7)[:, None], np.arange(5)[None, :]).tolist() == expected


@pytest.mark.parametrize("phi", [Hadamard(37), HashSigns(37, 50, 3), HashSigns(37, 20, 4)])
@pytest.mark.parametrize("at_once", [1, 100, 10**6])
def test_products_are_those_with_the_matrix(phi, at_once, monkeypatch):
    monkeypatch.setattr(heavy_projection, "_AT_ONCE", at_once)
    matrix = phi.signs(np.arange(phi.width)[:, None], np.arange(37)[None, :]).astype(int)
    values = stream(0, "values").integers(-50, 50, size=(9, 37))
    assert np.array_equal(phi.signed(values), values @ matrix.T)
    assert np.array_equal(phi.largest(values), np.abs(values @ matrix.T).max(axis=1))
    sums = stream(0, "sums").integers(-50, 50, size=phi.width)
    assert np.array_equal(phi.by_word(sums), sums @ matrix)


def test_the_signs_of_two_words_are_independent_over_rows():
    phi = HashSigns.draw(10**6, 200_000, stream(0, "phi"))
    for one, other in ((0, 1), (1, 2), (3, 999_999), (512, 1024)):
        signs = phi.signs(np.arange(phi.width)[:, None], np.array([[one, other]]))
        observed = np.bincount((signs[:, 0] > 0) * 2 + (signs[:, 1] > 0), minlength=4)
        assert chisquare(observed).pvalue > ALPHA


def test_words_blur_each_other_as_little_as_the_bound_says_and_not_much_less():
    words, width, beta = 200, 512, 0.05
    largest = []
    for run in range(40):
        phi = HashSigns.draw(words, width, stream(0, "blur", run))
        matrix = phi.signs(np.arange(width)[:, None], np.arange(words)[None, :]).astype(int)
        product = np.abs(matrix.T @ matrix) / width
        largest.append(product[~np.eye(words, dtype=bool)].max())
    bound = phi.blur(beta)
    assert bound == pytest.approx(math.sqrt(2 * math.log(4 * words**2 / beta) / width))
    assert max(largest) <= bound
    assert np.mean(largest) > 0.75 * bound
    assert Hadamard(words).blur(beta) == 0.0


def expected_estimates(phi):
    """What `estimates` makes of the expected reports of users with `LAW`."""
    voting = Thresh(1000, 4, 100, 60.0, 1.0, 2.0, vote_cap=2, estimate_cap=2, unit=0.1)
    settings = HeavyThresh(voting, 6, phi)
    plus = settings.report_plus(phi.signed(LAW[None, :])[0])
    return settings.estimates(1000 / phi.width * (2 * plus - 1))


def test_estimates_are_unbiased_over_phi():
    """Fewer coordinates than words: each Phi blurs, all of them together do not."""
    results = np.array([expected_estimates(HashSigns.draw(6, 5, stream(0, "unbiased", run))) for run in range(4000)])
    error = results.std(axis=0) / math.sqrt(len(results))
    assert np.abs(results - LAW).max() > 0.2
    assert np.all(np.abs(results.mean(axis=0) - LAW) <= 4.9 * error + 1e-12)
    assert np.any(np.abs(results.mean(axis=0) - 0.9 * LAW) > 4.9 * error)


def test_given_phi_the_blur_bounds_the_bias():
    phi = HashSigns.draw(6, 2000, stream(0, "given"))
    assert 0 < np.abs(expected_estimates(phi) - LAW).max() <= phi.blur(0.05)
    assert expected_estimates(Hadamard(6)) == pytest.approx(LAW)


def test_the_bound_holds_with_fewer_coordinates_than_words_and_has_the_blur():
    phi = HashSigns.draw(2000, 1024, stream(0, "phi"))
    settings = HeavyThresh.tuned(10**6, 16, 10**6, 2.0, 2000, changes=1, phi=phi)
    exact = HeavyThresh.tuned(10**6, 16, 10**6, 2.0, 2000, changes=1)
    assert settings.voting.unit == pytest.approx(hashed_unit(10**6, 16, 10**6, 1024, 0.05))
    steps = 2 * 6 * (settings.voting.unit - exact.voting.unit)
    assert settings.error_bound == pytest.approx(exact.error_bound + steps + phi.blur(0.05))
    law = np.full(2000, 0.5 / 1999)
    law[7] = 0.5
    data = WordStream.make([10**6], [law, law[::-1]], [[0] * 8 + [1] * 8], 10**6)
    for run in range(5):
        public = heavy_simulation.simulate(settings, data, stream(0, "run", run)).public
        assert [release.epoch for release in public if release.updated] == [1, 9]
        errors = np.abs([release.estimate for release in public] - data.truth)
        assert errors.max() <= settings.error_bound


def test_phi_is_never_an_array_of_its_size():
    phi, values = HashSigns(20_000, 2048, 1), np.full((1, 20_000), 1 / 20_000)
    tracemalloc.start()
    phi.by_word(phi.signed(values)[0])
    phi.largest(values)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000 * 2048  # the matrix as bytes


def test_the_two_paths_have_one_law_with_hashed_signs():
    voting = Thresh(300, 8, 2000, 60.0, 1.5, 2.0, vote_cap=8, estimate_cap=3, unit=0.2, beta=0.05)
    settings = HeavyThresh(voting, 6, HashSigns(6, 5, 8))
    laws = [[0.9, 0.02, 0.02, 0.02, 0.02, 0.02], [0.02, 0.02, 0.02, 0.02, 0.02, 0.9]]
    data = WordStream.make([300], laws, [[0, 0, 0, 1, 1, 1, 1, 1]], 2000)

    rng = stream(0, "simulation")
    public = [heavy_simulation.simulate(settings, data, rng).public for _ in range(350)]
    assert all([release.epoch for release in run if release.updated] == [1, 4] for run in public)
    ours = np.array([run[-1].estimate for run in public])
    rng = stream(0, "users")
    users = draw_heavy(settings, many_counts(data, 600, rng), rng)
    assert np.all(users.updated == np.isin(np.arange(8), [0, 3]))
    matrix = sign_matrix(settings)
    theirs = users.reported[:, -1] @ matrix * (voting.estimate_randomizer.debias / 300)
    for word in range(6):
        assert ks_2samp(ours[:, word], theirs[:, word], method="asymp").pvalue > ALPHA / 6
    expected = matrix.T @ (matrix @ laws[1]) / settings.width  # given Phi
    wrong = HeavyThresh(replace(voting, estimate_epsilon=0.75 * voting.estimate_epsilon), 6, settings.phi)
    for estimates in (ours, theirs):
        assert abs(spread(settings, estimates, expected)) < 4.9
        assert abs(spread(wrong, estimates, expected)) > 4.9


def test_the_paper_s_constants_take_a_hashed_phi_with_w_20_n():
    phi = HashSigns.draw(50, PAPER_WIDTH * 10**5, stream(0, "phi"))
    settings = HeavyThresh.paper(10**5, 16, 10**5, 4.0, 50, changes=1, phi=phi)
    assert settings.width == 2 * 10**6
    assert settings.voting.unit == pytest.approx(hashed_unit(10**5, 16, 10**5, 2 * 10**6, 0.05))
    assert settings.error_bound > HeavyThresh.paper(10**5, 16, 10**5, 4.0, 50, changes=1).error_bound


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HashSigns(1, 8, 0), "n_words must be >= 2, got 1"),
        (lambda: HashSigns(9, 8, 0).blur(0), r"beta must lie in \(0, 1\), got 0"),
        (lambda: HashSigns(9, 0, 0), "width must be >= 1, got 0"),
        (lambda: HashSigns(9, 8, 2**64), "seed below 2\\^64"),
        (lambda: HashSigns(2**32 + 1, 8, 0), "n_words must be at most 2\\^32"),
        (
            lambda: HeavyThresh.tuned(10**6, 16, 10**6, 2.0, 9, changes=1, phi=HashSigns(8, 4, 0)),
            "phi must hash n_words = 9 words, got one for 8",
        ),
    ],
)
def test_what_cannot_work_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
