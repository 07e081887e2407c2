"""Dyadic trees, their randomizers and stream, and memoization: hand-worked values and algebra."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import comb, expit

from evolvingdp.core.seeds import stream
from evolvingdp.evolving import ChangeTree, Memoized, ThresholdStream
from evolvingdp.evolving.rivals import memoized, signs, tree
from evolvingdp.evolving.rivals.threshold_stream import truncate

TREE, LAYER = ChangeTree(10, 4, 1.0, 2), Memoized(10, 4, 1.0)
MAKERS = (signs.best, signs.erlingsson, signs.future_rand)


def test_the_best_law_of_four_signs_keeps_at_most_one_flip():
    law = signs.best(4, 1.0)
    often = math.e / (5 * math.e + 11)
    assert law.pattern == pytest.approx([often, often, often / math.e, often / math.e, often / math.e])
    assert law.gain == pytest.approx(3 * (math.e - 1) / (5 * math.e + 11))
    assert law.loss == pytest.approx(1.0)


@pytest.mark.parametrize(("changes", "epsilon"), [(1, 1.0), (2, 5.0), (3, 0.5), (4, 8.0), (7, 1.0), (8, 3.0), (16, 5.0)])
def test_no_exchangeable_law_gains_more_than_the_best(changes, epsilon):
    """The linear program: least <= q(d) <= e^epsilon least, sum of C(k, d) q(d) = 1."""
    ways, heights = comb(changes, np.arange(changes + 1)), 1 - 2 * np.arange(changes + 1) / changes
    eye, ones = np.eye(changes + 1), np.ones((changes + 1, 1))
    bounds = np.vstack([np.hstack([eye, -math.exp(epsilon) * ones]), np.hstack([-eye, ones])])
    found = linprog(-np.append(ways * heights, 0), bounds, np.zeros(len(bounds)), [np.append(ways, 0)], [1])
    assert signs.best(changes, epsilon).gain == pytest.approx(-found.fun, rel=1e-6)


def test_at_an_odd_number_of_changes_the_best_gain_is_a_central_binomial():
    assert signs.best(9, 0.1).gain == pytest.approx(math.tanh(0.05) * comb(8, 4) / 2**8)


def test_erlingsson_answers_in_one_of_k_places():
    changes, epsilon, law = 3, 1.3, Counter()
    for place, *flips in itertools.product(range(changes), *[(0, 1)] * changes):
        own = expit(-epsilon) if flips[place] else expit(epsilon)
        law[sum(flips)] += own / 2 ** (changes - 1) / changes
    pattern = signs.erlingsson(changes, epsilon).pattern
    assert [law[d] for d in range(4)] == pytest.approx(comb(changes, np.arange(4)) * pattern)
    assert signs.erlingsson(changes, epsilon).gain == pytest.approx(math.tanh(epsilon / 2) / changes)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("changes", [1, 4, 24, 26, 64, 300])
def test_future_rand_keeps_its_promise_with_nearly_all_that_its_flips_gain(changes, epsilon):
    law, most = signs.future_rand(changes, epsilon), math.tanh(epsilon / (10 * math.sqrt(changes)))
    assert law.loss <= epsilon * (1 + 1e-9)
    assert 0.9999 * most < law.gain <= most * (1 + 1e-12)
    if changes >= 64:
        assert signs.best(changes, epsilon).gain > (3.9 if epsilon <= 1 else 3.6) * law.gain


def test_future_rand_gains_less_than_erlingsson_until_there_are_many_changes():
    def ahead(epsilon_of_erlingsson):
        return next(
            k for k in range(1, 100) if signs.future_rand(k, 1.0).gain > signs.erlingsson(k, epsilon_of_erlingsson).gain
        )

    assert ahead(0.5) == 7
    assert ahead(1.0) in (22, 23, 24)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("changes", [1, 3, 40])
def test_laws_sum_to_one_and_their_chances_make_them(make, changes):
    law = make(changes, 2.0)
    assert np.sum(comb(changes, np.arange(changes + 1)) * law.pattern) == pytest.approx(1)
    chances = law.flip_chances
    for flips in itertools.islice(itertools.product((0, 1), repeat=changes), 50):
        seen = np.cumsum((0, *flips[:-1]))
        each = [chances[i, f] if flip else 1 - chances[i, f] for i, (f, flip) in enumerate(zip(seen, flips, strict=True))]
        assert math.prod(each) == pytest.approx(law.pattern[sum(flips)])


def test_clients_stop_a_bit_after_its_last_change_and_report_its_moves():
    bits = np.array([[1, 1, 0, 1, 0, 0, 1], [0, 0, 0, 0, 0, 1, 1]], dtype=np.uint8)
    kept = truncate(bits, 3)
    assert kept.tolist() == [[1, 1, 0, 1, 1, 1, 1], bits[1].tolist()]
    assert tree.partial_sums(kept, 0).tolist() == [[1, 0, -1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1, 0]]
    assert tree.partial_sums(kept, 1).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert tree.partial_sums(kept, 2).tolist() == [[1], [0]]
    assert bits[0].tolist() == [1, 1, 0, 1, 0, 0, 1]


def test_the_first_move_has_the_first_flip_and_fair_coins_go_where_nothing_moves():
    sums, coins = np.array([[1, 0, -1, 1]], dtype=np.int8), np.array([[1, -1, 1, 1]], dtype=np.int8)
    assert tree.reports(sums, np.array([[False, True, True]]), coins).tolist() == [[1, -1, 1, -1]]
    with pytest.raises(IndexError):  # more moves than the law has room for are never sent
        tree.reports(sums, np.array([[False, True]]), coins)


@pytest.mark.parametrize("tuned", [True, False])
@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 8, 13])
def test_sums_without_noise_give_the_means(horizon, tuned):
    settings = ChangeTree(10, horizon, 1.0, 3, tuned=tuned)
    means = stream(0, "means", horizon).random(horizon)
    users = np.arange(5, 5 + len(settings.nodes))
    moves = [np.diff(means[(1 << level) - 1 :: 1 << level], prepend=0.0) for level in range(len(users))]
    sums = tuple(move * n * gain for move, n, gain in zip(moves, users, settings.gains, strict=True))
    assert settings.estimates(tree.NodeTally(users, sums)) == pytest.approx(means)


def test_standard_errors_of_two_epochs_by_hand():
    plain = ChangeTree(100, 2, 1.0, 2, "erlingsson", tuned=False)
    assert plain.privacy_loss == pytest.approx(0.5)
    assert plain.gains == pytest.approx([math.tanh(0.25) / 2] * 2)
    assert plain.standard_errors == pytest.approx([math.sqrt(2 / 100) / plain.gains[0]] * 2)
    tuned = ChangeTree(100, 2, 1.0, 2)
    leaf, root = signs.best(2, 1.0).gain, math.tanh(0.5)  # a single node has room for one change
    assert tuned.gains == pytest.approx([leaf, root])
    assert tuned.shares == pytest.approx(np.array([1 / leaf, 1 / root]) / (1 / leaf + 1 / root))
    own = 100 * tuned.shares * tuned.gains**2
    assert tuned.standard_errors == pytest.approx([own[0] ** -0.5, (own[1] + own[0] / 2) ** -0.5])


def test_a_node_is_averaged_with_its_halves_by_precision():
    """Four users on the leaves, whose sums say 2 leaf-units and 0; 16 on the root, whose sum says 1 root-unit."""
    settings = ChangeTree(20, 2, 1.0, 2)
    leaf, root = settings.gains
    tally = tree.NodeTally(np.array([4, 16]), (np.array([8.0, 0.0]) * leaf, np.array([16.0]) * root))
    weight = 16 * root**2 / (16 * root**2 + 4 * leaf**2 / 2)
    assert settings.estimates(tally) == pytest.approx([2, weight * 1 + (1 - weight) * 2])
    plain = ChangeTree(20, 2, 1.0, 2, tuned=False)
    assert plain.estimates(tree.NodeTally(tally.users, (np.array([8, 0]), np.array([16])))) == pytest.approx(
        [2 / plain.gains[0], 1 / plain.gains[1]]
    )


def test_what_is_predicted_for_a_million_users_and_1024_epochs():
    """Four changes at epsilon = 1; the mean absolute error is sqrt(2/pi) of the standard error."""
    errors = {
        name: math.sqrt(2 / math.pi) * ChangeTree(10**6, 1024, 1.0, 4, *how).standard_errors.mean()
        for name, how in {
            "published": ("erlingsson", False), "exact": ("erlingsson_exact", False), "future": ("future_rand", False),
            "best": ("best", False), "tuned": ("best", True),
        }.items()
    }  # fmt: skip
    assert errors == pytest.approx(
        {"published": 0.0953, "exact": 0.0505, "future": 0.1168, "best": 0.0278, "tuned": 0.0198}, rel=3e-3
    )
    once = math.sqrt(2 / math.pi) / math.tanh(0.5) / 2 * math.sqrt(1024 / 10**6)
    assert once == pytest.approx(0.0276, rel=3e-3)


def test_users_follow_their_thresholds():
    users = ThresholdStream.make(100, [0.3, 0.5, 0.3, 0.8])
    shares, bits = users.kinds()
    assert shares == pytest.approx([0.3, 0.2, 0.3, 0.2])
    assert bits.tolist() == [[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert shares @ bits == pytest.approx(users.truth)
    assert users.most_changes() == 3
    assert users.truncation_bias(3).tolist() == [0] * 4
    assert users.truncation_bias(2) == pytest.approx([0, 0, 0, -0.2])
    assert users.truncation_bias(1) == pytest.approx([0, 0, 0.2, 0])
    assert users.read_once.truth == pytest.approx(users.means)
    (chunk,) = users.chunks(stream(0, "thresholds"))
    assert {tuple(row) for row in chunk} <= {tuple(row) for row in bits}


def test_two_layers_cost_what_all_their_reports_say():
    layers = Memoized(10, 1024, 0.5, 0.5)
    assert layers.transcript_loss(1) == pytest.approx(0.1201, abs=1e-4)
    assert layers.transcript_loss(8) == pytest.approx(1.2715, abs=1e-4)
    assert layers.transcript_loss() == pytest.approx(1024 * 0.25 + 0.5 - math.log(4), abs=1e-9)
    assert layers.one_value_loss(8) < layers.one_value_loss() == pytest.approx(0.5)
    growing = [layers.transcript_loss(horizon) for horizon in range(1, 40)]
    assert np.all(np.diff(growing) > 0)


def test_one_layer_is_without_bound_from_two_epochs_on():
    layer = Memoized.dbitflip(10, 50, 1.0)
    assert layer.transcript_loss(1) == pytest.approx(0.5)
    assert layer.transcript_loss(2) == layer.transcript_loss() == math.inf
    assert layer.one_value_loss() == 0.5


def test_loloha_spends_on_one_report_what_it_says_and_half_of_its_users_tell_nothing():
    layers = Memoized.loloha(10, 5, 2.0, 0.7)
    assert layers.transcript_loss(1) == pytest.approx(0.7)
    assert layers.spread == pytest.approx(math.tanh(0.35) / 2)
    assert layers.standard_errors(np.array([0.5])) == pytest.approx(
        2 * Memoized(10, 5, 2.0, layers.report_epsilon).standard_errors(np.array([0.5])), rel=0.05
    )


def test_a_report_is_the_answer_to_the_bit_but_for_noise():
    sent = memoized.reports(
        np.array([[0, 1, 1], [1, 1, 0]], dtype=np.uint8), np.array([[1, 0], [0, 1]], dtype=np.uint8),
        np.array([[False, False, True], [False, True, False]]),
    )  # fmt: skip
    assert sent.tolist() == [[1, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize("hashed", [False, True])
def test_expected_reports_give_the_means(hashed):
    layers, means = Memoized(1000, 3, 1.0, 2.0, hashed), np.array([0.0, 0.4, 1.0])
    expected = 1000 * (layers.agree - layers.spread * (1 - means))
    assert layers.estimates(expected) == pytest.approx(means)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ChangeTree(10, 4, math.nan, 2), "epsilon must be > 0 and finite, got nan"),
        (lambda: ChangeTree(10, 4, 1.0, 0), "changes must be >= 1, got 0"),
        (lambda: ChangeTree(10, 4096, 1.0, 1001), "changes must be at most 1000, got 1001"),
        (lambda: ChangeTree(10, 4, 1.0, 2, "worst"), "randomizer must be one of best"),
        (lambda: Memoized(10, 4, math.inf), "permanent_epsilon must be > 0 and finite, got inf"),
        (lambda: Memoized(10, 4, 1.0, math.nan), "report_epsilon must be > 0 and finite, got nan"),
        (lambda: Memoized.loloha(10, 4, 1.0, 1.0), "first_epsilon must be below permanent_epsilon, 1.0, got 1.0"),
        (lambda: ThresholdStream.make(5, [0.5, math.nan]), r"means must lie in \[0, 1\], got nan"),
        (lambda: ThresholdStream.make(5, [[0.5]]), r"means must be \(epochs,\)"),
        (lambda: tree.collect(TREE, np.zeros((10, 5), np.uint8), stream(0)), r"bits must be \(users, 4\)"),
        (lambda: memoized.collect(LAYER, np.zeros((10, 5), np.uint8), stream(0)), r"bits must be \(users, 4\)"),
        (lambda: tree.simulate(TREE, ThresholdStream.make(9, [0.5] * 4), stream(0)), r"horizon = \(10, 4\), got \(9, 4\)"),
        (lambda: memoized.simulate(LAYER, ThresholdStream.make(10, [0.5]), stream(0)), r"= \(10, 4\), got \(10, 1\)"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("room", [memoized, tree])
@pytest.mark.parametrize("bits", [np.array([[0, 2]]), np.array([[0.0, 1.0]]), np.array([0, 1]), np.array([[0]])])
def test_what_are_no_bits_is_refused_before_any_noise(room, bits):
    settings = Memoized(1, 2, 1.0) if room is memoized else ChangeTree(1, 2, 1.0, 1)
    noise = stream(0, "noise")
    before = noise.bit_generator.state
    with pytest.raises(ValueError, match="bits must be"):
        room.collect(settings, bits, noise)
    assert noise.bit_generator.state == before
