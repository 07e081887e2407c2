"""THRESH and HEAVYTHRESH with roles by lot: who serves when, what is refused, and what is flagged."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from scipy.stats import binom

from evolvingdp.core.reports import Sign
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import streams, thresh_protocol
from evolvingdp.evolving.rivals import crews
from evolvingdp.evolving.rivals.crews import Crews, heard_cut
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.rivals.reserve import Reserve
from evolvingdp.evolving.thresh import Thresh

VOTING = Thresh(3, 16, 1000, 8.0, 1.0, 0.0, vote_cap=4, estimate_cap=4, unit=0.02, margin=0.25)
TINY = Crews(3 * 4 + 3 * 5 + 2, 8.0, VOTING, changes=2, cell=5, spare_cell=2)
SURE = Crews(1300, 36.0, replace(VOTING, n_users=50, epsilon=36.0, vote_epsilon=4.5), 2, 300, 100)


def of_ones(ones):
    """Histograms of users with so many ones of 1000 bits."""
    ones = np.asarray(ones)
    return np.stack([1000 - ones, ones], axis=1)


def test_a_lot_deals_each_user_to_one_part_and_reports_have_all_of_epsilon():
    assert TINY.parts == [3, 3, 3, 3, 5, 5, 5, 2]
    assert [TINY.reporters(update) for update in range(4)] == [5, 5, 5, 2]
    assert (TINY.report.n_values, TINY.report.epsilon) == (2, 8.0)
    debias = 1 / math.tanh(4.0)
    assert TINY.standard_error() == pytest.approx(debias / (2 * math.sqrt(5)))
    assert TINY.standard_error(3) == pytest.approx(debias / (2 * math.sqrt(2)))
    state = crews.start(TINY, stream(0, "deal"))
    assert sorted(state.order) == list(range(29))


def test_the_smallest_crew_that_is_heard_is_taken():
    settings = Crews.plan(10**6, 1024, 10**6, 1.0, changes=3)
    voting, flip, keep = settings.voting, settings.voting.vote_randomizer.flip, settings.voting.vote_randomizer.keep
    assert (voting.vote_cap, voting.estimate_cap, voting.vote_epsilon) == (4, 5, 1 / 8)
    cut = math.floor(voting.n_users * voting.update_cut)
    assert binom.sf(cut, voting.n_users, flip) <= 0.05 / 10240 < binom.sf(cut - 1, voting.n_users, flip)
    assert binom.cdf(cut, voting.n_users, keep) <= 0.05 / 12288
    assert heard_cut(voting.n_users - 1, 1024, 1 / 8, 1.0, 1, 5, 0.05) is None
    assert sum(settings.parts) <= 10**6 < sum(settings.parts) + 8
    assert settings.cell // 4 == settings.spare_cell
    halves = Crews.plan(10**6, 1024, 10**6, 1.0, changes=3, min_group=10**6 // 2, n_groups=2)
    assert 4 < halves.voting.n_users / voting.n_users < 5  # half the voices in the same noise, and fewer by the lot


def test_the_error_bound_adds_up_thresholds_and_reports():
    settings = Crews.plan(10**6, 1024, 10**6, 1.0, changes=3)
    noise = 1 / math.tanh(0.5) * math.sqrt(math.log(12 * 5 / 0.05) / (2 * settings.cell))
    assert settings.error_bound == pytest.approx(2 * 12 * settings.voting.unit + noise)
    spare = replace(settings, changes=4, cell=settings.cell // 2)
    assert spare.error_bound > settings.error_bound


@pytest.mark.parametrize("path", ["users", "simulation"])
def test_each_update_is_reported_by_its_crew_and_what_nobody_pays_for_is_flagged(path):
    """Votes and reports are nearly without noise: five changes for three updates and a spare one."""
    means = streams.steps(16, 0.2, {3: 0.9, 5: 0.2, 7: 0.9, 9: 0.2})
    data = streams.BitStream.make([1300], means, 1000)
    if path == "users":
        releases = crews.run(SURE, data, **{name: stream(0, name) for name in ("words", "public", "private")})
    else:
        releases = crews.simulate(SURE, data, stream(0, "crews"))
    assert [release.epoch for release in releases if release.updated] == [1, 3, 5, 7]
    assert [release.frozen for release in releases] == [False] * 8 + [True] * 8
    truth = data.truth.copy()
    truth[8:] = 0.9  # what nobody has paid for
    errors = np.abs([release.estimate for release in releases] - truth)
    assert errors[:6].max() < 4.9 * 0.5 / math.sqrt(300)
    assert 0 < errors[6:].max() < 4.9 * 0.5 / math.sqrt(100)
    left = [release.votes_left for release in releases]
    assert left == [4, 3, 4, 3, 4, 3, 4, 3, 2, 1, 0, 0, 0, 0, 0, 0]


def test_a_voter_says_yes_four_times_and_then_no_more():
    """No share of yes votes is enough here, so that no update comes."""
    settings = replace(TINY, voting=replace(VOTING, margin=0.74))
    order = np.arange(29)
    state = crews.CrewState(order, crews.start(settings, stream(0, "deal")).votes, settings)
    for epoch in range(1, 9):
        counts = np.where((order == 0) & (epoch > 1), 1000, 0)
        state, release = crews.step(settings, state, of_ones(counts), stream(0, "public"), stream(0, "noise", epoch))
        assert release.updated == (epoch == 1)
        assert state.votes.used.tolist() == [min(4, epoch - 1), 0, 0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Crews.plan(20_000, 1024, 10**6, 1.0, changes=3),
            r"n_users must be at least 25,3\d\d for 5 crews of 5,0",
        ),
        (
            lambda: Crews.plan(10**6, 64, 64, 0.05, changes=3, min_group=1),
            "epsilon must be larger, or groups, .* at 0.05 they are not heard among any number of voters below 9,007,",
        ),
        (lambda: Crews.plan(10**6, 365, 1, 1.0, changes=3), "epoch_length must be at least .* for anybody to vote"),
        (lambda: Crews.plan(10**6, 64, 10**6, math.nan, changes=3), "epsilon must be > 0 and finite, got nan"),
        (lambda: Crews.plan(10**6, 64, 10**6, 1.0, changes=-1), "changes must be >= 0, got -1"),
        (lambda: Crews.plan(10**6, 64, 10**6, 1.0, changes=1, beta=0.0), r"beta must lie in \(0, 1\)"),
        (lambda: replace(TINY, changes=4), "changes must be at least 0 and below the number of crews, 4"),
        (lambda: replace(TINY, n_users=28), "n_users must be at least 29"),
        (lambda: replace(TINY, epsilon=7.0), "voting must have estimate_epsilon 0 and a loss of at most 7.0"),
        (lambda: replace(TINY, epsilon=math.nan), "epsilon must be > 0 and finite, got nan"),
        (
            lambda: crews.simulate(TINY, streams.BitStream.make([9], [0.5] * 16, 1000), stream(0, "n")),
            "stream must have n_users = 29, got 9",
        ),
        (
            lambda: crews.simulate(TINY, streams.BitStream.make([29], [0.5] * 16, 999), stream(0, "n")),
            "stream must have epoch_length = 1000, got 999",
        ),
        (
            lambda: crews.simulate(TINY, streams.WordStream.make([29], [[0.5, 0.5]], [[0] * 16], 1000), stream(0, "n")),
            "stream must be a BitStream for two words",
        ),
        (lambda: Crews.plan(2000, 64, 10**6, 1.0, 50, changes=3), "n_users must be at least"),
    ],
)
def test_what_cannot_work_is_refused_with_what_would(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_number_of_users_that_a_refusal_names_is_the_smallest_that_works():
    with pytest.raises(ValueError, match="n_users must be at least") as error:
        Crews.plan(1000, 64, 10**6, 1.0, changes=2)
    needed = int(str(error.value).split("at least ")[1].split()[0].replace(",", ""))
    assert Crews.plan(needed, 64, 10**6, 1.0, changes=2).cell == 4
    with pytest.raises(ValueError, match="n_users must be at least"):
        Crews.plan(needed - 1, 64, 10**6, 1.0, changes=2)


WORDS = Crews.plan(1000, 4, 2000, 9.0, 3, changes=1, beta=0.5)
STEPS = {
    "bits": (TINY, of_ones([500] * 29), of_ones([900] * 29), [0, 1001]),
    "words": (WORDS, np.tile([2000, 0, 0], (1000, 1)), np.tile([0, 0, 2000], (1000, 1)), [0, 0, 0]),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("moved", [False, True])
def test_one_user_s_bad_counts_are_refused_before_any_noise_whoever_it_is_and_whatever_others_say(name, moved):
    settings, before, after, bad = STEPS[name]
    noises = [stream(0, part) for part in ("public", "private")]
    state, _ = crews.step(settings, crews.start(settings, stream(0, "deal")), before, *noises)
    at_first = [noise.bit_generator.state for noise in noises]
    for user in range(0, settings.n_users, max(1, settings.n_users // 100)):
        counts = (after if moved else before).copy()
        counts[user] = bad
        with pytest.raises(ValueError, match="counts must"):
            crews.step(settings, state, counts, *noises)
    assert [noise.bit_generator.state for noise in noises] == at_first


ALONE = replace(VOTING, epsilon=9.0, estimate_epsilon=0.2)
OTHERS = {
    "crews": (WORDS, {"epsilon": 9.5, "changes": 0, "cell": 4, "spare_cell": 1}),
    "thresh_protocol": (
        replace(VOTING, epsilon=9.0, estimate_epsilon=0.2),
        {"epsilon": 9.5, "vote_epsilon": 0.9, "vote_cap": 3, "horizon": 15, "unit": 0.03},
    ),
    "once": (Once(20, 4, 1.0, 3), {"every": 2, "horizon": 5, "report": Sign(3, 1.0)}),
    "reserve": (Reserve(20, 4, 1.0, 0, 3), {"steady": 0.5, "horizon": 5, "report": Sign(3, 1.0)}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_state_of_other_settings_is_refused_whichever_field_differs(name):
    settings, changes = OTHERS[name]
    room = import_module(f"evolvingdp.evolving.{'' if name == 'thresh_protocol' else 'rivals.'}{name}")
    alone = name == "thresh_protocol"
    noise, noises = () if alone else (stream(0, "lots"),), [stream(0, "noise")] * (1 if alone else 2)
    counts = np.zeros(settings.n_users, dtype=int) if alone else np.tile([2000, 0, 0], (settings.n_users, 1))
    state = room.start(settings, *noise)
    room.step(settings, state, counts, *noises)
    for field, value in changes.items():
        with pytest.raises(ValueError, match=f"state must be one of .*{field}={re.escape(repr(value))}"):
            room.step(replace(settings, **{field: value}), state, counts, *noises)
    assert room.step(replace(settings), state, counts, *noises)  # equal settings are the same


def test_voters_by_themselves_are_refused_before_they_vote():
    noise = stream(0, "noise")
    before = noise.bit_generator.state
    for _ in range(2):
        with pytest.raises(ValueError, match="estimate_epsilon must be > 0 where no others report"):
            thresh_protocol.step(VOTING, thresh_protocol.start(VOTING), np.zeros(3, dtype=int), noise)
    assert noise.bit_generator.state == before


@pytest.mark.parametrize("change", [{"exhaustion": "printed"}, {"start": "sentinel"}])
def test_crews_that_nobody_would_report_for_are_refused(change):
    with pytest.raises(ValueError, match="voting must have start='forced' and exhaustion='freeze'"):
        replace(TINY, voting=replace(VOTING, **change))


@pytest.mark.parametrize("path", ["users", "simulation"])
def test_words_are_found_by_crews(path):
    laws = [[0.9, 0.02, 0.02, 0.02, 0.02, 0.02], [0.02, 0.02, 0.02, 0.02, 0.02, 0.9]]
    data = streams.WordStream.make([600, 400], laws, [[0, 0, 0, 1, 1, 0, 0, 1], [0] * 8], 2000)
    settings = Crews.plan(1000, 8, 2000, 9.0, 6, changes=1, beta=0.5, min_group=400, n_groups=2)
    settings = replace(settings, voting=replace(settings.voting, voting=replace(settings.voting.voting, unit=0.15)))
    if path == "users":
        names = ("words", "public", "private")
        releases = crews.run(settings, data, **{name: stream(0, "crew words", name) for name in names})
    else:
        releases = crews.simulate(settings, data, stream(0, "crew words"))
    assert [release.epoch for release in releases if release.updated] == [1, 4, 6]
    assert [release.frozen for release in releases] == [False] * 7 + [True]
    for update, epoch in ((0, 1), (1, 4)):
        error = np.abs(releases[epoch - 1].estimate - data.truth[epoch - 1]).max()
        assert error < 4.9 * settings.standard_error(update, 0.5)
