"""HEAVYTHRESH: the law of updates on both paths, bounds and caps by hand, and what cannot work."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, binomtest, levene

from evolvingdp.core.reports import Sign, Subset, best_report
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import heavy_simulation, protocol
from evolvingdp.evolving.constants import hashed_unit, paper_estimate_epsilon, paper_margin, paper_vote_epsilon
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.streams import WordStream
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.notebooks.evolving.heavy_thresh import _judge, _mean_judgment, _run
from support import ALPHA

VOTING = Thresh(300, 8, 2000, 60.0, 1.5, 2.0, vote_cap=8, estimate_cap=3, unit=0.2, beta=0.05)
SMALL = HeavyThresh(VOTING, 6)
LAWS = [[0.9, 0.02, 0.02, 0.02, 0.02, 0.02], [0.02, 0.02, 0.02, 0.02, 0.02, 0.9]]
CHANGE = WordStream.make([300], LAWS, [[0, 0, 0, 1, 1, 1, 1, 1]], 2000)


def test_the_randomizer_costs_exactly_its_epsilon_and_is_unbiased():
    """R over all pairs of histograms of two words of three, zero included, and all outputs (coordinate, sign)."""
    settings = HeavyThresh(replace(VOTING, epoch_length=2), 3)
    histograms = [np.bincount(pair, minlength=3) for pair in itertools.product(range(3), repeat=2)]
    means = [settings.signed(each[None, :])[0] / 2 for each in histograms] + [np.zeros(4)]
    laws = [np.concatenate([settings.report_plus(mean), 1 - settings.report_plus(mean)]) / 4 for mean in means]
    loss = max(float(np.log(one / other).max()) for one, other in itertools.permutations(laws, 2))
    assert loss == pytest.approx(settings.voting.estimate_epsilon)
    debias = settings.voting.estimate_randomizer.debias
    for mean in means:
        assert debias * (2 * settings.report_plus(mean) - 1) == pytest.approx(mean)


def test_updates_have_the_stated_standard_error():
    settings = HeavyThresh.tuned(10**6, 16, 10**6, 2.0, 200, changes=1)
    data = WordStream.make([10**6], [np.full(200, 1 / 200)], [np.zeros(16, int)], 10**6)
    errors = [
        heavy_simulation.simulate(settings, data, stream(0, "error", run)).public[0].estimate - 1 / 200 for run in range(40)
    ]
    ratio = np.sqrt(np.mean(np.square(errors))) / settings.standard_error
    assert abs(ratio - 1) < 4.9 / math.sqrt(2 * 40 * 200) + 0.005
    assert abs(ratio / 0.9 - 1) > 4.9 / math.sqrt(2 * 40 * 200) + 0.005


def test_groups_that_hold_the_same_report_each_for_themselves():
    """Simulated recomputation of two groups is that of one: reports that they shared would spread by the root of 2 more."""
    groups = [WordStream.make(sizes, LAWS, [[0] * 8] * len(sizes), 2000) for sizes in ([300], [150, 150])]
    whole, halves = (heavy_simulation.Hashed(SMALL, each) for each in groups)
    one = [heavy_simulation.reported_sums(whole, 1, stream(0, "whole", run))[0] for run in range(800)]
    two = [heavy_simulation.reported_sums(halves, 1, stream(0, "halves", run))[0] for run in range(800)]
    shared = [2 * halves.reports(150, 0, stream(0, "shared", run))[0] for run in range(800)]
    assert levene(one, two).pvalue > ALPHA
    assert levene(one, shared).pvalue < ALPHA


def test_noise_alone_asks_for_an_update_as_often_as_it_exceeds_the_cut():
    """Where nobody votes yes: with a margin of .02 once in five epochs or so, and not never."""
    voting = replace(VOTING, margin=0.02)
    still, flip = WordStream.make([300], LAWS, [[0] * 8], 2000), voting.vote_randomizer.flip
    runs = [heavy_simulation.simulate(HeavyThresh(voting, 6), still, stream(0, "alone", run)) for run in range(300)]
    assert all(run.yes == [0] * 8 for run in runs)
    chance = binom.sf(math.floor(300 * voting.update_cut), 300, flip)
    assert binomtest(sum(run.public[1].updated for run in runs), 300, chance).pvalue > ALPHA
    assert binomtest(0, 300, chance).pvalue < ALPHA


def test_when_estimates_run_out_the_last_one_stays_and_is_flagged():
    """And stays flagged: three votes for three changes, so that after the epoch of the last nobody asks any more."""
    settings = HeavyThresh(replace(VOTING, vote_cap=3), 6)
    data = WordStream.make([300], LAWS, [[0, 1, 1, 0, 0, 1, 0, 1]], 2000)
    users = protocol.run(settings, data, **{name: stream(0, "frozen", name) for name in ("words", "public", "private")})
    for releases in (users, heavy_simulation.simulate(settings, data, stream(0, "noise")).public):
        assert [release.epoch for release in releases if release.updated] == [1, 2, 4]
        assert [release.frozen for release in releases] == [False] * 5 + [True] * 3
        assert releases[7].estimate is releases[3].estimate


def test_signed_means_are_two_apart_at_most():
    """Thresholds between 1 and 2 can be voted for; from 2 on none can."""
    settings = HeavyThresh(replace(VOTING, unit=0.7, reach=2), 6)
    assert settings.voting.threshold(8) == pytest.approx(1.4)
    counts = 2000 * np.eye(6, dtype=int)[:2]
    assert settings.votes_yes(8, counts[:1], counts[1:], np.zeros(1, int)).all()
    assert [settings.voting.votes_left(epoch) for epoch in (0, 7, 8)] == [8, 8, 7]
    assert settings == HeavyThresh(settings.voting, 6)
    assert HeavyThresh(VOTING, 6).voting == replace(VOTING, reach=2)
    with pytest.raises(ValueError, match="epoch_length must be at least 2,001 for anybody to vote, got 2000"):
        replace(VOTING, unit=1.0, reach=2)
    assert HeavyThresh.tuned(10**6, 16, 40, 4.0, 100, changes=0).voting.vote_cap == 0
    with pytest.raises(ValueError, match="for anybody to vote"):
        HeavyThresh.tuned(10**6, 16, 40, 4.0, 100, changes=1)


def test_votes_that_nobody_hears_have_no_bound():
    for settings in (
        HeavyThresh.tuned(10**6, 64, 10**5, 2.0, 1000, changes=2),
        HeavyThresh.paper(10**6, 64, 10**5, 2.0, 1000, changes=2),
    ):
        assert settings.error_bound < math.inf
        noisy = replace(settings.voting, vote_epsilon=1e-3)
        assert replace(settings, voting=noisy).error_bound == math.inf


def test_recall_is_the_share_of_the_top_words_that_are_found_and_the_error_is_of_clipped_estimates():
    truth = np.array([0.5, 0.3, 0.1, 0.06, 0.04])
    assert _judge(np.array([0.4, 0.1, 0.3, 0.2, -0.5]), truth, 3) == {
        "max_error": pytest.approx(0.2),
        "recall": pytest.approx(2 / 3),
    }


def test_errors_and_recall_of_a_dictionary_are_means_over_its_epochs():
    first, other = np.repeat([[0.2, 0.0], [0.0, 0.2]], 5, axis=1)
    data = WordStream.make([4], [first, other], [[0, 0, 1, 1]], 10)
    found = _mean_judgment([first, first, first, np.where(np.arange(10) < 6, other, 0.1)], data)
    assert found == {"mean_error": pytest.approx((0.2 + 0.1) / 4), "recall": pytest.approx(3 / 4)}


def test_what_a_run_has_spent_is_two_votes_for_each_cast_and_all_updates():
    settings = replace(SMALL, voting=replace(VOTING, vote_epsilon=20.0, epsilon=1000.0))
    row = _run(settings, CHANGE, stream(0, "spent"))
    assert row["updates"] == 2
    assert row["spent"] == pytest.approx(2 * 1 * 20.0 + 2 * 2.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HeavyThresh(VOTING, 6, Subset(6, 2.5)), "report must be one of 6 values with epsilon 2.0"),
        (lambda: HeavyThresh(VOTING, 6, Subset(5, 2.0)), "report must be one of 6 values with epsilon 2.0"),
        (lambda: WordStream.make([5], [[0.5, 0.6]], [[0]], 10), "distributions must hold rows of probabilities"),
        (lambda: WordStream.make([5], [[0.5, 0.5000001]], [[0]], 10), "distributions must hold rows of probabilities"),
        (lambda: WordStream.make([0, 4], [[0.5, 0.5]], [[0], [0]], 10), r"sizes must hold a user or more for each group"),
        (lambda: WordStream.make([5], [[0.5, 0.5]], [[1]], 10), r"which must be \(groups, epochs\) row numbers below 1"),
        (
            lambda: heavy_simulation.simulate(
                SMALL,
                WordStream.make([300], [LAWS[0], [0.5, 0.42, 0.02, 0.02, 0.02, 0.02]], [[0] * 3 + [1] * 5], 2000),
                stream(0, "n"),
            ),
            "stream must change so that all users of a group see it alike: in epoch 4 group 0",
        ),
        (
            lambda: heavy_simulation.simulate(SMALL, WordStream.make([9], LAWS, [[0] * 8], 2000), stream(0, "n")),
            "stream must have the sizes of the settings",
        ),
    ],
)
def test_what_cannot_work_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_counts_of_any_integer_type_and_shape_of_sequence_are_the_same_words():
    rows = [[2000, 0, 0, 0, 0, 0], [0, 1000, 0, 1000, 0, 0]] * 150
    shown = []
    for counts in (rows, np.array(rows, dtype=np.uint16), np.array(rows, dtype=np.uint64)):
        state = protocol.start(SMALL)
        for _ in range(2):
            state, release = protocol.step(SMALL, state, counts, stream(0, "p"), stream(0, "n"))
        shown.append(release.estimate.tolist())
        assert state.reference.tolist() == rows
    assert shown[0] == shown[1] == shown[2]


def test_no_input_of_the_randomizer_costs_more_than_its_epsilon():
    assert (
        SMALL.report_plus(np.array([-3.0, -1.0, 1.0, 198.0])).tolist()
        == SMALL.report_plus(np.array([-1, -1, 1, 1])).tolist()
    )


def test_the_sign_of_a_word_that_is_drawn_by_lot_has_the_law_of_the_paper_s_randomizer():
    """Two words of three, at each coordinate: as `oracle` says, whose sums are drawn without R."""
    settings = HeavyThresh(replace(VOTING, epoch_length=2), 3)
    assert settings.oracle == Sign(3, 2.0)
    plus = (1 + settings.signs(np.arange(4)[:, None], np.arange(3)) * (2 * settings.oracle.own - 1)) / 2  # of each word
    for pair in itertools.product(range(3), repeat=2):
        means = settings.signed(np.bincount(pair, minlength=3)[None, :])[0] / 2
        assert settings.report_plus(means) == pytest.approx(plus[:, pair].mean(axis=1))


def test_tuned_takes_the_best_report_which_has_less_error_than_the_paper_s():
    settings = HeavyThresh.tuned(10**6, 16, 10**6, 4.0, 30, changes=1)
    assert settings.report == best_report(30, settings.voting.estimate_epsilon, 256)
    assert settings.standard_error < 0.95 * replace(settings, report=None).standard_error
    assert HeavyThresh.paper(10**7, 64, 10**5, 1.0, 1000).report is None


@pytest.mark.parametrize("path", ["users", "simulation"])
@pytest.mark.parametrize("size", [None, 1, 3])
def test_updates_have_the_law_of_their_report_and_hold_nothing_when_estimates_are_used_up(path, size):
    """Errors of all words of 60 first and second updates as stated; after the last estimate, whatever is held, all words are
    alike, and of the paper's signs 0, as printed."""
    voting = replace(VOTING, exhaustion="printed", estimate_epsilon=6.0, estimate_cap=2)
    settings, told = HeavyThresh(voting, 6, size and Subset(6, 6.0, size)), []
    data = WordStream.make([300], LAWS, [[0, 0, 0, 1, 1, 0, 0, 0]], 2000)
    for run in range(60):
        if path == "users":
            names = {name: stream(0, "report", str(size), name, run) for name in ("words", "public", "private")}
            public = protocol.run(settings, data, **names)
        else:
            public = heavy_simulation.simulate(settings, data, stream(0, "report", str(size), run)).public
        assert [release.epoch for release in public if release.updated] == [1, 4, 6]
        told.append([public[0].estimate, public[4].estimate, public[-1].estimate])
    laws = [*np.array(LAWS), np.full(6, 1 / 6 if size else 0.0)]
    for estimates, law, wrong in zip(np.swapaxes(told, 0, 1), laws, [0.9 * laws[0], 0.9 * laws[1], laws[0]], strict=True):
        error = np.sqrt(settings.oracle.variance(law) / 300)
        means = np.mean(estimates, axis=0)
        assert np.abs((means - law) / error).max() * math.sqrt(60) < 4.9
        assert np.abs((means - wrong) / error).max() * math.sqrt(60) > 4.9
        assert abs(np.mean(np.square((estimates - law) / error)) - 1) < 4.9 * math.sqrt(2 / 60 / 5)


