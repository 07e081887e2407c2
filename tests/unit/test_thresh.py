"""THRESH: thresholds and caps by hand, what starts and ends it, and what cannot work."""

from __future__ import annotations

import importlib
import math
import pkgutil
from dataclasses import is_dataclass, replace

import numpy as np
import pytest

import evolvingdp
from evolvingdp.book.checkout import params_of
from evolvingdp.core import accounting
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import baselines, protocol, streams
from evolvingdp.evolving.constants import paper_epsilons, paper_error_bound, smallest_vote_epsilon, told, unit
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.evolving.thresh_simulation import simulate
from evolvingdp.notebooks.evolving.thresh import PAPER, _run, predicted_delay, protocols

Params = params_of("evolving/thresh")
PLAIN = Thresh(1000, 16, 100, 10.0, 0.5, 2.0, vote_cap=4, estimate_cap=3, unit=0.02)


def test_the_paper_s_constants_are_those_of_its_lines_4_and_5():
    n, horizon, length, beta = 10**6, 1024, 10**6, 0.05
    a, b = paper_epsilons(n, horizon, length, n, 1, beta)
    logarithm = math.log(12 * horizon / beta)
    assert a == pytest.approx(4 * math.sqrt(2 * n * logarithm) / (n - 3 / math.sqrt(2) * math.sqrt(n * logarithm)))
    unit = math.sqrt(math.log(12 * n * horizon / beta) / (2 * length))
    root = math.sqrt(logarithm / (2 * n))
    assert b == pytest.approx(math.sqrt(2) * root / (10 * unit - root))


def test_tuned_spends_everything_and_survives_the_changes_asked_for():
    settings = Thresh.tuned(10**6, 1024, 10**6, 1.0, changes=3)
    assert settings.privacy_loss == pytest.approx(1.0)
    assert settings.changes == 3
    assert settings.error_bound < Thresh.paper(10**6, 1024, 10**6, 1.0, changes=3).error_bound


def test_the_bounds_and_caps_are_those_of_the_chapter():
    settings = Thresh.tuned(10**6, 1024, 10**6, 1.0, changes=3, spare=2)
    root = math.sqrt(math.log(12 * 1024 / 0.05) / (2 * 10**6))
    assert settings.estimate_error == pytest.approx((1 / math.tanh(settings.estimate_epsilon / 2) + 1) * root)
    assert settings.error_bound == pytest.approx(2 * 12 * settings.unit + settings.estimate_error)
    assert (settings.vote_cap, settings.estimate_cap) == (12, 6)
    assert paper_error_bound(10**6, 1024, 10**6, 0.05) == pytest.approx(4 * 12 * settings.unit)
    assert replace(settings, margin=0.5).error_bound == math.inf
    assert settings.heard_group() == pytest.approx(10**6)
    assert settings.heard_group(2) == pytest.approx(
        math.sqrt(10**6 / 2) * (math.sqrt(math.log(24 * 1024 / 0.05)) + math.sqrt(math.log(10 * 1024 / 0.05)))
        / math.tanh(settings.vote_epsilon / 2)
    )  # fmt: skip
    for share in (0.999, 0.1):
        assert replace(settings, vote_epsilon=share * settings.vote_epsilon).error_bound == math.inf
    needed = (
        8 * 4 * paper_epsilons(10**6, 1024, 10**6, 10**6, 1, 0.05)[0]
        + 5 * paper_epsilons(10**6, 1024, 10**6, 10**6, 1, 0.05)[1]
    )
    assert Thresh.paper(10**6, 1024, 10**6, needed, changes=4).changes == 4


def test_the_smallest_vote_epsilon_lets_a_group_be_heard():
    n, horizon, group, beta = 10**6, 64, 3 * 10**5, 0.05
    a = smallest_vote_epsilon(n, horizon, group, 2, beta)
    gain = group * math.tanh(a / 2)  # expected yes votes above those of silence
    deviations = math.sqrt(n / 2) * (math.sqrt(math.log(24 * horizon / beta)) + math.sqrt(math.log(10 * horizon / beta)))
    assert gain == pytest.approx(deviations)


