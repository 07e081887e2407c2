"""The planner: worked values, refusals that name what would work, the way back, and predictions against the protocols."""

from __future__ import annotations

import json
import math
import re
import secrets
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np
import pytest
from click.testing import CliRunner
from planner_truth import TRUTHS, all_found, counted
from rivals import better
from scipy.stats import binom, binomtest

from evolvingdp.book.checkout import params_of
from evolvingdp.book.cli import main
from evolvingdp.core import accounting
from evolvingdp.core.checks import ParameterError
from evolvingdp.core.detection import detect_many
from evolvingdp.core.geometry import geometry
from evolvingdp.core.noise import DiscreteLaplace, Gaussian, IntegerNoise, Laplace, MonitorNoise
from evolvingdp.core.seeds import stream
from evolvingdp.evolving.rivals import reserve
from evolvingdp.evolving.rivals.reserve import Reserve
from evolvingdp.heavy_hitters.planning import reach as found_from
from evolvingdp.heavy_hitters.shuffling import Shuffled
from evolvingdp.planning import local, local_search, planner
from evolvingdp.planning.answer import CannotServeError, Method
from evolvingdp.planning.planner import METHODS, asked, expected, plan, reach, settled
from evolvingdp.planning.question import STATISTICS, TARGETS, TRUST, UNITS, Question, check_used
from evolvingdp.planning.shown import number, text
from evolvingdp.sparse_vector.above_threshold import KINDS, SPLITS, AboveThreshold
from evolvingdp.sparse_vector.histograms import HISTOGRAMS, histogram
from evolvingdp.sparse_vector.moved_queries import smallest_moved_scale
from evolvingdp.sparse_vector.privacy import smallest_scale
from evolvingdp.sparse_vector.shifting import solve
from evolvingdp.sparse_vector.stable import NOISES, stable_monitor
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving
from support import ALPHA

TELEMETRY = Question(users=500_000, periods=365, epsilon=1.0)
CASES = {
    "telemetry": TELEMETRY,
    "keyboard": Question("frequencies", users=10_000_000, periods=52, epsilon=4.0, items=2500),
    "survey": Question(users=20_000, periods=12, unit="period", epsilon=1.0),
    "clinic": Question(trust="curator", users=2000, periods=52, target="cumulative"),
    "alarm": Question("hot", "curator", users=1_000_000),
}


def of(name: str, question: Question) -> Method:
    return next(method for method in asked(question) if method.name == name)


def refused(name: str, question: Question) -> str:
    """Why the method does not serve; empty if it does."""
    try:
        settled(of(name, question), question)
    except (CannotServeError, ValueError) as reason:
        return str(reason)
    return ""


def error(name: str, question: Question) -> float:
    found = expected(of(name, question), question).standard_error
    assert found is not None
    return found


def test_the_first_question_has_the_errors_that_were_worked_out_by_hand():
    still = replace(TELEMETRY, changes=0)
    divided = 1 / math.tanh(1 / 730) / 2 / math.sqrt(500_000)
    assert error("every user in every period", still) == pytest.approx(divided, rel=1e-5)
    assert divided == pytest.approx(0.516, abs=5e-4)
    once = math.sqrt(365 / 500_000 / math.tanh(0.5) ** 2 / 4 - 0.25 / 500_000)
    assert error("each user once", still) == pytest.approx(once, rel=1e-12)
    assert once == pytest.approx(0.0292, abs=5e-5)
    assert error("each user once, changes found afterwards", TELEMETRY) < once / 4


def test_a_curator_s_noise_is_one_over_epsilon_for_each_period_of_a_user():
    clinic = replace(CASES["clinic"], delta=0.0, target="period")
    assert error("fresh Laplace noise in every period", clinic) == pytest.approx(math.sqrt(2) * 52 / 2000)
    per_period = replace(clinic, unit="period")
    assert error("fresh Laplace noise in every period", per_period) == pytest.approx(math.sqrt(2) / 2000)
    words = replace(per_period, statistic="frequencies")
    assert error("fresh Laplace noise in every period", words) == pytest.approx(2 * math.sqrt(2) / 2000)


def test_thresh_needs_thousands_of_readings_a_period():
    told = {one.method: one for one in plan(TELEMETRY).refusals}
    assert told["THRESH, tuned"].nearest == "--readings 7000"
    assert "is not seen" in refused("THRESH, tuned", replace(TELEMETRY, readings=3000))
    assert not refused("THRESH, tuned", replace(TELEMETRY, readings=7000))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("trust", TRUST[:2])
def test_what_a_user_sends_is_said_of_each_report(unit, trust):
    question = Question(trust=trust, unit=unit, users=10**6, periods=12)
    told = {one.method: one.sends for one in plan(question).predictions}
    each = "every user in every period"
    assert told[each] == "one value, 1 bit a period" if unit != "report" else "one value, 1 bit a reading, 1 a period"
    assert told["each user once"] == "one value, 1 bit, once"
    assert trust == "nobody" or told[f"{each}, shuffled"] == f"{told[each]}; no name"