def test_the_deviation_can_be_given():
    settings = HeavyThresh.tuned(10**6, 16, 10**6, 4.0, 100, changes=1, deviation=0.1)
    assert settings.voting.unit == 0.1
    assert HeavyThresh.tuned(10**6, 16, 10**6, 4.0, 100, changes=1).voting.unit == hashed_unit(10**6, 16, 10**6, 128, 0.05)


def test_words_that_64_bits_cannot_count_are_refused():
    assert HeavyThresh(replace(VOTING, epoch_length=2**62 - 1), 2).n_words == 2
    with pytest.raises(ValueError, match=r"epoch_length must be below 2\^63 / n_words"):
        HeavyThresh(replace(VOTING, epoch_length=2**62), 2)


def test_the_unit_is_lemma_9_2_s():
    assert hashed_unit(100, 8, 1000, 16, 0.05) == pytest.approx(math.sqrt(2 * math.log(16 * 16 * 100 * 8 / 0.05) / 1000))


def test_the_paper_s_b_is_that_of_its_line_4_with_w_20_n():
    n, horizon, length, d, beta = 10**6, 64, 10**5, 1000, 0.05
    w = 20 * n
    many, users = math.log(16 * w * horizon / beta), math.log(16 * w * n * horizon / beta)
    above = 2 * (math.sqrt(many / (n * w)) + many * math.sqrt(w) / n**2)
    below = 2 * (math.log2(horizon) + 2) * math.sqrt(2 * users / (w * length))
    below -= 2 * math.sqrt(math.log(16 * d * horizon / beta) / (2 * w * n)) + many * math.sqrt(w) / n**2
    settings = HeavyThresh.paper(n, horizon, length, 2.0, d, changes=2)
    assert settings.voting.estimate_epsilon == pytest.approx(above / below)
    assert settings.voting.vote_epsilon == pytest.approx(paper_vote_epsilon(n, horizon, n, 1, beta))
    assert settings.voting.unit == pytest.approx(math.sqrt(2 * users / length))
    assert settings.voting.update_cut - settings.voting.vote_randomizer.flip == pytest.approx(paper_margin(n, horizon, beta))
    assert paper_margin(n, horizon, beta) == pytest.approx(math.sqrt(math.log(16 * 64 / 0.05) / (2 * n)))