def test_reports_are_unbiased_and_the_estimate_inverts_them():
    share = np.array([0.0, 0.25, 1.0])
    law = PLAIN.report_one(share)
    assert PLAIN.estimate(round(1000 * law[1])) == pytest.approx(0.25, abs=1e-3)
    assert math.log(law[2] / law[0]) == pytest.approx(PLAIN.estimate_epsilon)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Thresh.paper(10**4, 64, 10**6, 1.0), r"epoch_length must be < [\d,]+ for the paper's b to be positive"),
        (lambda: Thresh.paper(10**6, 1, 10**4, 1.0), "epoch_length must be < 0 for the paper's b"),
        (
            lambda: Thresh.paper(10**6, 64, 10**4, 1.0, min_group=1000),
            r"min_group must be > [\d,]+ for the paper's a",
        ),
        (lambda: Thresh.paper(10**6, 64, 10**4, 0.01), r"epsilon must be at least 0.0\d+ for a vote and an estimate"),
        (lambda: Thresh.tuned(10**4, 64, 10**4, 0.5, changes=3), r"epsilon must be > [\d.]+, what 12 votes cost"),
        (
            lambda: Thresh.tuned(10**6, 64, 10**4, 1.0, changes=3, min_group=100),
            r"min_group must be > [\d,]+ for its vote to be heard",
        ),
        (
            lambda: Thresh.tuned(10**6, 64, 10**6, 1.0, changes=2, n_groups=3),
            "min_group must be given where there are several",
        ),
        (
            lambda: Thresh.tuned(900, 64, 10**6, 1.0, changes=2, n_groups=3, min_group=301),
            "min_group must be at most n_users / n",
        ),
        (lambda: streams.BitStream.make([5, 0], [[0.5], [0.5]], 10), "sizes must hold a user or more for each group"),
        (lambda: replace(PLAIN, epsilon=9.0), "epsilon must be at least .* = 10, got 9.0"),
        (
            lambda: Thresh.tuned(500_000, 365, 1, 1.0, changes=3),
            r"epoch_length must be at least 50 for anybody to vote, got 1: the lowest threshold is 7, ",
        ),
        (lambda: replace(PLAIN, unit=0.5), "epoch_length must be at least 101 for anybody to vote, got 100"),
        (lambda: streams.steps(10, 0.5, {11: 0.2}), "changes must name epochs from 2 to 10, got 11"),
        (lambda: streams.BitStream.make([5], [[0.5, 1.5]], 10), r"means must lie in \[0, 1\], got 1.5"),
        (lambda: streams.BitStream.make([5, 5], [[0.5]], 10), "means must have a row per group"),
        (
            lambda: simulate(PLAIN, streams.BitStream.make([10], [[0.5]], 100), stream(0, "x")),
            "stream must have n_users = 1000, got 10",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_what_would(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_epoch_length_that_a_refusal_names_is_the_shortest_in_which_anybody_can_vote():
    for settings in (Thresh.tuned(500_000, 365, 50, 1.0, changes=3), replace(PLAIN, epoch_length=101, unit=0.498)):
        lowest = 1 << settings.levels
        all_changed = np.array([settings.epoch_length]), np.array([0]), np.array([0])
        assert settings.votes_yes(lowest, *all_changed).all()
        with pytest.raises(ValueError, match=f"epoch_length must be at least {settings.epoch_length} for anybody to vote"):
            replace(settings, unit=settings.unit * math.sqrt(settings.epoch_length), epoch_length=1)
    assert Thresh.tuned(500_000, 365, 1, 1.0, changes=0).vote_cap == 0  # nobody votes, and nobody pays for votes


def test_the_paper_s_caps_hold_a_spare_estimate_too():
    given = {"changes": 3, "spare": 1}
    paper, tuned = (make(10**6, 1024, 10**6, 1.1, **given) for make in (Thresh.paper, Thresh.tuned))
    assert paper.estimate_cap == tuned.estimate_cap == 5
    assert paper.privacy_loss <= 1.1
    both = protocols(Params(), 10**6, 1024)  # where four votes a change do not fit beside it
    assert {settings.estimate_cap for settings in both.values()} == {5}
    assert (both[PAPER].vote_cap, both[PAPER].privacy_loss <= 1) == (11, True)
    size = (10**6, 1024, 10**6, 8 * 4 * paper.vote_epsilon + 6 * paper.estimate_epsilon)
    assert Thresh.paper(*size, changes=4, spare=1).vote_cap == 16
    with pytest.raises(ValueError, match=r"epsilon must be at least [\d.]+ for 4 changes"):
        Thresh.paper(*size, changes=4, spare=2)


class Expected:
    """A generator whose binomials are their means; it keeps their probabilities."""

    def binomial(self, n, p):
        self.chances = p
        return n * p


@pytest.mark.parametrize(("composition", "one"), [("basic", 0.5), ("optimal", accounting.optimal(1.5, 1e-6, 3))])
def test_recomputing_every_so_often_asks_at_the_start_of_a_period_and_pays_for_what_is_asked(composition, one):
    means, rng = np.outer([1.0, 0.3], np.arange(10) / 10), Expected()
    data = streams.BitStream.make([3, 4], means, 100)
    estimates = baselines.recompute(data, 1.5, rng, every=4, composition=composition)
    assert estimates == pytest.approx(0.6 * np.array([0.0] * 4 + [0.4] * 4 + [0.8] * 2))
    flip = 1 / (math.exp(one) + 1)
    assert rng.chances == pytest.approx(flip + means[:, [0, 4, 8]] * (1 - 2 * flip))  # three reports
    assert baselines.standard_error(7, one) == pytest.approx(0.5 / (1 - 2 * flip) / math.sqrt(7))  # where half of them are 1


def test_a_delay_is_the_wait_for_the_first_epoch_whose_threshold_is_below_the_change():
    seen_by = [
        (0.21, 5, 0),
        (0.2, 5, 1),
        (0.17, 7, 1),
        (0.13, 5, 3),
        (0.13, 8, 0),
        (0.05, 5, 11),
        (0.04, 5, 11),
        (0.3, 16, 0),
    ]
    assert [predicted_delay(PLAIN, size, change) for size, change, _ in seen_by] == [delay for *_, delay in seen_by]


def test_what_a_run_has_spent_is_two_votes_for_each_cast_and_all_updates():
    settings = replace(PLAIN, epoch_length=10**4, vote_epsilon=20.0, estimate_epsilon=3.0, epsilon=1000.0)
    data = streams.BitStream.make([1000], streams.steps(16, 0.2, {5: 0.8, 9: 0.2}), 10**4)
    row = _run(settings, data, stream(0, "spent"))
    assert (row["updates"], row["frozen"]) == (3, 0)
    assert row["spent"] == pytest.approx(2 * 2 * 20.0 + 3 * 3.0)


def test_truth_weighs_groups():
    data = streams.BitStream.make([100, 300], [[0.2, 0.2], [0.6, 0.8]], 10)
    assert data.truth == pytest.approx([0.5, 0.25 * 0.2 + 0.75 * 0.8])
    counts = data.counts(2, stream(0, "data"))
    assert counts[100:].mean() == pytest.approx(8, abs=0.5)


class TestAccounting:
    @pytest.mark.parametrize(("epsilon", "n_reports"), [(1.0, 4), (1.0, 64), (2.0, 1024)])
    def test_optimal_beats_advanced_beats_basic(self, epsilon, n_reports):
        basic, advanced = accounting.basic(epsilon, n_reports), accounting.advanced(epsilon, 1e-6, n_reports)
        optimal = accounting.optimal(epsilon, 1e-6, n_reports)
        assert basic <= advanced <= optimal
        assert accounting.delta_of_reports(optimal, epsilon, n_reports) == pytest.approx(1e-6, rel=1e-6)

    def test_advanced_solves_its_formula(self):
        one = accounting.advanced(1.0, 1e-6, 64)
        assert one * math.sqrt(2 * 64 * math.log(1e6)) + 64 * one * math.expm1(one) == pytest.approx(1.0)

    def test_a_large_delta_allows_more_than_epsilon_in_one_report(self):
        assert accounting.optimal(1.0, 0.1, 1) > 1.1
        assert accounting.delta_of_reports(accounting.optimal(0.1, 0.1, 4), 0.1, 4) == pytest.approx(0.1)
        assert accounting.advanced(0.1, 0.9, 1) > 0
        assert accounting.optimal(800.0, 1e-6, 4) > 200


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ({}, [4, 3, 2, 1, 0, 0]),
        ({"unit": 0.11}, [4, 3, 3, 2, 2, 1]),  # at .11 the threshold of odd epochs is 1.1: nobody can vote
        ({"unit": 0.0995}, [4, 3, 2, 1, 0, 0]),  # the highest threshold is reached by a distance of 1, and by no other
        ({"unit": 0.1}, [4, 3, 3, 2, 2, 1]),  # the highest threshold is 1
        ({"unit": 0.4}, [4] * 6),
    ],
)
def test_the_votes_that_everybody_has_left_are_public_and_attained(choices, expected):
    """A user whose bits were all 0 at the start and are all 1 since, next to one that never sees a change."""
    settings = replace(PLAIN, n_users=2, margin=0.9, **choices)
    state, rng = protocol.start(settings), stream(0, "left")
    for epoch, least in enumerate(expected, start=1):
        counts = np.array([0 if epoch == 1 else 100, 0])
        state, release = protocol.step(settings, state, counts, rng, rng)
        assert release.votes_left == least == settings.vote_cap - state.used.max()
        assert release.estimates_left == settings.estimate_cap - release.updated or epoch > 1


