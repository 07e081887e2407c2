"""A user's whole THRESH or HEAVYTHRESH transcript, in the worst case over inputs and over what the server may do.

Given the public updates, what a user sends in different epochs is independent, and whether it votes and reports truthfully
is a deterministic function of its data. So the loss of two inputs is a sum over messages of log ratios: nothing is sampled.

The laws of the messages are read off the shipped `step`, in which three users vote. One is the user in question; the two
others split their votes, so that its vote decides, or agree, so that the server does what the enumeration wants.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.exact.draws import frozen
from evolvingdp.evolving import protocol
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.thresh import Thresh

Message = tuple[float, ...]  # logs of the probabilities of its outcomes


@dataclass
class Coins:
    """A generator whose uniform numbers only answer: in its i-th draw `u < p` is what `answers[i]` says, and False for users
    beyond these. The p of the first user, who is the one in question, is kept."""

    answers: list[list[bool]]
    chances: list[float] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)  # the p of the others

    def random(self, shape: tuple[int, ...]) -> Coins:
        self.shape = shape
        return self

    def __lt__(self, chances: Any) -> NDArray[np.bool_]:
        draw, answer = len(self.chances), np.zeros(self.shape, dtype=bool)
        answer[: len(self.answers[draw])] = self.answers[draw]
        of_all = np.broadcast_to(chances, self.shape)
        self.chances.append(float(of_all[0]))
        self.others.append(of_all[1:].tolist())
        return answer

    def __ge__(self, chances: Any) -> NDArray[np.bool_]:
        """Of others' reports, which the user has no part in."""
        return np.zeros(self.shape, dtype=bool)

    def integers(self, low: Any, high: Any, size: Any = None, dtype: Any = np.int64) -> NDArray[Any]:
        return np.full(np.shape(high) if size is None else size, low, dtype=dtype)


@dataclass(frozen=True)
class Place:
    """Public randomness that deals everybody the same coordinate."""

    place: int

    def integers(self, low: int, high: int, size: int) -> NDArray[np.int64]:
        return np.full(size, self.place)


@dataclass(frozen=True)
class Drive:
    """A protocol of users of whom three vote: `step(state, datum, coins, place)`, in which one user holds `datum` and the
    others the first of `inputs`, all that a user can hold in an epoch. `sent(release, place)` is larger for a larger report.
    """

    start: Any
    step: Callable[[Any, Any, Coins, int], tuple[Any, Any]]
    sent: Callable[[Any, int], float]
    inputs: list[Any]
    horizon: int
    places: int = 1

    def after(self, state: Any, datum: Any, wanted: bool) -> tuple[Any, list[Message]]:
        """The state after an epoch in which the votes do or do not ask for an update, and what the user sends."""
        votes = state.release.epoch > 0  # the first epoch has an update, and no votes

        def tossed(vote: list[bool], datum: Any, report: bool = False, place: int = 0) -> tuple[Any, Any, Coins]:
            coins = Coins([vote] * votes + [[report]])
            return *self.step(state, datum, coins, place), coins

        def run(vote: list[bool], report: bool = False, place: int = 0) -> tuple[Any, Any, list[float]]:
            following, release, coins = tossed(vote, datum, report, place)
            return following, release, coins.chances

        def asked(release: Any) -> bool:
            return bool(release.updated or release.frozen)

        messages = []
        if votes:  # with the others' votes split, an update is asked for if and only if this one says so
            (_, says, (chance, *_)), (_, denies, _) = (run([answer, False, True]) for answer in (True, False))
            messages.append(_message(chance, asked(says), asked(denies)))
        vote = [False] * 3
        following, release, coins = tossed(vote, datum)
        if votes and asked(release) != wanted:
            vote = [False, True, True]
            following, release, coins = tossed(vote, datum)
        unseen = tossed(vote, self.inputs[0])[2].others
        if any(ours != theirs for ours, theirs in zip(coins.others, unseen, strict=False)):  # one may end before reports
            raise AssertionError("what is sent in the seats of others must not depend on the user")
        if votes:  # the others agree: what noise makes of this vote must not change what is kept
            shown = run([not vote[0], *vote[1:]])[0]
            if frozen(shown) != frozen(following):
                raise AssertionError("a state must not depend on how a truthful vote was shown")
        if release.updated:
            outcomes: list[float] = []
            for place in range(self.places):
                lower = release if place == 0 else run(vote, False, place)[1]
                _, upper, chances = run(vote, True, place)
                difference = self.sent(upper, place) - self.sent(lower, place)
                outcomes += _message(chances[-1], difference > 0, difference < 0)
            messages.append(tuple(outcomes))
        return following, messages

    def loss(self) -> float:
        """The largest log likelihood ratio over all pairs of inputs, all updates and all transcripts."""

        known: dict[Any, tuple[Any, list[Message]]] = {}

        @cache
        def transcript(inputs: tuple[Any, ...], updates: tuple[bool, ...]) -> tuple[Any, list[Message]]:
            if not inputs:
                return self.start, []
            state, before = transcript(inputs[:-1], updates[:-1])
            here = frozen(state), inputs[-1], updates[-1]  # many transcripts lead to one state
            if here not in known:
                known[here] = self.after(state, self.inputs[inputs[-1]], updates[-1])
            state, messages = known[here]
            return state, before + messages

        worst = 0.0
        all_inputs = list(itertools.product(range(len(self.inputs)), repeat=self.horizon))
        for updates in _updates(self.horizon):
            sent = zip(*(transcript(inputs, updates)[1] for inputs in all_inputs), strict=True)
            tables = [np.array(message) for message in sent]  # (inputs, outcomes) each
            losses = [(table[:, None] - table[None]).max(axis=2) for table in tables]  # of all pairs of inputs
            worst = max(worst, float(np.sum(losses, axis=0).max()))
        return worst


