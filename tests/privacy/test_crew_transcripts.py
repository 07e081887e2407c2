"""A user's whole transcript in THRESH with roles by lot, in the worst case over lots, inputs and what the server may do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evolvingdp.audit.exact.transcripts import crew_loss
from evolvingdp.evolving.rivals.crew_thresh import CrewThresh
from evolvingdp.evolving.rivals.crew_words import CrewWords
from evolvingdp.evolving.thresh import Thresh

VOTING = Thresh(3, 5, 1, 1.0, 0.25, 0.0, 2, 2, unit=0.01, margin=0.1)
CREWS = CrewThresh(9, 1.0, VOTING, changes=0, cell=1, spare_cell=1)


@pytest.mark.parametrize(
    ("settings", "voter"),
    [
        (CREWS, 1.0),  # five epochs have room for four votes that differ
        (replace(CREWS, voting=replace(VOTING, vote_cap=1)), 0.5),
        (replace(CREWS, changes=1, reports=2), 1.0),
        (replace(CREWS, voting=replace(VOTING, horizon=3)), 0.5),  # too short for that
    ],
)
def test_the_worst_transcript_costs_exactly_epsilon(settings, voter):
    assert crew_loss(settings, "voters") == pytest.approx(voter, rel=1e-9)
    assert crew_loss(settings, "reporters") == pytest.approx(1.0, rel=1e-9)


def test_plans_spend_all_of_epsilon_on_votes_or_on_reports():
    for epsilon in (0.5, 1.0, 5.0):
        for settings in (
            CrewThresh.plan(10**6, 64, 10**6, epsilon, changes=2),
            CrewWords.plan(10**6, 64, 10**6, epsilon, 50, changes=2),
        ):
            voting = settings.voting if isinstance(settings, CrewThresh) else settings.voting.voting
            assert voting.privacy_loss == pytest.approx(epsilon)
            if isinstance(settings, CrewWords):
                assert settings.reporters(0).epsilon == epsilon
                continue
            spent = {
                cell: sum(settings.randomizer(update).epsilon for update in range(4) if cell in settings.reporting(update))
                for cell in range(4, 8)
            }
            assert all(spent[cell] == pytest.approx(epsilon) for cell in spent)