@pytest.mark.parametrize("case", CASES)
def test_what_is_refused_names_a_setting_at_which_it_works(case):
    question = CASES[case]
    for refusal in plan(question).refusals:
        assert refusal.reason
        options = refusal.nearest.split()
        if not options:
            continue
        name, value = options[0].removeprefix("--").replace("-", "_"), options[1]
        kind = Question.__dataclass_fields__[name].type
        changed = replace(question, **{name: value if kind == "str" else float(value) if "float" in kind else int(value)})
        assert refused(refusal.method, changed) != refusal.reason  # it serves, or not for another reason


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_shuffler_s_answer_has_each_local_method_amplified_or_the_reason_why_not(statistic):
    question = Question(statistic, "shuffler", users=10**6, periods=12, share=0.3)
    answer = plan(question)
    served = {one.method: one for one in answer.predictions}
    why = {one.method: one.reason for one in answer.refusals}
    mixable = [one.name for one in asked(question) if one.trust == "nobody" and one.mixed]
    assert mixable
    for name in mixable:
        mixed = f"{name}, shuffled"
        if mixed in why:
            assert why[mixed] == why[name]
            continue
        assert served[mixed].guarantee.startswith("(1, 1e-09)-DP of everything that a user ever sends")
        assert served[mixed].rank < served[name].rank
    assert served
    assert answer.predictions[0].method.endswith(", shuffled")


def test_a_report_behind_a_shuffler_may_cost_what_the_bound_allows_and_no_more():
    question = Question(trust="shuffler", users=100_000, periods=10, unit="period", epsilon=0.5, delta=1e-6)

    def report(asked_for: Question, name: str = "every user in every period, shuffled") -> float:
        return settled(of(name, asked_for), asked_for).epsilon

    one = report(question)
    assert Shuffled(one, 100_000, 2).delta(0.5) <= 1e-6 < Shuffled(one + 0.01, 100_000, 2).delta(0.5)
    for_ever = report(replace(question, unit="user"))
    each = accounting.optimal(0.5, 5e-7, 10)
    assert Shuffled(for_ever, 100_000, 2).delta(each) <= 5e-8
    assert for_ever < one
    once = report(question, "each user once, shuffled")  # 10,000 are expected in a period; fewer must be promised for
    assert Shuffled(once, 9_000, 2).delta(0.5) > 1e-6 >= Shuffled(once, 9_600, 2).delta(0.5)
    assert 0.5 <= report(replace(question, users=9)) < 0.501  # never less than without a shuffler


def test_reports_are_mixed_with_those_that_are_sent_and_no_others():
    """Of three readings a search sends one; a mean whose reports are protected one by one sends all."""
    for statistic, name, more in (
        ("words", "TreeHist, shuffled", False),
        ("mean", "every user in every period, shuffled", True),
    ):
        one = Question(statistic, "shuffler", "report", users=30_000, periods=1, epsilon=0.5)
        alone, three = (settled(of(name, asked_for), asked_for).epsilon for asked_for in (one, replace(one, readings=3)))
        assert (three > alone + 0.5) if more else three == alone


def test_a_shuffler_needs_a_delta_that_the_bound_can_have():
    name, pure = "every user in every period, shuffled", Question(trust="shuffler", users=10**5, delta=0.0)
    assert refused(name, pure) == "it needs a delta above 0"
    assert not refused(name, replace(pure, delta=1e-9))
    assert "a delta of 7.3e-10 or more" in refused(name, replace(pure, delta=1e-10))
    assert not refused(name, replace(pure, delta=8e-10))


def test_a_change_that_is_only_just_detectable_has_a_number_with_its_own_error():
    """What many streams tell is within it; between the sides the error lies between theirs."""
    found = "each user once, changes found afterwards"
    for by in (0.02, 0.2):
        few, many = (expected(of(found, TELEMETRY), replace(TELEMETRY, change=by), streams) for streams in (0, 250))
        assert few.own_error > many.own_error > 0
        assert abs(few.standard_error - many.standard_error) < 4 * few.own_error
        assert few.own_error < 0.1 * few.standard_error
    assert error(found, replace(TELEMETRY, change=0.005)) < error(found, replace(TELEMETRY, change=0.02))


@pytest.mark.parametrize("number_of", range(4))
def test_the_planner_keeps_its_word_on_the_way_back(number_of):
    """Whatever `reach` answers, `plan` predicts no larger error there: random questions, new ones in every run."""
    rng = stream(secrets.randbelow(2**31), "round trips")
    trust, unit, target = (str(rng.choice(choices)) for choices in (TRUST, UNITS, TARGETS))
    question = Question(
        STATISTICS[number_of], trust, unit, int(10 ** rng.uniform(3.5, 6)), int(rng.integers(8, 60)),
        int(rng.choice([1, 3])), int(rng.integers(0, 4)), target=target,
        epsilon=float(np.round(10 ** rng.uniform(-0.5, 0.8), 2)), items=int(rng.choice([2, 30, 1000])), length=4,
    )  # fmt: skip
    if not (first := plan(question).predictions):
        return
    wanted = float(f"{first[0].rank * rng.choice([0.6, 1.5]):.2g}")
    found = reach(question, wanted)
    for one in found[:3]:
        for name in ("epsilon", "users", "periods"):
            if (value := getattr(one, name)) is not None:
                again = {each.method: each for each in plan(replace(question, **{name: value})).predictions}[one.method]
                assert again.rank <= wanted * (1 + 1e-9) or again.standard_error <= wanted, (question, one.method, name)


def test_a_number_that_is_enough_is_named_where_time_runs_out(monkeypatch):
    def late(*_):
        raise TimeoutError

    question = Question("mean", users=100_000, periods=4, epsilon=1.0, trust="nobody")
    best = plan(question).predictions[0]
    monkeypatch.setattr(planner, "_reached", late)
    found = {one.method: one for one in reach(question, 1.01 * best.standard_error, work=math.inf)}
    assert (found[best.method].epsilon, found[best.method].users, found[best.method].periods) == (1.0, 100_000, 4)
    assert found[best.method].late
    worse = reach(question, 1e-6, work=math.inf)
    assert {(one.epsilon, one.users, one.periods, one.late) for one in worse} == {(None, None, None, True)}


