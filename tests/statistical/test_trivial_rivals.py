"""Recommendations against their trivial transformations, at the same guarantee, by what releases state."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache, partial
from itertools import combinations, pairwise

import numpy as np
import pytest
from rivals import better
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import pearson3

from evolvingdp.continual_mean import choosing, streams, windows
from evolvingdp.continual_mean.binary_mechanism import best_tree, calibrate
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.olh import OLH
from evolvingdp.core.reports import Hashed, Sign, best_report
from evolvingdp.core.seeds import stream
from evolvingdp.evolving.rivals import choosing as evolving
from evolvingdp.evolving.rivals import once, reserve
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.rivals.reserve import Reserve
from evolvingdp.evolving.streams import WordStream
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.heavy_hitters.binary_code import ReedMuller
from evolvingdp.heavy_hitters.shuffling import epsilon_of_a_report, hashed
from evolvingdp.notebooks.continual_mean.past_the_paper import Harmonic, OfTheMean
from evolvingdp.notebooks.continual_mean.which_one import apart
from evolvingdp.notebooks.evolving.choosing import random_means
from evolvingdp.planning import local
from evolvingdp.planning.planner import plan
from evolvingdp.planning.question import Question

N_USERS, MOST, STEPS, EPSILON = 1000, 512, 20_000, 2.0


def test_the_gate_names_who_is_better_and_takes_no_refusal_for_a_rival():
    def refuses():
        raise ValueError

    assert better(1.0, {"worse": lambda: 2.0, "a little better": lambda: 0.95, "refuses": refuses}) == {}
    assert better(1.0, {"better": lambda: 0.85, "not a number": lambda: math.nan}).keys() == {"better", "not a number"}
    with pytest.raises(LookupError, match="must have a rival that can be tried"):
        better(1.0, {"refuses": refuses})


def stated(settings, users, one_mean=False):
    """Root mean square of standard error and, but where users are taken to have `one_mean`, possible bias over the second
    half; values play no part."""
    release = settings.release(users, np.zeros(len(users), dtype=int), stream(0, "rivals", "noise"))
    late = slice(len(users) // 2, None)
    return math.sqrt(np.mean(release.standard_error[late] ** 2 + (0 if one_mean else release.bias[late] ** 2)))


def test_no_trivial_transformation_of_days_has_a_tenth_less_error():
    """A value a day, with the cap that is recommended without delta: other caps, for all days or for one, other noise, and
    the difference of running sums of days."""
    n_days, per_day = 64, 3
    before, users = (streams.arrivals("random", N_USERS, MOST, STEPS, stream(0, "rivals", "days", run)) for run in range(2))
    of_day = np.arange(STEPS) * n_days // STEPS
    cap = choosing.recommended(N_USERS, MOST, EPSILON, arrivals=before, horizon=STEPS).samples_per_user
    mean = UserMean(N_USERS, cap, EPSILON, horizon=STEPS, clip=True, excess="drop", integer=True)

    def error(settings, a_day):
        days = windows.Days(settings, n_days, a_day)
        told = [windows.START, *days.release(users, np.zeros(STEPS, dtype=int), of_day, stream(0, "rivals", "noise"))]
        ours = [days.between(*pair) for pair in pairwise(told)]
        return math.sqrt(np.mean([one.standard_error**2 + one.bias**2 for one in ours]))

    def of_running_sums():
        sums, each = best_tree(n_days), STEPS / n_days
        noise = calibrate(sums, EPSILON, 0.0, 1.0, integer=True, uses=min(cap, n_days * per_day))
        return math.sqrt(noise.variance * apart(sums, np.arange(n_days), np.arange(1, n_days + 1)).mean()) / each

    caps = {
        f"cap {share}": partial(error, mean.but(samples_per_user=round(share * cap)), per_day)
        for share in (0.5, 0.75, 1.5, 2)
    }
    a_day = {f"{count} a day": partial(error, mean, count) for count in (1, 2, 4, 6)}
    others = {"real noise": partial(error, mean.but(integer=False), per_day), "running sums": of_running_sums}
    assert better(error(mean, per_day), caps | a_day | others) == {}


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("order", streams.ORDERS)
@pytest.mark.parametrize("alike", [False, True])
def test_no_trivial_transformation_of_the_recommended_mean_has_a_tenth_less_error(alike, order, delta):
    """Also of `users_alike`, whose batches are at most a tenth of the horizon: what it states if users are alike."""
    before, users = (streams.arrivals(order, N_USERS, MOST, STEPS, stream(0, "rivals", order, run)) for run in range(2))

    def chosen(own_delta, **options):
        given = {"arrivals": before, "horizon": STEPS, "alike": alike} | options
        return choosing.recommended(N_USERS, MOST, EPSILON, own_delta, **given)

    def error(settings, sent=users):
        return stated(settings, sent, one_mean=settings.alike and alike)

    def of_the_mean():
        draft = OfTheMean(N_USERS, MOST, EPSILON, delta, horizon=STEPS, excess="drop", clip=True, alike=alike)
        np.testing.assert_allclose(Harmonic(900).coefficients(900) * np.arange(1, 901), 1.0, rtol=0.01)
        return error(choosing.searched(draft, before, {"decay": 1.0})[0])

    own = choosing.users_alike(N_USERS, MOST, EPSILON, delta, before, horizon=STEPS) if alike else chosen(delta)
    longest = STEPS // 10 if alike else STEPS
    batches = {by: min(longest, max(1, round(by * own.batch))) for by in (0.25, 0.5, 2, 4)}
    changes = {f"batch times {by}": {"batch": batch} for by, batch in batches.items()} | {"batch 1": {"batch": 1}}
    if own.delta:
        changes |= {f"reach times {by}": {"reach": by * own.norm} for by in (0.5, 0.8, 1.25, 2)}
        changes |= {f"decay to the {by}": {"decay": own.decay**by} for by in (0, 0.25, 0.5, 2, 4)}
    else:
        caps = {by: max(1, round(by * own.samples_per_user)) for by in (0.5, 0.8, 1.25, 2)}
        changes |= {f"cap times {by}": {"samples_per_user": cap} for by, cap in caps.items()}
        changes |= {f"a plain tree of base {base}": {"branching": base} for base in (2, 4, 16)}
        changes |= {"real noise": {"integer": False}}
    rivals = {name: lambda change=change: error(own.but(**change)) for name, change in changes.items()}
    rivals["others as the middle, or not"] = lambda: error(own.but(alike=not alike))
    rivals["chosen for others as the middle, or not"] = lambda: error(chosen(delta, alike=not alike))
    rivals["every second sample"] = lambda: math.hypot(
        error(own.but(batch=-(-own.batch // 2)), users[::2]), 0 if alike else 0.5
    )
    if delta:
        rivals["pure"] = lambda: error(chosen(0.0))
        rivals["the square root, chosen again"] = lambda: error(chosen(delta, decay=1.0))
        rivals["no batches, chosen again"] = lambda: error(chosen(delta, batch=1))
        rivals["1, 1/2, 1/3, ... as a filter, chosen again"] = of_the_mean
    assert better(error(own), rivals) == {}
    plain = UserMean(N_USERS, 2 * STEPS // N_USERS, EPSILON, delta, horizon=STEPS, excess="drop", alike=alike)
    if order == "random":  # the gate notices what was recommended once: samples one by one, for the worst order
        assert {"batch times 0.5", "batch times 2"} <= better(error(plain), rivals).keys()


def voted(settings, means, by):
    """Of THRESH in epochs `by` times as long; one whose bound is not proved states nothing."""
    if not math.isfinite(settings.error_bound):
        raise ValueError("nothing is proved")
    longer = means.reshape(-1, by, means.shape[1]).mean(axis=1) if by >= 1 else np.repeat(means, round(1 / by), axis=0)
    truth, held = (means, by) if by >= 1 else (longer, 1)
    bias, errors = evolving.voted(settings, longer)
    return evolving._error(np.repeat(longer + bias, held, axis=0) - truth, np.repeat(errors, held, axis=0))


@pytest.mark.parametrize(
    ("size", "changes", "options", "recommended"),
    [
        *(
            (size, changes, {"online": online}, "reserve" if online else "smoothed")
            for size, changes in (
                ((10**6, 64, 10**6, 1.0), 3),
                ((2 * 10**5, 120, 1, 2.0), 1),
                ((5 * 10**6, 40, 100, 4.0), 6),
            )
            for online in (False, True)
        ),
        ((10**6, 96, 10**6, 1.0), 2, {"online": True, "promised": True}, "reserve"),
        ((10**6, 96, 10**6, 8.0), 1, {"online": True, "promised": True}, "tuned"),
    ],
)
def test_no_trivial_transformation_of_the_recommended_protocol_has_a_tenth_less_error(
    size, changes, options, recommended, monkeypatch
):
    """Batched, with fewer users, another report, other crews, votes, thresholds or estimates, or another method: the
    geometric mean of what is stated for all streams. What has a larger regret is no rival, as `choose` would not risk it; of
    a promise the streams are drawn here."""
    (n_users, horizon, length, epsilon), online = size, options["online"]
    choice = evolving.choose(*size, changes=changes, **options)
    assert choice.method == recommended
    kinds, limit = evolving.streams(horizon, changes), choice.regret[recommended] * (1 + 1e-9)
    least = {name: min(each[name] for each in choice.predicted.values()) for name in choice.predicted[recommended]}
    if "promised" in options:
        drawn = [random_means(horizon, changes, stream(0, "promised", run)) for run in range(20)]
        kinds, limit, least = {evolving.PLANNED: drawn}, math.inf, {evolving.PLANNED: 1.0}
    one, own = Once(n_users, horizon, epsilon), choice.settings[recommended]

    def mean(method, settings, one=one, by=1, spare=reserve.SPARE):
        def error():
            with monkeypatch.context() as changed:
                changed.setattr(reserve, "SPARE", spare)
                made, tables = settings(), {name: np.array(means).T for name, means in kinds.items()}
                if method == "tuned":
                    errors = {name: voted(made, means, by).mean() for name, means in tables.items()}
                else:
                    errors = {
                        name: evolving._errors(method, made, means, one, online).mean() for name, means in tables.items()
                    }
            if max(errors[name] / least[name] for name in kinds) > limit:
                raise ValueError("its largest regret is larger")
            return float(np.exp(np.mean(np.log(list(errors.values())))))

        return error

    def votes(by=1, spare=0, planned=changes, **other):
        return Thresh.tuned(n_users, round(horizon / by), round(by * length), epsilon, changes=planned, spare=spare, **other)

    def spent(cap=1.0, vote=1.0, **other):
        """Other votes, and what is left for estimates."""
        plan = votes()
        cap, vote = round(cap * plan.vote_cap), vote * plan.vote_epsilon
        left = {"estimate_epsilon": (epsilon - 2 * cap * vote) / plan.estimate_cap}
        return replace(plan, vote_cap=cap, vote_epsilon=vote, **(left | other))

    half, sign = Once(n_users // 2, horizon, epsilon), Once(n_users, horizon, epsilon, report=Sign(2, epsilon))
    tried = {
        "half of the users": mean("detected", lambda: half, half),
        "signs": mean("detected", lambda: sign, sign),
        "averages": mean("detected", lambda: one),
        "votes for half of the users": mean("tuned", lambda: Thresh.tuned(n_users // 2, *size[1:], changes=changes)),
    }
    for every in (1, 3, 7, horizon):
        tried[f"batches of {every}"] = mean("once", lambda every=every: Once(n_users, horizon, epsilon, every=every))
    for spare in (0, 1, 2):
        tried[f"votes, {spare} estimates to spare"] = mean("tuned", lambda spare=spare: votes(spare=spare))
    for by in (0.5, 2, 4):
        tried[f"epochs times {by}"] = mean("tuned", lambda by=by: votes(by), by=by)
        tried[f"thresholds times {by}"] = mean("tuned", lambda by=by: spent(unit=by * votes().unit))
        tried[f"votes times {by}"] = mean("tuned", lambda by=by: spent(cap=by))
        tried[f"epsilon of a vote times {by}"] = mean("tuned", lambda by=by: spent(vote=by))
        tried[f"votes planned for {by} times the changes"] = mean("tuned", lambda by=by: votes(planned=round(by * changes)))
    if online:
        for crews, steady in ((0, 0.75), (2 * changes, 0.75), *((changes, steady) for steady in (0.5, 0.6, 0.75, 0.85))):
            waiting = Reserve(n_users, horizon, epsilon, crews, steady=steady)
            tried[f"{crews} crews, {steady} steady"] = mean("reserve", lambda waiting=waiting: waiting)
        for spare in (1, 2, 16):
            tried[f"a spare crew of 1/{spare}"] = mean(
                "reserve", lambda: Reserve(n_users, horizon, epsilon, changes), spare=spare
            )
        for report in (Sign(2, epsilon), Hashed(2, epsilon)):
            waiting = Reserve(n_users, horizon, epsilon, changes, report=report)
            tried[type(report).__name__] = mean("reserve", lambda waiting=waiting: waiting)
    else:
        tried["half, smoothed"] = mean("smoothed", lambda: half, half)
    tried["itself"] = mean(recommended, lambda: own)
    assert better(tried["itself"](), tried) == {}
    limit, worse = math.inf, {"tuned": lambda: spent(unit=2 * own.unit)}
    worse["reserve"] = lambda: replace(own, steady=0.1, changes=8 * changes)
    worsened = mean(recommended, worse.get(recommended, lambda: half))
    assert better(worsened(), tried)  # twice the thresholds, many crews and few who do not wait, half of the users


WATCHED, RUNS = 2, 40  # the place of the word that is followed; streams of a setting


def tallies(question, settings):
    """The share of the word in each period, and what users report, of streams whose changes are at random places."""
    for run in range(RUNS):
        share = local.moving(question, stream(0, "watched", run))
        others = np.arange(question.items, 0, -1.0)
        others[WATCHED] = 0
        laws, which = np.unique(share, return_inverse=True)
        table = np.outer(1 - laws, others / others.sum())
        table[:, WATCHED] = laws
        data = WordStream.make([settings.n_users], table, which[None], 1)
        yield share, once.simulate(settings, data, stream(0, "watched", "noise", run))


def last(length, online):
    """The mean of so many periods: fixed ones, or online the last."""

    def followed(settings, tally):
        told = np.nan_to_num(settings.estimates(tally)[:, WATCHED]) * tally.reports
        sums, held = (np.cumsum(np.pad(each, (1, 0))) for each in (told, tally.reports))
        after = np.arange(1, settings.horizon + 1)
        begin = np.maximum(0, after - length) if online else (after - 1) // length * length
        end = after if online else np.minimum(begin + length, settings.horizon)
        return (sums[end] - sums[begin]) / (held[end] - held[begin])

    return followed


@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize(("users", "periods", "items", "epsilon", "changes", "share"), [
    (10**6, 60, 20, 2.0, 2, 0.05), (10**6, 60, 20, 2.0, 2, 0.01), (3 * 10**6, 90, 12, 1.0, 0, 0.02),
])  # fmt: skip
def test_no_plain_average_of_a_watched_word_has_a_tenth_less_error(users, periods, items, epsilon, changes, share, online):
    """`Once.detect` of one word of a list, which the planner recommends, by its mean absolute error: a false change, of one
    stream in twenty, weighs much in squares. In the second setting a change is 1.4 standard
    errors of a period, and hardly found: there, online, a mean of the last 4 to 8 periods may have a fifth less, as it knows
    from data how long it should be."""
    size = {"users": users, "periods": periods, "items": items, "epsilon": epsilon, "changes": changes}
    question = Question("frequencies", **size, share=share, change=share)
    own, half = (
        Once(n, periods, epsilon, items, report=best_report(items, epsilon, 256, share)) for n in (users, users // 2)
    )
    told = {one.method: one.settings for one in plan(question).predictions[:2]}
    assert set(told) == {"each user once, changes found afterwards", "each user once, changes found as they come"}
    assert set(told.values()) == {repr(own)}
    all_told, half_told = list(tallies(question, own)), list(tallies(question, half))

    def error(followed, settings=own, streams=all_told):
        return float(np.mean([np.abs(followed(settings, tally) - truth).mean() for truth, tally in streams]))

    def detected(settings, tally, words=(WATCHED,)):
        looked = None if words is None else np.array(words)
        return settings.detect(tally, words=looked, online=online).estimates[:, WATCHED]

    lengths = {1, 2, 3, 4, 6, 8, 12, 16, 24, periods // 2, periods // (changes + 1), periods}
    rivals = {f"{length} periods": partial(error, last(length, online)) for length in lengths}
    rivals["half of the users"] = lambda: error(detected, half, half_told)
    rivals["all words together"] = lambda: error(partial(detected, words=None))
    rivals["itself"] = lambda: error(detected)
    hardly = online and share < 0.02
    assert better(rivals["itself"](), rivals, 0.2 if hardly else 0.1) == {}
    assert "itself" in better(rivals["half of the users"](), rivals)


CANDIDATES = 15e6  # that a server asks for at one level
BUCKETS = 1024  # that words are hashed to


def found_from(users, epsilon, levels, kept=200, oracle=OLH):
    """How many users a word has that passes all levels with 95 %, where .05 words that nobody holds are expected.

    `levels`: the share of the users who report to each, with `epsilon`, and how many children each of its nodes has, of
    which `kept` pass by chance above the last.
    """
    survivors, passed = 1.0, []
    for place, (share, fan) in enumerate(levels):
        asked = survivors * fan
        if asked > CANDIDATES:
            raise ValueError("more candidates than a server can ask for")
        size, rare = (
            oracle(epsilon).standard_error(users * share) / share,
            (kept if place < len(levels) - 1 else 0.05) / asked,
        )
        other = oracle(epsilon).other
        skew = (1 - 2 * other) / math.sqrt(users * share * other * (1 - other))  # of how many reports support a word
        cut = size * max(2.0, pearson3.isf(min(0.5, rare), skew))
        passed.append((cut, size, 1 / share - 1))
        survivors = asked * pearson3.sf(cut / size, skew) + users / cut

    def lost(held):
        each = [ndtr((held - cut) / math.sqrt(size**2 + held * more)) for cut, size, more in passed]
        return 0.95 - math.prod(each)

    if lost(users) > 0:
        raise ValueError("no word is found")
    return brentq(lost, 1, users)


def trees(length):
    return [np.diff((0, *cuts, length)) for parts in range(4) for cuts in combinations(range(1, length), parts)]


def dealt(depth):
    """The shares of levels: as many at each but the last, or at each half of the next one's."""
    leaf = (0.3, 0.45, 0.6, 0.7, 0.8, 0.9, 0.97)
    even = [[*[(1 - last) / (depth - 1)] * (depth - 1), last] for last in leaf] if depth > 1 else [[1.0]]
    halves = 2.0 ** np.arange(depth)
    return [*even, list(halves / halves.sum()), [1 / depth] * depth]


