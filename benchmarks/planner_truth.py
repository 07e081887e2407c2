"""What the planner's methods do, user by user: the errors that its predictions are compared with.

Each function returns errors of answers, one array a run, about what the same users' data say without privacy; or, of an
alarm, whether all hot items of a size were found. Data are drawn here, from streams that no prediction has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core.noise import Tape
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.reports import Report
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import thresh_protocol
from evolvingdp.evolving.rivals import once, reserve
from evolvingdp.evolving.rivals.reserve import Reserve
from evolvingdp.evolving.streams import BitStream, WordStream
from evolvingdp.heavy_hitters.pem import PEM
from evolvingdp.heavy_hitters.tree_hist import TreeHist
from evolvingdp.planning import changing, local
from evolvingdp.planning.planner import ROOMS, asked
from evolvingdp.planning.question import Question
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.histograms import Histogram
from evolvingdp.sparse_vector.shifting import Plan
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

Array = NDArray[np.float64]
Truth = Callable[[Question, Any, int], Array]  # question, settings, seed of a run -> errors


def _pooled(question: Question, estimates: Array, own: Array) -> Array:
    """Errors of the answers: of every period, of the windows that end in each, of all so far at the end."""
    off = estimates - own
    if question.target == "cumulative":
        return np.array([off.mean()])
    window = question.pooled
    sums = np.cumsum(np.append(0.0, off))
    return np.asarray((sums[window:] - sums[:-window]) / window)


def _own(question: Question, data: BitStream, seed: int) -> Array:
    """The users' own mean in each period: the same draws again."""
    bits = stream(seed, "bits")
    return np.array([data.counts(epoch, bits).mean() for epoch in range(1, data.horizon + 1)]) / question.readings


def every_period(question: Question, randomizer: SignFlip, seed: int) -> Array:
    data, bits, private = changing.bits(question, stream(seed, "moves")), stream(seed, "bits"), stream(seed, "private")
    estimates, own = np.empty(data.horizon), np.empty(data.horizon)
    for epoch in range(data.horizon):
        ones = data.counts(epoch + 1, bits)
        shares = ones / question.readings
        if question.unit == "report":  # each reading is a report
            shares = np.repeat([1.0, 0.0], [ones.sum(), question.users * question.readings - ones.sum()])
        reports = randomizer.draw_reports(shares, private).mean()
        estimates[epoch] = (reports - randomizer.flip) / (randomizer.keep - randomizer.flip)
        own[epoch] = ones.mean() / question.readings
    return _pooled(question, estimates, own)


def each_once(question: Question, settings: once.Once, seed: int) -> Array:
    data = changing.bits(question, stream(seed, "moves"))
    return _of_tally(question, settings, _run(settings, data, seed), _own(question, data, seed), 1)


def _run(settings: once.Once, data: BitStream | WordStream, seed: int) -> once.Tally:
    generators = {"words": stream(seed, "bits"), "public": stream(seed, "public"), "private": stream(seed, "private")}
    return once.run(settings, data, **generators)


def _of_tally(question: Question, settings: once.Once, tally: once.Tally, own: Array, word: int) -> Array:
    if question.target == "period":
        return np.asarray(settings.estimates(tally)[:, word] - own)
    if question.target == "cumulative":
        all_reports = once.Tally(tally.reports.sum(keepdims=True), tally.sums.sum(axis=0, keepdims=True))
        return np.asarray(settings.estimates(all_reports)[:, word] - own.mean())
    ends = np.arange(question.window, question.periods + 1)
    reports, sums = (
        np.cumsum(np.concatenate([np.zeros_like(part[:1]), part]), axis=0) for part in (tally.reports, tally.sums)
    )
    window = once.Tally(reports[ends] - reports[ends - question.window], sums[ends] - sums[ends - question.window])
    averaged = np.convolve(own, np.ones(question.window) / question.window, "valid")
    return np.asarray(settings.estimates(window)[:, word] - averaged)


def followed(detected: bool = False, online: bool = False) -> Truth:
    """What `choosing.follow` runs: its per-user paths, with its clipping."""

    def truth(question: Question, settings: Any, seed: int) -> Array:
        data = changing.bits(question, stream(seed, "moves"))
        generators = {"words": stream(seed, "bits"), "public": stream(seed, "public"), "private": stream(seed, "private")}
        if isinstance(settings, Reserve):
            found = np.array([release.estimate[1] for release in reserve.run(settings, data, **generators)])
        elif isinstance(settings, once.Once):
            tally = once.run(settings, data, **generators)
            found = settings.detect(tally, online=online).estimates if detected else settings.estimates(tally)
            found = settings.lots.hold(found)[:, 1]
        else:
            releases = thresh_protocol.run(settings, data, bits=generators["words"], private=generators["private"])
            found = np.array([release.estimate for release in releases])
        return np.asarray(np.clip(found, 0, 1) - _own(question, data, seed))

    return truth