def test_what_is_reached_depends_on_counts_and_on_no_clock(monkeypatch):
    """Seen to fail with a limit of .8 processor seconds."""
    question = Question(users=20_000, periods=30)
    found, wanted = [], 1.5 * plan(question).predictions[0].standard_error
    for slow in (0.0, 100.0):
        ticks = count(0.0, slow)
        monkeypatch.setattr("time.process_time", lambda: next(ticks))  # noqa: B023
        found.append(reach(question, wanted))
    assert found[0] == found[1]
    assert any(one.epsilon and not one.late for one in found[0])
    assert all(one.late for one in reach(question, wanted, work=0))


def test_simulated_numbers_have_no_more_digits_than_hold():
    assert number(0.004694, 0.00031) == "0.0047 +- 0.0003"
    assert number(0.004694, 0.00312) == "0.005 +- 0.003"
    assert number(12345.6, 230.0) == "12,000 +- 1,000"
    assert number(0.004694) == "0.0047"
    best = plan(replace(TELEMETRY, periods=60)).predictions[0]
    assert 0 < best.own_error < 0.2 * best.standard_error


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        (Question(users=500_000, periods=50, target="window", window=5), 0.005),
        (Question("frequencies", "curator", users=20_000, periods=20, target="window", window=5), 0.02),
        (Question("hot", "curator", users=300_000, periods=30, delta=1e-6), 0.01),
        (Question("mean", "curator", users=5000, periods=12, target="cumulative"), 0.004),
        (Question("words", "curator", users=50_000, periods=12, target="window", length=4), 0.002),
        (Question("mean", "shuffler", users=30_000, periods=8, target="window", window=4), 0.006),
        (Question("frequencies", "shuffler", users=100_000, periods=12, unit="period"), 0.002),
        (Question("words", "shuffler", users=300_000, periods=4, length=4), 0.01),
        (Question("hot", "shuffler", users=300_000, periods=12), 0.01),
    ],
)
def test_what_reaches_an_error_does_and_a_little_less_does_not(question, wanted):
    """By 6 %; where reports are mixed, whose amplification may be 3 % too careful, by a sixth."""
    numbers = 0
    for one in reach(question, wanted, work=math.inf):
        method, worse = of(one.method, question), 1.17 if ", shuffled" in one.method else 1.06
        for name, value in (("epsilon", one.epsilon), ("users", one.users), ("periods", one.periods)):
            if value in (None, 10_000) or method.simulated or (name == "periods" and question.trust != "nobody"):
                continue
            beyond = math.ceil(value * worse) if name == "periods" else type(value)(value / worse)
            found = [expected(method, replace(question, **{name: each})) for each in (value, beyond)]
            sizes = [each.found_from if each.standard_error is None else each.standard_error for each in found]
            assert sizes[0] <= wanted < sizes[1], (one.method, name)
            numbers += 1
    assert numbers


@pytest.mark.parametrize(
    "question",
    [
        *(Question(one, "curator", users=100_000, periods=8, delta=1e-8, share=0.3, length=4) for one in STATISTICS[1:]),
        Question(trust="curator", users=30_000, periods=40, changes=2),
        Question(users=2_340_145, periods=18, changes=8, change=0.39, readings=30_447, epsilon=7.47),
        Question("words", "shuffler", "period", users=12_630, periods=1, epsilon=1.45, share=0.032, length=3),
        Question("words", unit="period", users=1_427_512, periods=35, epsilon=6.32, target="cumulative", length=3),
    ],
)
def test_more_users_and_more_epsilon_never_give_a_worse_answer(question):
    """Not by chance either, and not where THRESH's thresholds rise above a change, or those of a search whose reports have
    few points; seen to fail with draws of another order, with all users in THRESH, and with all epsilon in TreeHist. What is
    simulated or searched goes in steps."""
    before = {one.method: one.rank for one in plan(question).predictions}
    for field in ("users", "epsilon"):
        last = before
        for factor in (1.02, 1.3, 2):
            value = min(20.0, getattr(question, field) * factor)
            better = replace(question, **{field: round(getattr(question, field) * factor) if field == "users" else value})
            found = {one.method: one.rank for one in plan(better).predictions}
            assert all(found[name] <= rank for name, rank in last.items()), (field, factor)
            last = found
        if field == "users" or question.epsilon < 6:  # a report of more can tell no more
            assert all(found[name] < rank for name, rank in before.items())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"statistic": "median"}, "statistic must be one of mean, frequencies, words, hot, got 'median'"),
        ({"users": 0}, "users must lie in [1, 1e+09], got 0"),
        ({"users": 2.5}, "users must be a whole number, got 2.5"),
        ({"epsilon": math.nan}, "epsilon must lie in [0.0001, 20], got nan"),
        ({"target": "window", "periods": 3}, "window must be at most the periods, 3, got 7"),
    ],
)
def test_a_question_is_refused_in_one_line(options, message):
    with pytest.raises(ParameterError) as refused:
        Question(**options)
    assert str(refused.value) == message


@pytest.mark.parametrize("case", CASES)
def test_the_command_of_the_best_is_one_that_its_notebook_takes(case):
    command = plan(CASES[case]).predictions[0].command.partition("#")[0].split()
    assert command[:2] == ["evolvingdp", "run"]
    parameters = command[3:]
    overrides = dict(zip(parameters[1::3], parameters[2::3], strict=True))
    params_of(command[2]).make("quick", overrides)