def _message(chance: float, yes: bool, no: bool) -> Message:
    """A bit that is `yes` with probability `chance`, else `no`: the logs for 1 and for 0."""
    if yes == no:
        raise AssertionError("a bit that is sent has to depend on its coin")
    logs = math.log(chance), math.log1p(-chance)
    return logs if yes else logs[::-1]


def _updates(horizon: int) -> Iterator[tuple[bool, ...]]:
    """All sequences of epochs in which the votes may ask for an update, which the first has without."""
    return itertools.product((True,), *[(False, True)] * (horizon - 1))


def of_three(settings: Thresh) -> Thresh:
    """With three users, of whom two that agree decide on an update."""
    return replace(settings, n_users=3, margin=0.5 - settings.vote_randomizer.flip)


def _thawed(state: Any) -> Any:
    """So that the flag of the next release tells of that epoch."""
    return replace(state, release=replace(state.release, frozen=False))


def thresh_loss(settings: Thresh) -> float:
    """The loss of a user of `protocol.step` of THRESH."""
    three = of_three(settings)

    def step(state: Any, count: int, coins: Any, place: int) -> tuple[Any, Any]:
        return protocol.step(three, _thawed(state), np.array([count, 0, 0]), Place(0), coins)  # type: ignore[arg-type]

    inputs = list(range(three.epoch_length + 1))
    start = protocol.start(three)
    return Drive(start, step, lambda release, _: float(release.estimate), inputs, three.horizon).loss()


def heavy_loss(settings: HeavyThresh) -> float:
    """The loss of a user of protocol.step with one word an epoch."""
    three = replace(settings, voting=of_three(settings.voting))
    voting, words = three.voting, np.arange(three.n_words)
    inputs = list(voting.epoch_length * np.eye(three.n_words, dtype=np.int64))

    def step(state: Any, histogram: NDArray[np.int64], coins: Any, place: int) -> tuple[Any, Any]:
        counts = np.array([histogram, inputs[0], inputs[0]])
        return protocol.step(three, _thawed(state), counts, Place(place), coins)  # type: ignore[arg-type]

    def sent(release: Any, place: int) -> float:
        return float(release.estimate @ three.signs(np.array([place]), words))

    start = protocol.start(three)
    return Drive(start, step, sent, inputs, voting.horizon, three.width).loss()