def _words(question: Question, seed: int) -> tuple[WordStream, Array]:
    """The list's words, and the users' own share of the first."""
    data = changing.words(question, changing.moving(question, stream(seed, "moves")))
    words = stream(seed, "bits")
    own = [data.histograms(epoch, words)[:, 0].mean() / question.readings for epoch in range(1, question.periods + 1)]
    return data, np.array(own)


def words_once(question: Question, settings: once.Once, seed: int) -> Array:
    data, own = _words(question, seed)
    return _of_tally(question, settings, _run(settings, data, seed), own, 0)


def words_detected(online: bool) -> Truth:
    def truth(question: Question, settings: once.Once, seed: int) -> Array:
        data, own = _words(question, seed)
        tally = _run(settings, data, seed)
        return np.asarray(settings.detect(tally, words=np.array([0]), online=online).estimates[:, 0] - own)

    return truth


def words_every_period(question: Question, report: Report, seed: int) -> Array:
    data, own = _words(question, seed)
    words, public, private = stream(seed, "bits"), stream(seed, "public"), stream(seed, "private")
    estimates = np.empty(question.periods)
    for epoch in range(question.periods):
        counts = data.histograms(epoch + 1, words)
        if question.unit == "report":
            held = np.repeat(np.tile(np.arange(question.items), question.users), counts.ravel())
        else:
            held = once.sampled(counts, private)
        estimates[epoch] = report.estimates(report.collect(held, public, private), len(held))[0]
    return _pooled(question, estimates, own)


def _words_held(question: Question, holders: int, rng: np.random.Generator, alike: int = 1) -> NDArray[np.int64]:
    """How many hold each of 200 words: those `alike` of the asked frequency, and others of a power law."""
    weights = 1 / np.arange(1.0 + alike, 201.0)
    rest = (1 - alike * question.level) * weights / weights.sum()
    return rng.multinomial(holders, np.append(np.full(alike, question.level), rest))


def shown(question: Question, settings: Histogram, seed: int) -> Array:
    """The first word, where it is shown, by the readings that count, beside all that there are."""
    rng = stream(seed, "words")
    everything = _words_held(question, question.users * question.readings * question.pooled, rng)
    count = counted(question)
    noisy = settings.noisy(rng.multivariate_hypergeometric(everything, count), stream(seed, "private"))[:1]
    return np.asarray(noisy / count - everything[0] / everything.sum())


def counted(question: Question) -> int:
    """The readings that a unit has one of, in an answer."""
    pooled = question.users * question.pooled
    return {"user": question.users, "period": pooled, "report": pooled * question.readings}[question.unit]


def alike(question: Question) -> int:
    """Words of the asked frequency, up to half of all: a search is long, and tells the errors of all of them."""
    return min(10, max(1, int(0.5 / question.level)))