def test_the_help_names_each_statistic_and_no_other():
    help = CliRunner().invoke(main, ["plan", "-h"]).output
    assert tuple(re.findall(r"(\w+) \(", help.split("STATISTIC: ")[1].split("\n\n")[0])) == STATISTICS


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("mean --window 7", "window is for the target window; add --target window, or leave it away, got 7"),
        ("mean --items 1000", "items is for frequencies and hot; leave it away for mean, got 1000"),
        ("frequencies --ordinary .1", "ordinary is for hot; leave it away for frequencies, got 0.1"),
        ("hot --changes 2", "changes is for mean and frequencies; leave it away for hot, got 2"),
        ("mean --changes 400", "changes must be fewer than the periods, at most 364, got 400"),
        ("mean --users 10 --users 20", "--users may be given once, got it 2 times"),
    ],
)
def test_what_decides_nothing_is_refused_by_its_name(typed, said):
    """Also where it is the default: somebody who types it thinks that it matters."""
    done = CliRunner().invoke(main, ["plan", *typed.split()])
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"Error: {said}")


@pytest.mark.parametrize("statistic", STATISTICS)
def test_what_a_question_is_said_not_to_use_changes_no_answer(statistic):
    question = Question(statistic, "curator", users=10**6, periods=9, delta=1e-6)
    others = {"readings": 2, "changes": 1, "change": 0.2, "share": 0.3, "items": 50, "length": 4, "events": 3}
    unused = 0
    for name, value in (others | {"taking_part": 2, "ordinary": 0.005, "window": 3}).items():
        try:
            check_used(question, {name})
        except ParameterError:
            both = (question, replace(question, **{name: value}))
            one, other = ([each.rank for each in plan(each).predictions] for each in both)
            assert one == other, name
            unused += 1
    assert unused >= 4


@pytest.mark.parametrize("number", ["1,2", "0,123"])
def test_a_comma_that_separates_no_thousands_is_no_number(number):
    done = CliRunner().invoke(main, ["plan", "mean", "--epsilon", number])
    assert (done.exit_code, f"{number!r} is no number" in done.stderr) == (2, True)


def test_the_command_line_prints_the_answer_and_says_it_to_machines():
    arguments = ["plan", "mean", "--users", "500_000", "--periods", "365"]
    shown = CliRunner().invoke(main, arguments)
    assert shown.exit_code == 0
    assert shown.output.strip() == text(plan(TELEMETRY)).strip()
    assert "0.029" in shown.output
    assert max(map(len, shown.output.splitlines())) <= 92  # of the book's column
    pooled = [*arguments, "--target", "cumulative", "--json", "--error", "0.01"]
    told = json.loads(CliRunner().invoke(main, pooled).output)
    assert told["question"]["users"] == 500_000
    assert {one["method"] for one in told["predictions"]} >= {"each user once"}
    assert all(one["standard_error"] > 0 for one in told["predictions"])
    assert told["reached"]
    refused = CliRunner().invoke(main, ["plan", "mean", "--window", "9", "--periods", "3", "--target", "window"])
    assert (refused.exit_code, refused.output) == (2, "Error: window must be at most the periods, 3, got 9\n")


def test_every_method_that_predicts_can_be_compared_with_its_protocol():
    """`make planner` compares them all; what has no error, an alarm, is compared by what is found."""
    assert {method.name for method in METHODS if method.statistics != ("hot",)} == set(TRUTHS)


@pytest.mark.parametrize(
    ("name", "question", "runs"),
    [
        ("every user in every period", Question(users=1500, periods=6, epsilon=9.0, share=0.2), 150),
        ("each user once", Question(users=1500, periods=6, epsilon=3.0, share=0.1, target="window", window=3), 150),
        ("each user once, changes found afterwards", Question(users=3000, periods=20, epsilon=2.0, change=0.4), 60),
        (
            "each user once",
            Question("frequencies", users=1000, periods=5, epsilon=3.0, items=4, share=0.3),
            120,
        ),
        (
            "each user once, with a reserve that is called at a change",
            Question(users=3000, periods=20, epsilon=2.0, change=0.4, changes=1),
            60,
        ),
        ("each user once, changes found afterwards", Question(users=150, periods=40, epsilon=4.0, change=0.4), 250),
        (
            "each user once, changes found as they come",
            Question("frequencies", users=150, periods=40, epsilon=4.0, items=3, share=0.3, change=0.4),
            250,
        ),
        (
            "every user in every period, shuffled",
            Question(trust="shuffler", users=1500, periods=6, epsilon=4.0, share=0.2),
            150,
        ),
        (
            "each user once, shuffled",
            Question("frequencies", "shuffler", users=2500, periods=3, epsilon=0.5, items=4, share=0.3),
            120,
        ),
        (
            "TreeHist",
            Question("words", "nobody", "report", users=200_000, periods=1, epsilon=3.0, share=0.05, length=3),
            60,
        ),
        (
            "stable histogram",
            Question("words", "curator", users=3000, periods=4, readings=3, target="cumulative", epsilon=2.0, share=0.1),
            500,
        ),
        (
            "stable histogram, once at the end",
            Question("words", "curator", users=10_000, periods=6, target="cumulative", epsilon=1.0, share=0.02),
            300,
        ),
        (
            "stable histogram",
            Question("words", "curator", "period", users=3000, periods=9, target="window", window=2, epsilon=0.5, share=0.1),
            500,
        ),
        (
            "each user once, changes found afterwards",
            Question(users=3000, periods=20, epsilon=2.0, change=0.4, target="window", window=5),
            800,
        ),
        (
            "each user once, changes found as they come",
            Question("frequencies", users=1500, periods=24, epsilon=4.0, items=3, share=0.3, target="window", window=6),
            250,
        ),
        (
            "each user once, with a reserve that is called at a change",
            Question(users=3000, periods=20, epsilon=2.0, change=0.4, changes=1, target="window", window=7),
            200,
        ),
        ("running sums, the best tree", Question(trust="curator", delta=0.0, periods=60, target="cumulative"), 400),
        ("THRESH, tuned", Question(users=10_000, periods=16, epsilon=6.0, readings=50_000, change=0.1), 250),
        ("THRESH, tuned", Question(users=10_000, periods=20, epsilon=8.0, readings=20_000, changes=2, change=0.2), 250),
        ("THRESH, tuned", Question(users=5_000, periods=12, epsilon=8.0, readings=4_900, changes=1, change=0.1), 250),
    ],
)
def test_a_prediction_is_the_error_of_the_protocol_user_by_user(name, question, runs):
    """Within 10 %: a prediction that is 15 % off fails, and so does one for other data."""
    method = of(name, question)
    settings, predicted, question = settled(method, question), error(name, question), method.less(question)
    squares = np.concatenate([np.square(TRUTHS[name](question, settings, 40_000 + run)[:, 0]) for run in range(runs)])
    assert math.sqrt(np.nanmean(squares)) == pytest.approx(predicted, rel=0.1)


