"""A user's whole THRESH or HEAVYTHRESH transcript, in the worst case over inputs and over what the server may do.

Given the public updates, what a user sends in different epochs is independent, and whether it votes and reports truthfully
is a deterministic function of its data. So the loss of two inputs is a sum over messages of log ratios: nothing is sampled.

The laws of the messages are read off the shipped `step`, which runs on three users. The first is the one in question; the
two others split their votes, so that its vote decides, or agree, so that the server does what the enumeration wants.
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

from evolvingdp.evolving import heavy_protocol, thresh_protocol
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.thresh import Thresh

Message = tuple[float, ...]  # logs of the probabilities of its outcomes


@dataclass
class Coins:
    """A generator whose uniform numbers only answer: `u < p` is what `answers` says, a row a draw; the first p is kept."""

    answers: list[list[bool]]
    chances: list[float] = field(default_factory=list)

    def random(self, shape: Any) -> Coins:
        return self

    def __lt__(self, chances: Any) -> NDArray[np.bool_]:
        answer = np.array(self.answers[len(self.chances)])
        self.chances.append(float(np.broadcast_to(chances, answer.shape)[0]))
        return answer


@dataclass(frozen=True)
class Place:
    """Public randomness that deals everybody the same coordinate."""

    place: int

    def integers(self, low: int, high: int, size: int) -> NDArray[np.int64]:
        return np.full(size, self.place)


@dataclass(frozen=True)
class Drive:
    """A protocol of three users: `step(state, data, coins, place)`; `sent(release, place)` is larger for the larger report.

    `inputs` are all that a user can hold in an epoch; the two others hold the first.
    """

    start: Any
    step: Callable[[Any, NDArray[Any], Coins, int], tuple[Any, Any]]
    sent: Callable[[Any, int], float]
    inputs: list[Any]
    horizon: int
    forced: bool  # the first epoch has an update, and no votes
    places: int = 1

    def after(self, state: Any, datum: Any, wanted: bool) -> tuple[Any, list[Message]]:
        """The state after an epoch in which the votes do or do not ask for an update, and what the first user sends."""
        data = np.array([datum, self.inputs[0], self.inputs[0]])
        state = replace(state, release=replace(state.release, frozen=False))  # so that the flag tells of this epoch
        votes = not (self.forced and state.release.epoch == 0)

        def run(vote: list[bool], report: bool = False, place: int = 0) -> tuple[Any, Any, float]:
            coins = Coins([vote] * votes + [[report, False, False]])
            following, release = self.step(state, data, coins, place)
            return following, release, coins.chances[-1]

        def asked(release: Any) -> bool:
            return bool(release.updated or release.frozen)

        messages = []
        if votes:  # with the others' votes split, an update is asked for if and only if this vote says so
            pivot = {answer: Coins([[answer, True, False], [False] * 3]) for answer in (True, False)}
            says = {answer: asked(self.step(state, data, coins, 0)[1]) for answer, coins in pivot.items()}
            messages.append(_message(pivot[True].chances[0], says[True], says[False]))
        vote = [False] * 3
        following, release, _ = run(vote)
        if votes and asked(release) != wanted:
            vote = [False, True, True]
            following, release, _ = run(vote)
        if release.updated:
            outcomes: list[float] = []
            for place in range(self.places):
                lower = release if place == 0 else run(vote, False, place)[1]
                _, upper, chance = run(vote, True, place)
                difference = self.sent(upper, place) - self.sent(lower, place)
                outcomes += _message(chance, difference > 0, difference < 0)
            messages.append(tuple(outcomes))
        return following, messages

    def loss(self) -> float:
        """The largest log likelihood ratio over all pairs of inputs, all updates and all transcripts."""

        @cache
        def transcript(inputs: tuple[Any, ...], updates: tuple[bool, ...]) -> tuple[Any, list[Message]]:
            if not inputs:
                return self.start, []
            state, before = transcript(inputs[:-1], updates[:-1])
            state, messages = self.after(state, self.inputs[inputs[-1]], updates[-1])
            return state, before + messages

        worst = 0.0
        all_inputs = list(itertools.product(range(len(self.inputs)), repeat=self.horizon))
        for updates in _updates(self.horizon, self.forced):
            sent = zip(*(transcript(inputs, updates)[1] for inputs in all_inputs), strict=True)
            tables = [np.array(message) for message in sent]  # (inputs, outcomes) each
            worst = max(worst, float(sum((table[:, None] - table[None]).max(axis=2) for table in tables).max()))
        return worst


def _message(chance: float, yes: bool, no: bool) -> Message:
    """A bit that is `yes` with probability `chance`, else `no`: the logs for 1 and for 0."""
    if yes == no:
        raise AssertionError("a bit that is sent has to depend on its coin")
    logs = math.log(chance), math.log1p(-chance)
    return logs if yes else logs[::-1]


def _updates(horizon: int, forced: bool) -> Iterator[tuple[bool, ...]]:
    """All sequences of epochs in which the votes may ask for an update."""
    first = (True,) if forced else (True, False)
    return itertools.product(first, *[(False, True)] * (horizon - 1))


def of_three(settings: Thresh) -> Thresh:
    """With three users, of whom two that agree decide on an update."""
    return replace(settings, n_users=3, margin=0.5 - settings.vote_randomizer.flip)


def thresh_loss(settings: Thresh) -> float:
    """The loss of a user of `thresh_protocol.step`."""
    three = of_three(settings)

    def step(state: Any, counts: NDArray[Any], coins: Any, place: int) -> tuple[Any, Any]:
        return thresh_protocol.step(three, state, counts, coins)

    inputs = list(range(three.epoch_length + 1))
    forced = three.start == "forced"
    start = thresh_protocol.start(three)
    return Drive(start, step, lambda release, _: release.estimate, inputs, three.horizon, forced).loss()


def heavy_loss(settings: HeavyThresh) -> float:
    """The loss of a user of `heavy_protocol.step` with one word an epoch."""
    three = replace(settings, voting=of_three(settings.voting))
    voting, words = three.voting, np.arange(three.n_words)

    def step(state: Any, counts: NDArray[Any], coins: Any, place: int) -> tuple[Any, Any]:
        return heavy_protocol.step(three, state, counts, Place(place), coins)  # type: ignore[arg-type]

    def sent(release: Any, place: int) -> float:
        return float(release.estimates @ three.projection.signs(np.array([place]), words))

    inputs = list(voting.epoch_length * np.eye(three.n_words, dtype=np.int64))
    forced = voting.start == "forced"
    start = heavy_protocol.start(three)
    return Drive(start, step, sent, inputs, voting.horizon, forced, three.width).loss()