def test_another_margin_than_a_proved_one_has_no_bound():
    settings = HeavyThresh.paper(10**6, 64, 10**5, 2.0, 1000, changes=2)
    assert 2 * 8 * settings.voting.unit < settings.error_bound < math.inf
    for margin, proved in ((None, True), (0.5, False)):
        other = HeavyThresh(replace(settings.voting, margin=margin), 1000)
        assert (other.error_bound == settings.error_bound) == proved


def test_the_paper_s_caps_hold_its_budget_whatever_is_asked():
    quarter = HeavyThresh.paper(10**7, 64, 10**5, 1.0, 1000)
    a, b = quarter.voting.vote_epsilon, quarter.voting.estimate_epsilon
    assert (quarter.voting.vote_cap, quarter.voting.estimate_cap) == (math.floor(1 / (4 * a)), math.floor(1 / (4 * b)))
    for changes in (0, 1, 3):
        settings = HeavyThresh.paper(10**7, 64, 10**5, 1.0, 1000, changes=changes)
        assert settings.voting.privacy_loss <= 1.0
        assert settings.voting.changes == changes


@pytest.mark.parametrize("horizon", [1, 16, 4096])
@pytest.mark.parametrize("share", [1.0, 0.3, 0.05])
def test_the_paper_s_a_is_enough_for_line_11(horizon, share):
    """The condition of the theorem, with 16 T in the cut: the deviations of all votes and of the cut are outvoted."""
    n, beta = 10**6, 0.05
    group = int(n * share)
    a = paper_vote_epsilon(n, horizon, group, 1, beta)
    deviations = math.sqrt(n * math.log(12 * horizon / beta) / 2) + n * paper_margin(n, horizon, beta)
    assert group * math.tanh(a / 2) >= deviations