@pytest.mark.parametrize("online", [False, True])
def test_a_window_of_one_stretch_has_what_its_pairs_of_periods_share(online):
    """By hand, two periods of four: 1/4 of all reports each; or all that came, then half of them, a third, a quarter."""
    question = Question(users=100, periods=4, changes=0, target="window", window=2)
    same, next_to = {False: (1 / 4, 2 / 4), True: (25 / 12 / 4, 13 / 12 / 3)}[online]  # of pairs, in one order or in both
    assert local.weight_of_a_period(question, online) == pytest.approx((2 * same + next_to) / 4)
    assert local.weight_of_a_period(replace(question, target="period"), online) == pytest.approx(same)


@pytest.mark.parametrize("unit", ["report", "period", "user"])
def test_a_curator_shows_the_words_that_a_histogram_finds_with_95_percent(unit):
    """Of all readings a word has the share that is stated, or a tenth less; which of them count is drawn."""
    question = Question("words", "curator", unit, users=20_000, periods=5, readings=2, target="cumulative")
    method, rng = of("stable histogram", question), stream(0, unit)
    settings, found = settled(method, question), expected(method, question).found_from
    everything, count = question.users * question.readings * question.pooled, counted(question)
    rates = []
    for factor in (1.0, 0.9):
        holders = round(factor * found * everything)
        held = rng.hypergeometric(holders, everything - holders, count, size=4000)
        rates.append(np.isfinite(settings.noisy(held, rng)).mean())
    assert rates[0] == pytest.approx(0.95, abs=0.02)  # six standard errors, and a weight is whole
    assert rates[1] < 0.85


def test_a_curator_s_words_cost_no_more_than_what_a_unit_is_counted_in():
    """A report is in each of the windows that hold it, a user's readings in all answers."""
    question = Question("words", "curator", users=10_000, periods=12, readings=4, target="window", window=3, epsilon=0.7)
    for unit, answers in (("report", 3), ("period", 3), ("user", 12)):
        asked_for = replace(question, unit=unit)
        made = settled(of("stable histogram", asked_for), asked_for)
        both = [histogram(0.7, 1e-9, answers, 27**6, kind=kind) for kind in ("stable", "stable gaussian")]
        assert made in both
        assert made.error(1, 0.1) == min(one.error(1, 0.1) for one in both)


@pytest.mark.parametrize("unit", ["report", "period", "user"])
def test_a_curator_who_shows_words_once_at_the_end_pays_for_one_answer(unit):
    """What is replaced moves two words by one: noise of scale 2 at epsilon 1, and a threshold of 1 + 2 ln(1 / delta)."""
    question = Question("words", "curator", unit, users=10_000, target="cumulative")
    best = plan(question).predictions[0]
    assert best.method == "stable histogram, once at the end"
    assert "horizon=1," in best.settings
    assert best.found_from * counted(question) < 1 + 2 * math.log(1e9) + 4 * math.log(20)


def test_a_search_predicts_that_the_reports_of_a_word_s_holders_vary_more():
    """Of a holder's reports half support the word, of others' one in twenty; and who is dealt to the last level varies."""
    search = Question("words", users=300_000, periods=1, unit="report", epsilon=3.0, share=0.2, length=6)
    settings = settled(of("TreeHist", search), search)
    space, users = geometry(3.0, settings.width), settings.leaf_share * 300_000
    keep = space.share * math.exp(3) / (1 + space.share * math.expm1(3))
    for held in (0.2, 0.001):
        variance = held * keep * (1 - keep) + (1 - held) * space.share * (1 - space.share)
        reports = math.sqrt(users * variance) / (keep - space.share) / settings.leaf_share
        dealt = math.sqrt(held * 300_000 * (1 / settings.leaf_share - 1))
        assert error("TreeHist", replace(search, share=held)) == pytest.approx(math.hypot(reports, dealt) / 300_000)
    assert 0.5 < keep < 0.57
    assert space.share < 0.06