def test_a_deviation_that_lemma_7_3_does_not_prove_has_no_bound():
    given = {"changes": 1, "deviation": unit(10**6, 256, 10**4, 0.05)}
    proved = Thresh.tuned(10**6, 256, 10**4, 2.0, changes=1)
    assert Thresh.tuned(10**6, 256, 10**4, 2.0, **given).error_bound == proved.error_bound < math.inf
    assert replace(proved, unit=1.01 * proved.unit).error_bound > proved.error_bound
    for share in (0.99, 1e-3):
        assert replace(proved, unit=share * proved.unit).error_bound == math.inf


def test_caps_that_cost_a_thousandth_more_than_epsilon_are_refused():
    settings = Thresh.tuned(10**6, 256, 10**4, 2.0, changes=1)
    assert replace(settings, epsilon=settings.privacy_loss).epsilon == settings.privacy_loss
    with pytest.raises(ValueError, match="epsilon must be at least 2"):
        replace(settings, epsilon=settings.privacy_loss / 1.001)


def test_the_secret_state_does_not_show_in_its_repr():
    """Of every paper: what a log or an error report prints of a state holds none of its fields."""
    found = []
    for module in pkgutil.walk_packages(evolvingdp.__path__, "evolvingdp."):
        if module.name.split(".")[1] in ("continual_mean", "evolving", "heavy_hitters", "sparse_vector"):
            members = vars(importlib.import_module(module.name)).values()
            found += [one for one in members if isinstance(one, type) and one.__name__.endswith("State")]
    states = {one for one in found if is_dataclass(one)}
    assert {"State", "SvtState"} <= {one.__name__ for one in states}
    assert [one.__qualname__ for one in states if one.__repr__ is not object.__repr__] == []
    assert "reference" not in repr(protocol.start(PLAIN))


def test_the_shortest_epoch_that_the_refusal_names_is_the_shortest_that_works():
    needed = 18_653
    assert Params(epoch_length=needed).epoch_length == needed
    for epoch_length in (100, needed - 1):
        with pytest.raises(ValueError, match=f"epoch_length must be at least {needed}, .* got {epoch_length}"):
            Params(epoch_length=epoch_length)


def test_a_bound_that_says_nothing_is_told_with_this_remark():
    """The bound at nine million users, 37 epochs of 300 bits and epsilon 6 is above 1."""
    bound = Thresh.tuned(9 * 10**6, 37, 300, 6.0, changes=2).error_bound
    assert 1 < bound < math.inf
    assert told(bound, 2) == f"{bound:.2f} (1 or more says nothing)"
    assert told(1.0).endswith("says nothing)")
    assert told(0.9994) == "0.999"