def number_after(text, message):
    return int(message.split(text)[1].split()[0].rstrip(",;").replace(",", ""))


def test_the_epoch_length_and_the_epsilon_that_an_error_names_are_the_limit():
    with pytest.raises(ValueError, match="epoch_length must be <") as error:
        paper_estimate_epsilon(10**5, 64, 10**8, 1000, 0.05)
    longest = number_after("epoch_length must be < ", str(error.value))
    assert paper_estimate_epsilon(10**5, 64, longest - 1, 1000, 0.05) > 0
    with pytest.raises(ValueError, match="epoch_length must be <"):
        paper_estimate_epsilon(10**5, 64, longest + 1, 1000, 0.05)
    with pytest.raises(ValueError, match="epsilon must be at least") as error:
        HeavyThresh.paper(10**6, 64, 10**5, 0.01, 1000, changes=2)
    least = float(str(error.value).split("at least ")[1].split()[0])
    assert HeavyThresh.paper(10**6, 64, 10**5, 1.001 * least, 1000, changes=2).voting.changes == 2
    with pytest.raises(ValueError, match="epsilon must be at least"):
        HeavyThresh.paper(10**6, 64, 10**5, 0.999 * least, 1000, changes=2)


@pytest.mark.parametrize("unit", [0.2, 0.26])
def test_the_votes_that_everybody_has_left_are_public_and_attained(unit):
    """A user whose words all change at once; at .26 the threshold of odd epochs is 2.08, beyond any distance."""
    settings = HeavyThresh(replace(VOTING, n_users=2, unit=unit, margin=0.9, vote_cap=3), 4)
    state = protocol.start(settings)
    for epoch in range(1, 9):
        counts = np.zeros((2, 4), dtype=int)
        counts[0, 0 if epoch == 1 else 3] = counts[1, 0] = 2000
        state, release = protocol.step(settings, state, counts, stream(0, "p"), stream(0, "n", epoch))
        assert release.votes_left == 3 - state.used.max()
    assert release.votes_left == 0