ALARMS = ("ThresholdMonitor", "StableMonitor", "AboveThreshold, repeated", "a histogram in every period")


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_finds_what_it_says_and_not_what_is_a_tenth_smaller(name):
    question = Question("hot", "curator", users=3000, periods=10, epsilon=1.0, delta=1e-6, items=10, events=2)
    method = of(name, question)
    settings, found = settled(method, question), expected(method, question).found_from
    assert found is not None
    sizes = [round(factor * found * question.users) for factor in (1.05, 0.85)]
    rates = [np.mean([all_found(question, settings, size, 7919 * run) for run in range(150)]) for size in sizes]
    assert rates[0] > 0.95 > rates[1]


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_is_silent_where_all_items_are_ordinary(name):
    """Uniform data, nothing hot: but for 2.5 %, in all periods and items together; and no lower than what is ordinary."""
    question = Question("hot", "curator", users=2000, periods=10, epsilon=1.0, delta=1e-6, items=20, events=2)
    settings, alarms = settled(of(name, question), question), 0
    for run in range(60):
        rng, held = stream(0, "ordinary", name, run), stream(0, "held", run).integers(0, 20, (10, 2000))
        alarms += any(len(told) for told in told_of(settings, held, 20, rng))
    assert binomtest(alarms, 60, 0.025, alternative="greater").pvalue > ALPHA
    few = settled(of(name, question), replace(question, ordinary=0.0))
    assert few.threshold < settings.threshold
    assert name != "StableMonitor" or few.threshold >= few.noise.limit
    assert expected(of(name, question), question).rank > expected(of(name, question), replace(question, ordinary=0.0)).rank


def told_of(settings, held, items, rng):
    """What is reported in each period."""
    if isinstance(settings, ThresholdMonitorEvolving):
        return solve(settings, held, items, rng)
    state, told = settings.start(rng if hasattr(settings, "crossing") else len(held[0])), []
    for inputs in held:
        more = (items,) if hasattr(settings, "crossing") else ()
        state, found = settings.step_elements(state, inputs, *more, rng) if more else settings.step(state, inputs, rng)
        told.append(found)
    return told


