"""What the planner's methods do, user by user: the errors that its predictions are compared with.

Each function returns errors of answers about what the same users' data say without privacy, one array a run, (answers,
words): of a mean one word, of a list all, the first of which has the share that was asked for. Of an alarm, whether all hot
items of a size were found. Data are drawn here, from streams that no prediction has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core.noise import Tape
from evolvingdp.core.reports import Report
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import protocol as thresh_protocol
from evolvingdp.evolving.rivals import once, reserve
from evolvingdp.evolving.rivals.reserve import Reserve
from evolvingdp.evolving.streams import BitStream, WordStream, sampled
from evolvingdp.heavy_hitters.tree_hist import TreeHist
from evolvingdp.planning import local
from evolvingdp.planning.planner import METHODS
from evolvingdp.planning.question import Question
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.histograms import Histogram
from evolvingdp.sparse_vector.shifting import solve
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

Array = NDArray[np.float64]
Truth = Callable[[Question, Any, int], Array]  # question, settings, seed of a run -> errors


def bits(question: Question, rng: np.random.Generator) -> BitStream:
    """Users whose readings are drawn afresh from the shares that a prediction has."""
    return BitStream.make([question.users], local.moving(question, rng), question.readings)


def _data(question: Question, seed: int) -> tuple[Any, Array]:
    """A stream, and the users' own shares in each period, (periods, words); of a bit that of ones alone.

    The first word of a list has the share that moves, the others divide the rest evenly.
    """
    rng, drawn = stream(seed, "moves"), stream(seed, "bits")
    periods = range(1, question.periods + 1)
    if question.statistic == "mean":
        data: Any = bits(question, rng)
        own = np.array([[data.counts(epoch, drawn).mean()] for epoch in periods])
    else:
        values, which = np.unique(local.moving(question, rng), return_inverse=True)
        rest = np.repeat((1 - values)[:, None] / (question.items - 1), question.items - 1, axis=1)
        data = WordStream.make([question.users], np.column_stack([values, rest]), [which], question.readings)
        own = np.array([data.histograms(epoch, drawn).mean(axis=0) for epoch in periods])
    return data, own / question.readings


def _pooled(question: Question, off: Array) -> Array:
    """Errors of the answers: of every period, of the windows that end in each, of all so far at the end."""
    if question.target == "cumulative":
        return np.asarray(off.mean(axis=0, keepdims=True))
    window = question.pooled
    sums = np.cumsum(np.concatenate([np.zeros_like(off[:1]), off]), axis=0)
    return np.asarray((sums[window:] - sums[:-window]) / window)


def every_period(question: Question, report: Report, seed: int) -> Array:
    data, own = _data(question, seed)
    bits, public, private = stream(seed, "bits"), stream(seed, "public"), stream(seed, "private")
    found = []
    for epoch in range(1, question.periods + 1):
        counts = data.histograms(epoch, bits)
        if question.unit == "report":  # each reading is a report
            held = np.repeat(np.tile(np.arange(counts.shape[1]), question.users), counts.ravel())
        else:
            held = sampled(counts, private)
        found.append(report.estimates(report.collect(held, public, private), len(held)))
    return _pooled(question, _words(question, np.array(found)) - own)


def _words(question: Question, estimates: Array) -> Array:
    """All words of a list, of a bit the ones."""
    return estimates[:, 1:] if question.statistic == "mean" else estimates


def _generators(seed: int) -> dict[str, np.random.Generator]:
    return {"words": stream(seed, "bits"), "public": stream(seed, "public"), "private": stream(seed, "private")}


def each_once(question: Question, settings: once.Once, seed: int) -> Array:
    data, own = _data(question, seed)
    tally = once.run(settings, data, **_generators(seed))
    window = question.pooled
    reports, sums, owns = (
        np.cumsum(np.concatenate([np.zeros_like(part[:1]), part]), axis=0) for part in (tally.reports, tally.sums, own)
    )
    answer = once.Tally(reports[window:] - reports[:-window], sums[window:] - sums[:-window])
    off: Array = _words(question, settings.estimates(answer)) - (owns[window:] - owns[:-window]) / window
    return off


def detected(online: bool) -> Truth:
    """Changes are looked for in the word that is asked for; of a bit errors are of what `choosing.follow` tells."""

    def truth(question: Question, settings: once.Once, seed: int) -> Array:
        data, own = _data(question, seed)
        tally, bit = once.run(settings, data, **_generators(seed)), question.statistic == "mean"
        found = settings.detect(tally, words=np.array([int(bit)]), online=online).estimates[:, [int(bit)]]
        return _pooled(question, (_told(found[:, 0])[:, None] if bit else np.nan_to_num(found)) - own[:, :1])

    return truth


def _told(estimates: Array) -> Array:
    last = 0.5
    held = [last := last if np.isnan(one) else one for one in estimates]
    return np.clip(held, 0, 1)


def followed(question: Question, settings: Any, seed: int) -> Array:
    """The protocols user by user, with the clipping of `choosing.follow`."""
    data, own = _data(question, seed)
    if isinstance(settings, Reserve):
        found = [release.estimate[1] for release in reserve.run(settings, data, **_generators(seed))]
    else:
        found, state, rngs = [], thresh_protocol.start(settings), _generators(seed)
        for epoch in range(1, question.periods + 1):  # users are alike: the first ones take part
            held = data.counts(epoch, rngs["words"])[: settings.n_users]
            state, release = thresh_protocol.step(settings, state, held, rngs["public"], rngs["private"])
            found.append(release.estimate)
    return _pooled(question, _told(np.array(found, dtype=float))[:, None] - own)


def _words_held(question: Question, holders: int, rng: np.random.Generator, alike: int = 1) -> NDArray[np.int64]:
    """How many hold each of 200 words: those `alike` of the asked frequency, and others of a power law."""
    weights = 1 / np.arange(1.0 + alike, 201.0)
    rest = (1 - alike * question.level) * weights / weights.sum()
    return rng.multinomial(holders, np.append(np.full(alike, question.level), rest))


def shown(question: Question, settings: Histogram, seed: int) -> Array:
    """The first word, where it is shown, by the readings that count, user by user, beside all that there are."""
    rng, weights = stream(seed, "words"), 1 / np.arange(2.0, 201.0)
    law = np.append(question.level, (1 - question.level) * weights / weights.sum())
    held = rng.choice(200, p=law, size=(question.users, question.pooled, question.readings))
    if question.unit == "user":  # of which one counts
        all_of_them = held.reshape(question.users, -1)
        inputs = np.take_along_axis(all_of_them, rng.integers(all_of_them.shape[1], size=(question.users, 1)), 1).ravel()
    elif question.unit == "period":
        which = rng.integers(question.readings, size=(question.users, question.pooled, 1))
        inputs = np.take_along_axis(held, which, 2).ravel()
    else:
        inputs = held.ravel()
    _, told = settings.count(settings.start(len(inputs)), inputs, stream(seed, "private"))
    noisy = told.weights[told.elements == 0] / len(inputs) if 0 in told.elements else np.array([np.nan])
    return np.asarray(noisy - np.mean(held == 0))[:, None]


def counted(question: Question) -> int:
    """The readings that a unit has one of, in an answer."""
    pooled = question.users * question.pooled
    return {"user": question.users, "period": pooled, "report": pooled * question.readings}[question.unit]


def alike(question: Question) -> int:
    """Words of the asked frequency, up to half of all: a search is long, and tells the errors of all of them."""
    return min(10, max(1, int(0.5 / question.level)))


def searched(question: Question, settings: TreeHist, seed: int) -> Array:
    """Words of the asked frequency; nan where one is not found. Exact simulation."""
    rng, dealt = stream(seed, "words"), question.periods if question.unit == "user" else 1
    length = settings.tree.length
    leaves = settings.tree.encode([_word(number, length) for number in range(200)])
    asked_for = alike(question)
    everybody = _words_held(question, question.users * question.pooled, rng, asked_for)
    users = rng.multivariate_hypergeometric(everybody, everybody.sum() // dealt)
    rare = users > 0
    found = settings.draw_hashes(stream(seed, "public")).simulate_search(leaves[rare], users[rare], stream(seed, "private"))
    told = found.words.set_index("word").estimate.reindex([_word(number, length) for number in range(asked_for)])
    return np.asarray(told / users.sum() - everybody[:asked_for] / everybody.sum())[:, None]


def _word(number: int, length: int) -> str:
    mixed = number * 7919 + 104729  # spread over the first letters, too
    return "".join(chr(97 + mixed // 26**place % 26) for place in (0, 1, 2, *range(3, length)))[:length]


def fresh(question: Question, noise: Any, seed: int) -> Array:
    units = question.users * question.a_period
    return _pooled(question, noise.draw((question.periods, 1), stream(seed, "private")) / units)


def running_sums(question: Question, made: tuple[Any, Any], seed: int) -> Array:
    """The last tenth of the sums, as shares of all."""
    sums, noise = made
    off = sums.all(question.periods, Tape(noise, stream(seed, "private")))
    last = off[int(np.ceil(0.9 * question.periods)) - 1 :]
    return np.asarray(last / (question.users * question.a_period) / question.periods, dtype=float)[:, None]


def all_found(question: Question, settings: Any, size: int, seed: int) -> bool:
    """Whether `events` items that `size` users hold, in a period each and others' items elsewhere, are all reported."""
    rng, n_users = stream(seed, "private"), question.users
    if isinstance(settings, AboveThreshold):
        if settings.moved:  # events may share a period, and each is asked about alone here
            settings = replace(settings, moved=max(settings.moved, 2 * question.events))
        state = settings.start(rng)
        for _ in range(question.events):
            state, release = settings.step(state, float(size), rng)
            if not release:
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
        else:
            assert isinstance(settings, ThresholdMonitorEvolving)
            found = 0 in solve(settings, [held], question.items, rng)[0]
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
    "each user once": each_once,
    "each user once, changes found afterwards": detected(False),
    "each user once, changes found as they come": detected(True),
    "each user once, with a reserve that is called at a change": followed,
    "THRESH, tuned": followed,
    "TreeHist": searched,
    "stable histogram": shown,
    "stable histogram, once at the end": shown,
    "fresh Laplace noise in every period": fresh,
    "fresh Gaussian noise in every period": fresh,
    "running sums, the best tree": running_sums,
    "running sums, eight buffers": running_sums,
}
TRUTHS |= {  # a shuffler changes what a report may cost, and no estimate
    method.name: TRUTHS[method.name.removesuffix(", shuffled")]
    for method in METHODS
    if method.name.removesuffix(", shuffled") in TRUTHS
}