def test_a_simulation_tells_the_votes_that_everybody_has_left():
    data = WordStream.make([300], LAWS, [[0, 0, 0, 1, 1, 0, 0, 1]], 2000)
    releases = heavy_simulation.simulate(SMALL, data, stream(0, "noise")).public
    assert [release.estimates_left for release in releases[4:]] == [1, 0, 0, 0]
    assert [release.votes_left for release in releases] == [8, 7, 6, 5, 4, 3, 2, 1]


def test_simulated_users_vote_no_more_often_than_the_cap():
    """200 of a million, too few for an update, whose words stay changed."""
    settings = HeavyThresh(replace(VOTING, n_users=10**6, epoch_length=20_000, vote_cap=3), 6)
    data = WordStream.make([200, 999_800], LAWS, [[0, 1, 1, 1, 1, 1, 1, 1], [0] * 8], 20_000)
    trace = heavy_simulation.simulate(settings, data, stream(0, "noise"))
    assert [release.epoch for release in trace.public if release.updated] == [1]
    assert trace.yes == [0, *[200] * 3, *[0] * 4]
    assert trace.votes_cast == [3, 0]


def test_the_bound_is_that_of_the_chapter_and_there_is_none_for_a_deviation_that_lemma_9_2_does_not_prove():
    settings = HeavyThresh.tuned(10**6, 64, 10**5, 2.0, 1000, changes=2)
    voting = settings.voting
    noise = math.sqrt(2 * math.log(8 * 1000 * 64 / 0.05) / 10**6)
    step = math.sqrt(2 * math.log(16 * 1024 * 10**6 * 64 / 0.05) / 10**5)
    assert settings.error_bound == pytest.approx(2 * (6 + 2) * step + noise / 2 / settings.report.gain, rel=1e-12)
    signs = 2 * (6 + 2) * step + noise / math.tanh(voting.estimate_epsilon / 2)
    assert replace(settings, report=None).error_bound == pytest.approx(signs, rel=1e-12)
    assert HeavyThresh.tuned(10**6, 64, 10**5, 2.0, 1000, changes=2, deviation=0.99 * step).error_bound == math.inf
    thresh_unit = math.sqrt(math.log(12 * 10**6 * 64 / 0.05) / (2 * 10**5))  # proved for means of bits, not for hashes
    assert HeavyThresh(replace(voting, unit=thresh_unit), 1000).error_bound == math.inf


