"""The registry's entries for local protocols that go on over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.registry.entry import FINITE, REPORTS, Case, Mechanism, Trial, Walk, public
from evolvingdp.core.geometry import Geometry
from evolvingdp.core.reports import Hashed, Projective, Sign, Subset
from evolvingdp.evolving import baselines, protocol
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals import once, reserve
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.rivals.reserve import Reserve
from evolvingdp.evolving.streams import BitStream, WordStream
from evolvingdp.evolving.thresh import Thresh

Rng = np.random.Generator
Pair = tuple[NDArray[np.int64], NDArray[np.int64]]
_PUBLIC = "public: as many as take part, each with a budget of its own"
_LENGTH = "public: of a user's data in an epoch"
_REPORT = "public: a kind, whose epsilon is checked"
_EPOCHS = "of epochs without reports"
_CAPS = {"vote_cap": "whoever has used it sends noise", "estimate_cap": "after it updates hold nothing"}
_STATED = {
    "epsilon": "what the budgets of votes and estimates may add up to, which is checked",
    "beta": "of stated errors",
    "reach": "set by what owns the voting",
    "unit": "of the thresholds of votes, whose number is capped",
    "epoch_length": _LENGTH,
}


def mechanisms() -> Iterator[Mechanism]:
    def entry(id: str, covers: tuple[Any, ...], walk: Walk, public: dict[str, str], stated: bool, counts: bool) -> Mechanism:
        return Mechanism(
            id,
            "evolving",
            covers,
            "all that a user ever sends",
            "any two sequences of its data",
            REPORTS,
            walk.trial,
            walk.doors,
            (covers[0],),
            {"horizon": walk.more} if counts else {},
            public,
            (walk.steps,),
            _STATED if stated else {},
        )

    covers: tuple[Any, ...] = (Thresh, Thresh.draw_reports, Thresh.reported, protocol.step)
    walk = Walk(_thresh, lambda made, *_: protocol.start(made), _told(protocol.step), _counts, 1)
    sizes = {"n_users": _PUBLIC, "epoch_length": _LENGTH, "reach": "of signed sums"}
    yield entry("thresh", covers, walk, sizes | _CAPS, True, True)

    covers = (HeavyThresh, HeavyThresh.draw_plus, HeavyThresh.reported, protocol.step)
    walk = Walk(
        _heavy,
        lambda made, *_: protocol.start(made),
        _told(protocol.step),
        lambda made, rng, steps: _words(made.voting, made.n_words, rng, steps),
        1,
    )
    yield entry("heavy_thresh", covers, walk, {"n_words": _LENGTH, "report": _REPORT}, True, False)

    def some(made: Any, rng: Rng, steps: int) -> Pair:
        return _words(made, made.n_words, rng, steps)

    sizes = {"n_users": _PUBLIC, "n_words": _LENGTH, "every": _EPOCHS, "report": _REPORT}
    walk = Walk(_once, _begun(once.start), _told(once.step), some, 1)
    yield entry("once", (Once, once.start, once.step, once.Lots, once.Lots.deal), walk, sizes, False, True)

    sizes = {"n_users": _PUBLIC, "n_words": _LENGTH, "report": _REPORT}
    sizes |= {"changes": "crews that wait: a user is in one", "steady": _PUBLIC}
    walk = Walk(_reserve, _begun(reserve.start), _told(reserve.step), some, 1)
    yield entry("reserve", (Reserve, reserve.start, reserve.step), walk, sizes, False, True)

    words = ("all that a user ever sends", "any two bits, or words, that never change")
    covers = (baselines.recompute, baselines.recompute_words, baselines.epsilon_of_report)
    yield Mechanism("recompute", "evolving", covers, *words, FINITE, _recompute_trial, cost=16)


def _heavy(rng: Rng) -> Case:
    voting = _thresh(rng)
    made = HeavyThresh(voting, 3, _report(rng, 3, voting.estimate_epsilon) if rng.random() < 0.7 else None)
    return Case(made, made.voting.epsilon, 0.0, 2 * made.voting.horizon)


def _begun(start: Any) -> Any:
    return lambda made, rng, _: start(made, rng)


def _told(step: Any) -> Any:
    return lambda made, state, held, rng: step(made, state, held, public(made), rng)


def _counts(made: Thresh, rng: Rng, steps: int) -> Pair:
    """User 0's are lowest and highest, in turns, or any two sequences; the others' are any."""
    most, others = made.epoch_length, rng.integers(0, made.epoch_length + 1, (steps, made.n_users))
    one, other = others.copy(), others.copy()
    turns = most * (np.arange(steps) % 2)
    any_two = rng.integers(0, most + 1, (2, steps))
    one[:, 0], other[:, 0] = ((0 * turns, 0 * turns + most), (turns, most - turns), any_two)[rng.integers(0, 3)]
    return one, other


def _words(made: Any, words: int, rng: Rng, steps: int) -> Pair:
    """Histograms (steps, users, words) of as many words as an epoch has; user 0's are any two sequences, of one word or of
    several."""
    length = getattr(made, "epoch_length", 2)

    def drawn(shape: tuple[int, ...]) -> NDArray[np.int64]:
        return np.asarray(rng.multinomial(length, np.full(words, 1 / words), shape))

    one = drawn((steps, made.n_users))
    if rng.random() < 0.5:  # others hold the last word alone: what any of them holds is what user 0 does
        one[:] = length * (np.arange(words) == words - 1)
    other = one.copy()
    if rng.random() < 0.5:
        one[:, 0], other[:, 0] = 0, 0
        one[np.arange(steps), 0, np.arange(steps) % 2] = length
        other[np.arange(steps), 0, words - 1 - np.arange(steps) % 2] = length
    else:
        other[:, 0] = drawn((steps,))
    return one, other


def _thresh(rng: Rng) -> Thresh:
    votes, estimates = int(rng.integers(0, 3)), int(rng.integers(1, 4))
    vote, estimate = float(rng.uniform(0.05, 1.0)), float(rng.uniform(0.05, 1.0))
    return Thresh(
        int(rng.integers(1, 6)),
        int(rng.integers(1, 16)),  # so long that what is not charged adds up to more than all that is
        int(rng.integers(1, 4)),
        2 * votes * vote + estimates * estimate,
        vote,
        estimate,
        votes,
        estimates,
        unit=float(rng.choice([0.01, 0.05, 0.1])),
        exhaustion=str(rng.choice(["freeze", "printed"])),
        margin=float(rng.choice([0.05, 0.1, 0.3])),
    )


def _recompute_trial(rng: Rng) -> Trial:
    """Of one user, whose reports alone are all that there is."""
    epochs, epsilon, delta = int(rng.integers(1, 6)), float(rng.uniform(0.3, 3.0)), float(rng.choice([1e-6, 0.01]))
    options: dict[str, Any] = {"composition": str(rng.choice(baselines.COMPOSITIONS)), "delta": delta}
    if rng.random() < 0.5:
        every = int(rng.integers(1, 4))

        def run(held: int, noise: Any) -> Any:
            data = BitStream.make([1], [[float(held)] * epochs], 1)
            return baselines.recompute(data, epsilon, noise, every=every, **options)
    else:
        voting = Thresh(1, min(epochs, 3), 1, epsilon, 0.1, epsilon - 0.2, 1, 1, unit=0.01, margin=0.1, reach=2)
        made = HeavyThresh(voting, 2, Subset(2, voting.estimate_epsilon) if rng.random() < 0.5 else None)

        def run(held: int, noise: Any) -> Any:
            data = WordStream.make([1], np.eye(2), [[held] * made.voting.horizon], 1)
            return list(baselines.recompute_words(made, data, noise, **options))

    return Trial((epochs, epsilon, options), run, (0, 1), epsilon, 0.0 if options["composition"] == "basic" else delta)


def _report(rng: Rng, words: int, epsilon: float) -> Any:
    kinds = (Subset, Hashed, Sign, lambda k, e: Subset(k, e, k - 1), lambda k, e: Projective(k, e, Geometry(2, 3)))
    return kinds[int(rng.integers(len(kinds)))](words, epsilon)


def _once(rng: Rng) -> Once:
    horizon, words, epsilon = int(rng.integers(1, 6)), int(rng.integers(2, 5)), float(rng.uniform(0.1, 3.0))
    every, report = int(rng.integers(1, horizon + 1)), _report(rng, words, epsilon)
    return Once(int(rng.integers(1, 5)), horizon, epsilon, words, every, report)


def _reserve(rng: Rng) -> Reserve:
    words, epsilon = int(rng.integers(2, 5)), float(rng.uniform(0.1, 3.0))
    changes, report = int(rng.integers(0, 2)), _report(rng, words, epsilon)
    users = int(rng.integers(18, 30))
    return Reserve(users, int(rng.integers(1, 6)), epsilon, changes, words, float(rng.uniform(0.1, 0.5)), report)