def decoded(length):
    """How many standard errors of a bit's difference a word needs, so that its bucket is decoded with 95 %."""
    code, rng = ReedMuller.least((26**length - 1).bit_length()), stream(0, "rivals", "code")
    noise = rng.normal(size=(400, code.length))
    wrong = lambda ratio: np.mean(code.decode(noise + ratio) != 0) - 0.05  # noqa: E731
    return next(ratio for ratio in np.arange(0.1, 4.0, 0.05) if wrong(ratio) <= 0), code.length


def searches(users, epsilon, length, one, split):
    """Plain searches: other trees, users and reports, everybody at every level, words read from buckets. `one`: the epsilon
    of a report, and by how many reports of a user it is `split`."""
    signs = partial(OLH, values=2)

    def best(trees, **more):
        def error():
            found = [math.inf]
            for steps in trees:
                for shares in dealt(len(steps)):
                    levels = list(zip(shares, 26.0**steps, strict=True))
                    try:
                        found.append(found_from(users, one, levels, **more))
                    except ValueError:
                        continue
            return min(found)

        return error

    def each(steps):
        return found_from(users, split(len(steps)), [(1.0, 26.0**step) for step in steps])

    def bits(last):
        """A bucket and a bit of the word's codeword, or another list; then a list of what buckets say."""
        ratio, groups = decoded(length)
        size = signs(one).standard_error((1 - last) * users) * math.sqrt(groups) / (1 - last)
        return max(ratio * size, found_from(users, one, [(last, BUCKETS)]))

    rivals = {f"{len(steps)} levels, {steps}": best([steps]) for steps in trees(length)}
    rivals |= {f"{kept} kept": best(trees(length), kept=kept) for kept in (20, 2000)}
    rivals |= {"signs": best(trees(length), oracle=signs)}
    rivals |= {f"everybody at every level, {steps}": partial(each, steps) for steps in trees(length)[1:]}
    rivals |= {f"Bitstogram, {last:.0%} final": partial(bits, last) for last in (0.2, 0.3, 0.5, 0.7)}
    return {name: cache(error) for name, error in rivals.items()}