def searched(question: Question, settings: TreeHist | PEM, seed: int) -> Array:
    """Words of the asked frequency; nan where one is not found. Exact simulation."""
    rng, dealt = stream(seed, "words"), question.periods if question.unit == "user" else 1
    length = settings.tree.length
    leaves = settings.tree.encode([_word(number, length) for number in range(200)])
    asked_for = alike(question)
    everybody = _words_held(question, question.users * question.pooled, rng, asked_for)
    users = rng.multivariate_hypergeometric(everybody, everybody.sum() // dealt)
    rare = users > 0
    if isinstance(settings, PEM):
        found = settings.simulate(leaves[rare], users[rare], stream(seed, "private"))
    else:
        protocol = settings.draw_hashes(stream(seed, "public"))
        found = protocol.simulate_search(leaves[rare], users[rare], stream(seed, "private"))
    told = found.words.set_index("word").estimate.reindex([_word(number, length) for number in range(asked_for)])
    return np.asarray(told / users.sum() - everybody[:asked_for] / everybody.sum())


def _word(number: int, length: int) -> str:
    mixed = number * 7919 + 104729  # spread over the first letters, too
    return "".join(chr(97 + mixed // 26**place % 26) for place in (0, 1, 2, *range(3, length)))[:length]


def fresh(question: Question, noise: Any, seed: int) -> Array:
    units = question.users * (question.readings if question.unit == "report" else 1)
    return _pooled(question, noise.draw(question.periods, stream(seed, "private")) / units, np.zeros(question.periods))


def running_sums(question: Question, made: tuple[Any, Any], seed: int) -> Array:
    """The last tenth of the sums, as shares of all."""
    sums, noise = made
    units = question.users * (question.readings if question.unit == "report" else 1)
    off = sums.all(question.periods, Tape(noise, stream(seed, "private")))
    return np.asarray(off[int(np.ceil(0.9 * question.periods)) - 1 :] / units / question.periods, dtype=float)


def users_mean(question: Question, settings: Any, seed: int) -> Array:
    """Bits of users in random order within periods; the last tenth, as at the end."""
    rng = stream(seed, "bits")
    steps = question.users * question.readings
    order = np.arange(steps) % question.users
    users = np.concatenate([rng.permutation(order) for _ in range(question.periods)])
    samples = (rng.random(len(users)) < question.level).astype(np.int64)
    found = settings.but(clip=False).release(users, samples, stream(seed, "private")).estimate
    means = np.cumsum(samples) / np.arange(1, len(samples) + 1)
    last = np.unique(np.linspace(0.9 * len(users), len(users), 200).astype(int)) - 1
    return np.asarray((found[last] - means[last]) * (last + 1) / len(users))


def all_found(question: Question, settings: Any, size: int, seed: int) -> bool:
    """Whether `events` items that `size` users hold, in a period each and others' items elsewhere, are all reported."""
    rng, n_users = stream(seed, "private"), question.users
    if isinstance(settings, AboveThreshold):
        state = settings.start(rng)
        for _ in range(question.events):
            state, release = settings.step(state, float(size), rng)
            if not release.above:
                return False
        return True
    places = np.arange(n_users)
    for event in range(question.events):
        holders = (places + event * size) % n_users < size  # others each time
        held = np.where(holders, 0, 1 + places % (question.items - 1))
        if isinstance(settings, Histogram):
            found = 0 in settings.step(settings.start(n_users), held, rng)[1]
        elif isinstance(settings, once.Once):
            found = _seen_locally(question, settings, size, seed + event)
        elif isinstance(settings, ThresholdMonitorEvolving):
            found = 0 in settings.step_held(settings.start(n_users), held, rng)[1]
        else:
            assert isinstance(settings, Plan)
            found = bool(settings.monitor.step_elements(settings.monitor.start(n_users), held, question.items, rng)[1][0])
        if not found:
            return False
    return True


def _seen_locally(question: Question, settings: once.Once, size: int, seed: int) -> bool:
    """The period's reporters, one by one, and the planner's cut."""
    private, public = stream(seed, "private"), stream(seed, "public")
    reporters = np.flatnonzero(settings.lots.deal(private) == 1)
    support = settings.report.collect((reporters >= size).astype(np.int64), public, private)
    return bool(support[0] > local.cut(question, settings, len(reporters)))


TRUTHS: dict[str, Truth] = {
    "every user in every period": every_period,
    "every user in every period, composed with delta": every_period,
    "each user once": each_once,
    "each user once, for several periods": followed(),
    "each user once, changes found afterwards": followed(True),
    "each user once, changes found as they come": followed(True, True),
    "each user once, with a reserve that is called at a change": followed(),
    "THRESH, tuned": followed(),
    "the best report from every user in every period": words_every_period,
    "the best report from every user in every period, composed with delta": words_every_period,
    "each user once, the best report": words_once,
    "each user once, one sign (FreqOracle, Hadamard)": words_once,
    "each user once, the best report, changes found afterwards": words_detected(False),
    "each user once, the best report, changes found as they come": words_detected(True),
    "TreeHist": searched,
    "PEM": searched,
    "stable histogram": shown,
    "fresh Laplace noise in every period": fresh,
    "fresh Gaussian noise in every period": fresh,
    "running sums, the best tree": running_sums,
    "running sums, eight buffers": running_sums,
    "running mean of users who come back, discrete Laplace": users_mean,
    "running mean of users who come back, Gaussian": users_mean,
}
TRUTHS |= {  # a shuffler changes what a report may cost, and no estimate
    method.name: TRUTHS[method.name.partition(", shuffled")[0]]
    for statistic in ROOMS
    for method in asked(Question(statistic))
    if method.trust == "shuffler" and method.name.partition(", shuffled")[0] in TRUTHS
}
