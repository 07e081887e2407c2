"""A user's whole transcript in THRESH with roles by lot, in the worst case over lots, inputs and what the server may do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from evolving_transcripts import crew_loss

from evolvingdp.evolving.rivals.crews import Crews
from evolvingdp.evolving.thresh import Thresh

VOTING = Thresh(3, 5, 1, 1.0, 0.25, 0.0, 2, 2, unit=0.01, margin=0.1)
CREWS = Crews(9, 1.0, VOTING, changes=0, cell=1, spare_cell=1)


@pytest.mark.parametrize(
    ("settings", "voter"),
    [
        (CREWS, 1.0),  # five epochs have room for four votes that differ
        (replace(CREWS, voting=replace(VOTING, vote_cap=1)), 0.5),
        (replace(CREWS, voting=replace(VOTING, horizon=3)), 0.5),  # too short for that
    ],
)
def test_the_worst_transcript_costs_exactly_epsilon(settings, voter):
    assert crew_loss(settings, "voters") == pytest.approx(voter, rel=1e-9)
    assert crew_loss(settings, "reporters") == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("words", [2, 50])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 5.0])
def test_plans_spend_all_of_epsilon_on_votes_or_on_reports(epsilon, words):
    settings = Crews.plan(10**6, 64, 10**6, epsilon, words, changes=2)
    assert settings.votes.privacy_loss == pytest.approx(epsilon)
    assert settings.report.epsilon == epsilon