@pytest.mark.parametrize(
    ("epsilon", "users", "length", "trust", "by", "before"),
    [(0.5, 10**6, 6, "nobody", 0.1, ((2, 2, 2), 0.9)), (2.0, 10**5, 5, "nobody", 0.1, ((1, 2, 2), 0.9)),
     (4.0, 10**6, 6, "nobody", 0.1, ((2, 2, 2), 0.8)), (2.0, 10**7, 8, "nobody", 0.1, ((2, 3, 3), 0.92)),
     (8.0, 10**6, 6, "nobody", 0.15, ((2, 2, 2), 0.5)), (0.05, 10**6, 6, "shuffler", 0.1, ((2, 2, 2), 0.8))],
)  # fmt: skip
def test_no_plain_search_finds_words_of_a_tenth_fewer_users_than_what_is_recommended(
    epsilon, users, length, trust, by, before
):
    """At epsilon 8 by .115, where a server asks each of a million reports about 15 million words: ours looks up a sketch
    of few points, in which words collide, as the page in depth says."""
    question = Question("words", trust, users=users, periods=1, epsilon=epsilon, length=length)
    own = plan(question).predictions[0].found_from * users

    def split(reports):
        """The epsilon of each of a user's reports."""
        if trust == "nobody":
            return epsilon / reports
        return epsilon_of_a_report(epsilon / reports, 1e-9 / reports, users, hashed, 10.0)

    rivals = searches(users, epsilon, length, split(1), split)
    assert better(own, rivals, by) == {}
    steps, last = before  # recommended once, for the best F1 under a power law
    shares = [*[(1 - last) / (len(steps) - 1)] * (len(steps) - 1), last]
    levels = list(zip(shares, [26.0**step for step in steps], strict=True))
    assert len(better(found_from(users, split(1), levels), rivals)) > 1
