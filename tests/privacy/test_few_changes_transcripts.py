"""Dyadic trees and memoization: the loss of all that a user sends, by enumeration of what the shipped clients may draw."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evolvingdp.audit.exact import rivals
from evolvingdp.evolving import ChangeTree, Memoized
from evolvingdp.evolving.rivals import signs, tree
from evolvingdp.evolving.rivals.threshold_stream import truncate
from evolvingdp.evolving.rivals.tree import RANDOMIZERS

SPENT = {"best": 1.0, "erlingsson": 0.5, "erlingsson_exact": 1.0, "future_rand": math.sqrt(2) / 5}


@pytest.mark.parametrize("tuned", [True, False])
@pytest.mark.parametrize("randomizer", RANDOMIZERS)
def test_a_tree_loses_exactly_what_it_states_with_clients_that_truncate(randomizer, tuned):
    settings = ChangeTree(10, 3, 1.0, 2, randomizer, tuned)
    assert settings.privacy_loss == pytest.approx(SPENT[randomizer])
    assert rivals.tree_loss(settings) == pytest.approx(settings.privacy_loss)


def test_a_change_more_than_a_randomizer_has_room_for_is_caught(monkeypatch):
    settings = ChangeTree(10, 4, 1.0, 1, tuned=False)
    monkeypatch.setattr(
        signs.Signs, "flips", lambda law, users, rng: np.repeat(rng.random((users, 1)) < law.flip_chances[0, 0], 2, 1)
    )
    assert rivals.tree_loss(settings) == pytest.approx(settings.privacy_loss)
    monkeypatch.setattr(tree, "truncate", lambda bits, changes: truncate(bits, changes + 1))
    assert rivals.tree_loss(settings) > 1.3 * settings.privacy_loss


@pytest.mark.parametrize("epsilons", [(0.5, 0.5), (3.0, 0.4), (0.4, 3.0)])
@pytest.mark.parametrize("horizon", [1, 2, 3, 4])
def test_the_loss_of_two_layers_is_that_of_all_pairs_of_sequences(horizon, epsilons):
    settings = Memoized(10, horizon, *epsilons)
    assert rivals.memoized_loss(settings) == pytest.approx(settings.transcript_loss())
    assert rivals.memoized_loss(settings, constant=True) == pytest.approx(settings.one_value_loss())
    assert settings.one_value_loss() <= settings.permanent_epsilon


def test_two_layers_outgrow_the_sum_over_distinct_values():
    """Two values at .5 each: the transcript's loss is past 1 from seven epochs on."""
    settings = Memoized(10, 8, 0.5, 0.5)
    assert settings.transcript_loss(6) < 1 < settings.transcript_loss(7)
