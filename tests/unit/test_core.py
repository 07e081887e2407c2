"""Checks, seeds, the Hadamard transform, words, sampling: hand-worked values and algebraic laws."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.linalg import hadamard as dense_hadamard

from evolvingdp.core import accounting, checks, hadamard, words
from evolvingdp.core.noise import DiscreteGaussian, DiscreteLaplace, Exponential, Gaussian, Laplace, Tape
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.sampling import fair_binomial, split_evenly
from evolvingdp.core.seeds import stream


def test_a_width_that_is_no_power_of_two_is_told_its_neighbours():
    with pytest.raises(ValueError, match="width must be a power of two, got 3162; 2048 or 4096 would work"):
        checks.power_of_two(width=3162)


def test_counts_name_the_first_negative():
    with pytest.raises(ValueError, match="counts must hold counts >= 0, got -2 at position 1"):
        checks.counts(counts=np.array([3, -2]))


def test_memory_is_refused_before_it_is_asked_for():
    with pytest.raises(ValueError, match=r"a sketch needs 1,000,000.0 GB, at most .* fit here: lower rows"):
        checks.fits_in_memory("a sketch", 1e15, "lower rows")


def test_streams_depend_on_seed_and_name_and_on_nothing_else():
    first = stream(0, "thresh", "votes", 1).random(4)
    assert np.array_equal(first, stream(0, "thresh", "votes", 1).random(4))
    assert not np.array_equal(stream(0, "a", "b").random(4), stream(0, "a/b").random(4))
    assert not np.array_equal(stream(0, 1).random(4), stream(0, "1").random(4))
    with pytest.raises(TypeError):
        stream(0, "epsilon", 0.5)
    for other in (stream(1, "thresh", "votes", 1), stream(0, "thresh", "votes", 2), stream(0, "thresh", "noise", 1)):
        assert not np.array_equal(first, other.random(4))


@pytest.mark.parametrize("width", [1, 2, 8, 64])
def test_signs_and_transform_are_those_of_the_dense_matrix(width):
    dense = dense_hadamard(width)
    index = np.arange(width)
    assert np.array_equal(hadamard.signs(index[:, None], index[None, :]), dense)
    values = stream(0, "hadamard", width).integers(-(2**40), 2**40, size=(3, width))
    assert np.array_equal(hadamard.transform(values), values @ dense)


def test_transform_leaves_its_argument_alone():
    values = np.ones(4)
    hadamard.transform(values)
    assert np.array_equal(values, np.ones(4))


@given(st.lists(st.text(alphabet=words.LETTERS, min_size=1, max_size=words.MAX_LETTERS)))
def test_words_are_decoded_to_themselves(texts):
    assert words.decode(words.encode(texts)) == texts


def test_words_are_keyed_by_hand():
    assert words.encode(["a", "z", "ba"]).tolist() == [1, 26, 2 * 27 + 1]


@pytest.mark.parametrize(("word", "message"), [("", "1 to 13"), ("a" * 14, "with 14"), ("Abc", "'A'"), ("café", "'é'")])
def test_words_outside_the_alphabet_are_named(word, message):
    with pytest.raises(ValueError, match=message):
        words.encode(["fine", word])


@pytest.mark.parametrize("key", [0, 27, 2 * 27**5])
def test_keys_that_are_no_words_are_refused(key):
    with pytest.raises(ValueError, match=f"got {key}"):
        words.decode([key])


@given(st.lists(st.integers(0, 2000), min_size=1, max_size=30), st.integers(1, 40))
def test_splitting_keeps_everybody(counts, parts):
    split = split_evenly(np.array(counts), parts, stream(0, "split"))
    assert split.shape == (len(counts), parts)
    assert split.min() >= 0
    assert split.sum(axis=1).tolist() == counts


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=30))
def test_fair_binomials_stay_between_zero_and_their_trials(trials):
    ones = fair_binomial(np.array(trials), stream(0, "fair"))
    assert np.all((ones >= 0) & (ones <= np.array(trials)))


def test_sign_flip_is_unbiased_after_debiasing():
    for epsilon in (0.01, 1.0, 8.0, 40.0):
        flip = SignFlip(epsilon)
        mean = sum(report * probability for report, probability in flip.probabilities(-1).items())
        assert flip.debias * mean == pytest.approx(-1)


BLOCKS = (1024, 2048, 4096)  # draws that a tape asks its generator for, one after the other


@pytest.mark.parametrize("noise", [Laplace(3.0), Gaussian(2.0), DiscreteLaplace(1000.0)])
@pytest.mark.parametrize("way", ["next", "take", "both"])
def test_a_tape_is_consecutive_draws_of_its_generator_and_never_repeats_a_block(noise, way):
    """Noise that comes again is taken off by a subtraction: two releases tell the sum between them exactly."""
    rng, tape = stream(0, "tape"), Tape(noise, stream(0, "tape"))
    drawn = np.concatenate([noise.draw(size, rng) for size in BLOCKS])
    if way == "next":
        got = [tape.next() for _ in range(len(drawn))]
    elif way == "take":
        got = tape.take(len(drawn))
    else:  # the ends of blocks fall into takes, on their ends, and between two calls of next
        got = [*tape.take(1023), tape.next(), tape.next(), *tape.take(2048), *[tape.next() for _ in range(4095)]]
    np.testing.assert_array_equal(got, drawn)
    for one, other in itertools.combinations(np.reshape(got, (7, 1024)), 2):
        assert np.mean(one == other) < 0.01  # of integers a few agree by chance


@pytest.mark.parametrize(
    "value", ["2", None, [2.0], np.bool_(True), np.array([1.0]), np.array([1.0, 2.0]), np.array("2"), 1j]
)
def test_what_is_no_number_is_named(value):
    with pytest.raises(TypeError, match=r"^epsilon must be (a|one) number > 0 and finite, got "):
        checks.positive(epsilon=value)
    with pytest.raises(TypeError, match=r"^share must be (a|one) number in \(0, 1\), got "):
        checks.probability(share=value)


@pytest.mark.parametrize("half", [0.5, np.float32(0.5), np.array(0.5), Fraction(1, 2)])
def test_every_kind_of_number_is_one(half):
    checks.positive(epsilon=half)
    checks.probability(share=half)


def test_counts_that_doubles_cannot_sum_are_refused():
    checks.counts(counts=np.array([2**52], dtype=np.uint64))
    for held in (np.array([1, 2**63], dtype=np.uint64), np.full(2, 2**52)):
        with pytest.raises(ValueError, match=r"counts must sum to less than 2\^53, got"):
            checks.counts(counts=held)


def test_a_group_s_delta_is_that_of_one_or_more_and_at_most_1():
    """Also where e^epsilon is no double."""
    assert accounting.together(0.5, 1e-6, 3)[1] == pytest.approx(1e-6 * (1 + math.exp(0.5) + math.e))
    for epsilon in (1e-9, 1.0, 705.0, 720.0):
        assert accounting.together(epsilon, 1e-6, 1, 4)[1] == pytest.approx(4e-6)
    assert accounting.together(700.0, 1e-30, 2) == (1400.0, 1.0)
    assert accounting.together(1.0, 0.0, 5, 2) == (10.0, 0.0)
    with pytest.raises(ValueError, match=r"delta must lie in \(0, 1\), got 2"):
        accounting.together(1.0, 2, 1)


@pytest.mark.parametrize("seed", range(40))
def test_an_epsilon_that_a_root_gives_keeps_its_delta_and_uses_it(seed):
    rng = np.random.default_rng(seed)
    epsilon, delta, reports = rng.uniform(0.05, 5), 10 ** rng.uniform(-12, -1), int(rng.integers(1, 60))
    one = accounting.optimal(epsilon, delta, reports)
    assert accounting.delta_of_reports(one, epsilon, reports) <= delta
    mu, rho = accounting.gaussian_mu(epsilon, delta), accounting.concentrated_rho(epsilon, delta)
    assert 0.999 * delta <= accounting.delta_of_gaussian(mu, epsilon) <= delta
    assert 0.999 * delta <= accounting.delta_of_concentrated(rho, epsilon) <= delta


def test_a_delta_below_all_doubles_is_not_said_to_be_0():
    """Which would be a promise of pure privacy."""
    assert accounting.delta_of_gaussian(0.01, 3.0) > 0
    assert accounting.delta_of_concentrated(0.01**2 / 2, 3.0) > 0
    assert accounting.delta_of_reports(1.0, 999.0, 1000) > 0 == accounting.delta_of_reports(1.0, 1000.0, 1000)


@pytest.mark.parametrize("scale", [0.25, 3.0, 1000.0])
def test_tails_of_the_laws_of_noise_are_those_of_scipy_and_their_inverses_fit(scale):
    known = {Laplace: stats.laplace(scale=scale), Gaussian: stats.norm(scale=scale), Exponential: stats.expon(scale=scale)}
    places = scale * np.array([-800.0, -3.0, -0.1, 0.0, 0.1, 3.0, 30.0])
    for kind, law in known.items():
        made = kind(scale)
        assert made.log_sf(places) == pytest.approx(law.logsf(places), rel=1e-12, abs=1e-300)
        assert kind is Exponential or made.variance == pytest.approx(law.var())
        for probability in (0.5, 1e-3, 1e-12):
            assert made.sf(made.isf(probability)) == pytest.approx(probability, rel=1e-9)
    whole, law = DiscreteLaplace(scale), stats.dlaplace(1 / scale)  # these scales are multiples of 1/1024
    assert whole.variance == pytest.approx(law.var(), rel=1e-6)
    numbers = np.array([-40, -2, -1, 0, 1, 2, 40])
    assert whole.pmf(numbers) == pytest.approx(law.pmf(numbers), rel=1e-9)
    assert whole.sf(numbers) == pytest.approx(law.sf(numbers - 1), rel=1e-9)  # at a number it counts that number
    assert whole.cdf(numbers) == pytest.approx(law.cdf(numbers - 1), rel=1e-9, abs=1e-300)
    for probability in (0.5, 0.1, 1e-9):
        least = whole.isf(probability)
        assert whole.sf(least) <= probability < whole.sf(least - 1)
    normal = DiscreteGaussian(scale)
    reach = np.arange(-math.ceil(12 * scale) - 1, math.ceil(12 * scale) + 2)
    assert normal.pmf(reach).sum() == pytest.approx(1.0)
    assert normal.pmf(reach) @ reach**2 == pytest.approx(normal.variance)
    for law in (Laplace(scale), whole, Gaussian(scale)):
        assert law.isf(1.0) == 0
        with pytest.raises(ValueError, match=r"probability must lie in \(0, 1\], got 0\.0"):
            law.isf(0.0)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.5), (1.0, 0.999), (1000.0, 1e-6), (1e-3, 1e-12)])
def test_many_pieces_are_composed_as_few_are_and_rounded_towards_privacy(epsilon, delta, monkeypatch):
    one = accounting.optimal(epsilon, delta, 30_000)
    monkeypatch.setattr(accounting, "_FEW", 30_000)
    assert 0.99999 * delta <= accounting.delta_of_reports(one, epsilon, 30_000) <= delta