@pytest.mark.parametrize("more", [
    {}, {"items": 2**32}, {"ordinary": 0.0, "items": 10}, {"periods": 1, "taking_part": 1, "events": 100, "items": 2**40},
    {"periods": 10_000, "taking_part": 1, "events": 300}, {"users": 20_000, "taking_part": 100, "events": 10},
    {"items": 2**32, "ordinary": 0.0, "events": 1}, {"items": 2**40, "ordinary": 0.0, "events": 3},
    {"items": 2**40, "ordinary": 0.0, "events": 2, "periods": 52}, {"users": 1000, "epsilon": 8.0},
    {"users": 50_000, "periods": 52, "taking_part": 10, "events": 2000, "items": 2**32},
])  # fmt: skip
def test_no_method_with_the_same_guarantee_finds_smaller_groups_than_the_first_that_is_named(more):
    """Every law, of a list or of what is held, one counter or one a user, a histogram in every period, and periods joined by
    twos; where counts and noise are drawn out one by one, not rounded."""
    question = Question("hot", "curator", **{"users": 1_000_000, "delta": 1e-6} | more)
    epsilon, delta, users, events = question.epsilon, question.failure, question.users, question.events
    counts = np.arange(min(users, math.ceil(users * question.usual + 12 * math.sqrt(users * question.usual)) + 60) + 1.0)
    chances = binom.pmf(counts, users, question.usual)

    def lowest(sf, least, periods, held):
        law = np.where(counts > 0, chances, 0.0) if held else chances
        rare = 0.025 / periods / question.items
        low, high = 0.0, 1e8
        while high - low > 1e-4 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if law @ sf(middle - counts) <= rare else (middle, high)
        return max(high, least if held else 0.0)

    def sizes(periods):
        each, paid = question.taking_part, min(question.taking_part, periods)
        scale = smallest_scale(epsilon, delta, each)
        outer = Laplace(scale), DiscreteLaplace(scale), MonitorNoise(scale / 10, 2.4)

        def monitor(noise, least=None):
            threshold = lowest(noise.sf, least, periods, least is not None)
            threshold = math.ceil(threshold) if isinstance(noise, DiscreteLaplace | IntegerNoise) else threshold
            return threshold - noise.lower_quantile(0.025 / events)

        def stable(kind):
            noise = stable_monitor(epsilon, delta, each, periods, kind).noise
            return monitor(noise, noise.limit)

        def above(made):
            made = replace(made, threshold=lowest(made.crossing, made.threshold, periods, made.stable))
            return made.error(events, 0.05)

        def every(kind):
            made = histogram(epsilon, delta, periods, question.items, kind=kind)
            threshold = lowest(made.noise.sf, made.threshold, periods, made.stable)
            return threshold - made.noise.lower_quantile(0.025 / events)

        rivals = {type(noise).__name__: partial(monitor, noise) for noise in outer}
        rivals["normal"] = lambda: monitor(Gaussian(smallest_moved_scale(epsilon, delta, paid, periods)))
        rivals |= {f"stable, {kind}": partial(stable, kind) for kind in NOISES}
        rivals |= {f"histogram, {kind}": partial(every, kind) for kind in HISTOGRAMS}
        size = epsilon, delta, events
        searches = {(kind, split): {"kind": kind, "split": split} for kind in KINDS[:2] for split in SPLITS}
        searches["gaussian",] = {"kind": "gaussian", "moved": 2 * periods}
        rivals |= {
            " ".join(map(str, name)): lambda how=how: above(AboveThreshold.calibrated(*size, 0.0, **how))
            for name, how in searches.items()
        }
        rivals |= {
            f"one, stable, {split}": lambda split=split: above(AboveThreshold.stable_one(*size, 2 * periods, split=split))
            for split in SPLITS
        }
        return rivals | {"gaussian, stable": lambda: above(AboveThreshold.stable_gaussian(*size, 2 * periods))}

    best = plan(question).predictions[0]
    rivals = sizes(question.periods)
    if question.periods > 1:  # of two periods a user takes part in one, drawn by lot: half of them are seen
        joined = sizes(question.periods // 2)
        rivals |= {
            f"joined, {name}": lambda name=name: 2 * joined[name]() for name in ("normal", "stable, gaussian", "Laplace")
        }
    assert better(best.found_from * users, rivals, by=0.02) == {}


@pytest.mark.parametrize(("users", "periods", "epsilon"), [(381, 5, 4.6), (220, 10, 5.5), (2000, 4, 1.0)])
def test_a_cut_is_worked_out_for_few_users_whose_supports_are_skewed(users, periods, epsilon):
    question = Question("hot", users=users, periods=periods, epsilon=epsilon, items=8, events=3)
    method = of("each user once, and a cut", question)
    settings, found = settled(method, question), expected(method, question).found_from
    sizes = [round(factor * found * users) for factor in (1.15, 0.85)]
    rates = [np.mean([all_found(question, settings, size, 7919 * run) for run in range(400)]) for size in sizes]
    assert rates[0] > 0.975 > rates[1]


@pytest.mark.parametrize(
    ("statistic", "trust", "name"),
    [
        ("mean", "nobody", "every user in every period"),
        ("frequencies", "nobody", "every user in every period"),
        ("mean", "curator", "fresh Laplace noise in every period"),
    ],
)
def test_the_sentence_of_a_guarantee_counts_the_reports_that_the_error_counts(statistic, trust, name):
    """300 readings of .5 each cost 150, when a report is what epsilon is for, and their error is that of all of them."""
    question = Question(statistic, trust, "report", users=10**5, periods=30, epsilon=0.5, readings=10, changes=0, delta=0.0)
    told = {one.method: one for one in plan(question).predictions}[name]
    assert told.guarantee.endswith("one report; of all periods together it is 150")
    once = replace(question, readings=1)
    assert error(name, once) / error(name, question) == pytest.approx(10 if trust == "curator" else math.sqrt(10), rel=0.01)
    for unit, together in (("period", "it is 15"), ("user", "the same")):
        answer = plan(replace(question, unit=unit))
        assert next(one for one in answer.predictions if one.method == name).guarantee.endswith(f"together {together}")


@pytest.mark.parametrize(("readings", "periods"), [(10, 30), (10, 1), (1, 30)])
def test_what_a_report_s_delta_says_of_a_user_holds_for_gaussian_noise(readings, periods):
    """Noise that has (epsilon, delta) for a report: the stated bound holds for all of a user's reports."""
    whole, failure = accounting.together(0.5, 1e-6, readings, periods)
    mu = accounting.gaussian_mu(0.5, 1e-6) * readings * math.sqrt(periods)
    assert accounting.delta_of_gaussian(mu, whole) <= failure < 0.01
    assert whole == 0.5 * readings * periods
    if readings > 1 and periods > 1:  # the number of periods alone says something false
        assert accounting.delta_of_gaussian(mu, 0.5 * periods) > 0.5


def test_a_shuffler_s_sentence_has_the_delta_of_all_reports_or_says_that_nothing_is_left():
    question = Question(
        trust="shuffler", unit="report", users=10**5, periods=30, epsilon=0.5, readings=10, changes=0, delta=1e-6
    )
    name = "every user in every period, shuffled"

    def told(question):
        return next(one.guarantee for one in plan(question).predictions if one.method == name)

    assert "of all periods together it is (150, 0.0069)" in told(question)  # 30 * 1e-6 * (e^5 - 1) / (e^.5 - 1), upwards
    assert "together no bound below 1 is left" in told(replace(question, readings=100))
    assert "of all periods together it is (15, 3e-05)" in told(replace(question, unit="period"))


def test_the_moving_mean_has_its_changes_and_stays_within_its_range():
    question = Question(periods=40, changes=5, change=0.3, share=0.9)
    means = local.moving(question, stream(3, "test"))
    assert means[0] == 0.9
    assert np.count_nonzero(np.diff(means)) == 5
    assert np.allclose(np.abs(np.diff(means)[np.diff(means) != 0]), 0.3)
    assert means.min() >= 0
    assert means.max() <= 1


def test_a_search_for_users_or_epsilon_draws_no_places_of_changes_and_no_lots_again():
    """They took a tenth of the processor that an answer with `--error` needed."""
    question, more = Question(periods=52), Question(periods=52, users=200_000, epsilon=2.0)
    once = [settled(of("each user once, changes found afterwards", one), one) for one in (question, more)]
    first, second = local._told(question, once[0], 9), local._told(replace(question, epsilon=2.0), once[0], 9)
    assert first[2] is second[2]
    before = local._streams.cache_info().misses
    local._told(more, once[1], 9)
    assert local._streams.cache_info().misses == before


def test_a_long_horizon_has_stretches_that_are_short_beside_a_change():
    """Each of one share, and of fewer than 1,000 periods each is one by itself."""
    for periods, runs in ((900, 3), (10_000, 5)):
        shares = np.array(
            [local.moving(Question(periods=periods, changes=4), stream(run, "moves")) for run in range(runs)]
        ).T
        for placed, share in zip(local.stretches(shares).T, shares.T, strict=True):
            begins = np.flatnonzero(np.diff(placed, prepend=-1))
            assert np.array_equal(np.unique(placed), np.arange(len(begins)))
            assert np.array_equal(share[begins][placed], share)
            lengths = np.diff(begins, append=periods)
            assert lengths.max() == (1 if periods < 1000 else 20)
            change = np.flatnonzero(np.diff(share))[0] + 1
            assert (np.bincount(placed)[placed[change - 20 : change + 20]] == 1).all()


@pytest.mark.parametrize("follow", ["hindsight", "online", "reserve"])
def test_stretches_are_searched_with_the_penalty_of_all_periods(follow):
    """Of 41 series whose means step up, 0 to .4, the more are seen to, the fewer periods their 20 stretches stand for."""
    steps = np.linspace(0, 0.4, 41)
    told, reports = 0.5 + np.repeat([0.0, 1.0], 10)[:, None] * steps, np.full((20, 41), 100.0)

    def seen(periods):
        settings = Reserve(10**6, periods, 1.0, 0)
        if follow == "reserve":
            found = reserve.follow(settings, told, reports, lambda place, _: told[place])
        else:
            found = detect_many(told, reports, settings.report, online=follow == "online", horizon=periods).estimates
        return np.isclose(found[-1], told[-1]).sum()

    assert 41 > seen(20) > seen(10_000) > 1


@pytest.mark.parametrize(("name", "users"), [("changes found as they come", 10**5), ("a reserve", 10**8)])
def test_stretches_have_the_error_of_their_periods(monkeypatch, name, users):
    question = Question(users=users, periods=2000)
    method = next(one for one in METHODS if name in one.name and one.trust == "nobody")
    found = expected(method, question, 60)
    monkeypatch.setattr(local, "stretches", lambda shares: np.arange(len(shares))[:, None] + np.zeros(shares.shape, int))
    monkeypatch.setattr(local, "_dealt", local._dealt.__wrapped__)
    monkeypatch.setattr(local, "_told", local._told.__wrapped__)
    exact = expected(method, question, 60)
    assert found.standard_error != exact.standard_error
    assert found.standard_error == pytest.approx(exact.standard_error, abs=4 * math.hypot(found.own_error, exact.own_error))
    assert math.hypot(found.own_error, exact.own_error) < 0.06 * exact.standard_error


def test_a_search_lists_words_from_where_it_is_said_to_find_them_and_hardly_any_that_nobody_holds():
    """Words that share no prefix of three letters: the plan of the best F1 found none of them at 40 % of this, where it was
    said to."""
    question = Question("words", users=100_000, periods=1, epsilon=2.0)
    method = of("TreeHist", question)
    settings, held = settled(method, question), round(expected(method, question).found_from * question.users)
    words = [letter * 6 for letter in "abcdefghij"] + [f"{first}{last * 5}" for first in "klmnop" for last in "qrstuvwxyz"]
    counts = np.append(np.full(10, held), np.full(60, (question.users - 10 * held) // 60))
    leaves, found, strangers = settings.tree.encode(words), 0, 0
    for run in range(20):
        listed = settings.draw_hashes(stream(run, "hashes")).simulate_search(leaves, counts, stream(run, "reports")).words
        found, strangers = found + listed.word.isin(words[:10]).sum(), strangers + (~listed.word.isin(words)).sum()
    assert settings.tree.depth == 2
    assert binomtest(found, 200, 0.95).pvalue > ALPHA
    assert strangers <= 8  # one is expected


def test_a_search_serves_at_any_epsilon_from_where_its_reports_end():
    """Local hashing ends at 10; who allows more sends a report of 10."""
    ten, more = (Question("words", users=10**6, periods=100, epsilon=epsilon) for epsilon in (10.0, 10.1))
    assert error("TreeHist", more) == error("TreeHist", ten)
    assert settled(of("TreeHist", more), more).epsilon == 10
    behind = Question("frequencies", "shuffler", "period", users=10**5, periods=12, epsilon=10.0, delta=1e-9)
    assert error("each user once, shuffled", replace(behind, epsilon=11.3)) == error("each user once, shuffled", behind)


@pytest.mark.parametrize("epsilon", [3.017954, 4.272241, 6.324109])
@pytest.mark.parametrize("users", [10_000, 1_000_000])
def test_a_search_finds_no_less_with_a_little_more_epsilon_at_which_reports_have_fewer_points(epsilon, users):
    """Behind a shuffler a report's epsilon is any; with round ones alone below it words were found from 6 % more users."""
    search = Question("words", users=users, periods=1)

    def found(epsilon):
        return found_from(local_search._tree_hist(replace(search, epsilon=epsilon)), users)

    assert geometry(epsilon, 1 << 14).points > 1.5 * geometry(epsilon + 1e-5, 1 << 14).points
    assert found(1.05 * epsilon) < found(1.003 * epsilon) <= found(epsilon)


@pytest.mark.parametrize(
    ("items", "epsilon", "sent"), [(2, 1.0, "one value"), (1000, 3.0, "a point"), (2**40, 13.0, "a hash")]
)
def test_what_a_user_sends_is_what_the_settings_report_is(items, epsilon, sent):
    question = Question("frequencies", users=10**6, periods=12, epsilon=epsilon, items=items)
    (told,) = (one for one in plan(question).predictions if one.method == "each user once")
    bits = settled(of("each user once", question), question).report.bits
    assert told.sends.startswith(sent)
    assert told.sends.endswith(f", {bits} bits, once" if bits > 1 else ", 1 bit, once")
