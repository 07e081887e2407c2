"""Trees and memoization by their exact numbers: against enumeration, by hand, and what cannot work."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from evolvingdp.evolving.rivals import few_changes
from evolvingdp.evolving.rivals.few_changes import layers_error, layers_loss, tree

LAWS = {"erlingsson": few_changes.erlingsson, "best": few_changes.best}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("changes", [1, 2, 5, 30])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_patterns_are_laws_whose_loss_is_at_most_epsilon_and_the_best_gains_most(name, changes, epsilon):
    law = LAWS[name](changes, epsilon)
    ways = np.array([math.comb(changes, flips) for flips in range(changes + 1)], dtype=float)
    assert ways @ law.pattern == pytest.approx(1)
    assert law.loss == pytest.approx(epsilon)
    assert law.gain <= few_changes.best(changes, epsilon).gain * (1 + 1e-9)
    if name == "erlingsson":
        assert law.gain == pytest.approx(math.tanh(epsilon / 2) / changes)


@pytest.mark.parametrize("changes", [1, 2, 4])
def test_no_exchangeable_law_gains_more_than_the_best(changes):
    """Its probabilities take two values, so that thresholds on the number of flips are all there is: tried one by one."""
    ways, heights = np.array([math.comb(changes, d) for d in range(changes + 1)]), 1 - 2 * np.arange(changes + 1) / changes
    gains = []
    for high in itertools.product((1.0, math.exp(-1.5)), repeat=changes + 1):
        pattern = np.array(high) / (ways @ np.array(high))
        gains.append(float(ways * pattern @ heights))
    assert few_changes.best(changes, 1.5).gain == pytest.approx(max(gains))


def test_standard_errors_of_two_epochs_by_hand():
    errors, loss = tree(100, 2, 1.0, 2, "erlingsson")
    assert loss == pytest.approx(0.5)
    assert errors == pytest.approx([math.sqrt(2 / 100) / (math.tanh(0.25) / 2)] * 2)
    gains = np.array([few_changes.best(2, 1.0).gain, math.tanh(0.5)])  # a single node has room for one change
    leaf, root = 100 / gains / sum(1 / gains) * gains**2
    assert tree(100, 2, 1.0, 2)[0] == pytest.approx([leaf**-0.5, (root + leaf / 2) ** -0.5])


def test_what_is_predicted_for_a_million_users_and_1024_epochs():
    """Four changes at epsilon = 1, and the table."""
    errors = {name: tree(10**6, 1024, 1.0, 4, name)[0] for name in few_changes.RANDOMIZERS}
    means = {name: math.sqrt(2 / math.pi) * each.mean() for name, each in errors.items()}
    assert means == pytest.approx({"erlingsson": 0.0953, "erlingsson_exact": 0.0505, "best": 0.0198}, rel=3e-3)
    table = few_changes.few_changes(10**6, 1024, 1.0, 4).set_index("method")
    assert table.standard_error["tree, best"] == pytest.approx(math.sqrt(np.mean(errors["best"] ** 2)))
    assert table.exact_loss["two layers (RAPPOR)"] == layers_loss(1024, 1.0, 0.5)
    assert table.exact_loss["tree, erlingsson"] == pytest.approx(0.5)


def test_one_layer_has_the_variance_and_the_loss_of_its_two_bits():
    """By enumeration: each of two bits, which say of a value whether it is held, is sent as it is with half of epsilon."""
    keep, scale = 1 / (1 + math.exp(-0.5)), 1 / math.tanh(0.25)
    laws = {value: dict.fromkeys(itertools.product((0, 1), repeat=2), 1.0) for value in (0, 1)}
    for value, law in laws.items():
        for sent in law:
            law[sent] = math.prod(keep if bit == (value == place) else 1 - keep for place, bit in enumerate(sent))
    told = {sent: (scale * (sent[1] - sent[0]) + 1) / 2 for sent in laws[0]}
    assert [sum(law[sent] * told[sent] for sent in law) for law in laws.values()] == pytest.approx([0, 1])
    variance = sum(law[sent] * (told[sent] - 0.5) ** 2 / 2 for law in laws.values() for sent in law)
    row = few_changes.few_changes(100, 1, 1.0, 1).set_index("method").loc["one layer (dBitFlipPM)"]
    assert row.standard_error == pytest.approx(math.sqrt(variance / 100))
    assert row.exact_loss == pytest.approx(max(abs(math.log(laws[0][sent] / laws[1][sent])) for sent in told))
    assert few_changes.few_changes(100, 2, 1.0, 1).exact_loss.max() == math.inf


@pytest.mark.parametrize("horizon", [1, 2, 4])
def test_the_loss_of_a_transcript_is_that_of_all_sequences_of_bits_and_reports(horizon):
    """Both answers and all noise summed up."""
    slip, noise = (1 / (1 + math.exp(epsilon)) for epsilon in (0.8, 0.5))
    sequences = list(itertools.product((0, 1), repeat=horizon))

    def law(bits):
        chances = np.zeros(len(sequences))
        for answers in itertools.product((0, 1), repeat=2):
            chance = math.prod(1 - slip if answer == bit else slip for bit, answer in enumerate(answers))
            for place, sent in enumerate(sequences):
                kept = [1 - noise if answers[bit] == one else noise for bit, one in zip(bits, sent, strict=True)]
                chances[place] += chance * math.prod(kept)
        return np.log(chances)

    laws = [law(bits) for bits in sequences]
    worst = max(float((one - other).max()) for one, other in itertools.permutations(laws, 2))
    assert layers_loss(horizon, 0.8, 0.5) == pytest.approx(worst)


def test_two_layers_cost_what_all_their_reports_say():
    losses = {horizon: layers_loss(horizon, 0.5, 0.5) for horizon in (*range(1, 40), 1024)}
    assert losses[1] == pytest.approx(0.1201, abs=1e-4)
    assert losses[8] == pytest.approx(1.2715, abs=1e-4)
    assert losses[1024] == pytest.approx(1024 * 0.25 + 0.5 - math.log(4), abs=1e-9)
    assert np.all(np.diff([losses[horizon] for horizon in range(1, 40)]) > 0)
    agree = math.tanh(0.25) ** 2  # of both layers: a report says the bit this much more often than the other
    assert layers_error(100, 0.5, 0.5) == pytest.approx(1 / agree / 20)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tree(10, 4, math.nan, 2), "epsilon must be > 0 and finite, got nan"),
        (lambda: tree(10, 4, 1.0, 0), "changes must be >= 1, got 0"),
        (lambda: tree(10, 4096, 1.0, 1001), "changes must be at most 1000, got 1001"),
        (lambda: tree(10, 4, 1.0, 2, "worst"), "randomizer must be one of erlingsson"),
        (lambda: layers_error(9, math.inf, 1.0), "permanent must be > 0 and finite, got inf"),
        (lambda: layers_loss(9, 1.0, math.nan), "report must be > 0 and finite, got nan"),
        (lambda: layers_loss(0, 1.0, 1.0), "horizon must be >= 1, got 0"),
    ],
)
def test_what_cannot_work_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