def test_how_likely_a_user_does_not_vote_as_expected_is_hoeffding_s_bound():
    threshold = VOTING.threshold(4)
    yes, missed = heavy_simulation._vote_alike(SMALL, 4, threshold + 0.1)
    assert yes
    assert missed == pytest.approx(math.exp(-2000 * 0.1**2 / 4))
    no, missed = heavy_simulation._vote_alike(SMALL, 4, threshold - 0.2)
    assert not no
    assert missed == pytest.approx(2 * 8 * math.exp(-2000 * 0.2**2 / 4))


def test_users_who_disagree_are_refused_with_the_way_out_and_run_one_by_one():
    """A word's share moves by about a threshold: in each epoch some users see it and some do not."""
    law = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    which = [[0, 0, 0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 1, 1, 1]]
    data = WordStream.make([150, 250], [law, np.roll(law, 1)], which, 40)
    settings = HeavyThresh(Thresh(400, 8, 40, 50.0, 0.8, 1.5, vote_cap=3, estimate_cap=3, unit=0.09, beta=0.05), 6)
    with pytest.raises(ValueError, match=r"longer epochs would decide it; protocol\.run draws every"):
        heavy_simulation.simulate(settings, data, stream(0, "refused"))
    public = protocol.run(settings, data, **{name: stream(0, name) for name in ("words", "public", "private")})
    assert [release.epoch for release in public] == list(range(1, 9))
