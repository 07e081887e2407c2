"""Entries of the ledger for simulations of data that change at home: they must have the exact law of running the protocol.

One or two users, whose data are certain, in two or three epochs; public randomness is followed, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import Any
from unittest import mock

import numpy as np

from evolvingdp.audit.exact.simulated import RandomFunctions, law_of_accepted, one_at_a_time, same_law, simulated_loss
from evolvingdp.audit.ledger.entry import EXACT, Entry
from evolvingdp.audit.ledger.mutant import broken
from evolvingdp.evolving import count_law, heavy_protocol, heavy_simulation, thresh_protocol, thresh_simulation
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals import crew_thresh, crew_words, memoized, once, once_words, threshold_stream, tree
from evolvingdp.evolving.rivals.threshold_stream import ThresholdStream
from evolvingdp.evolving.streams import BitStream, WordStream
from evolvingdp.evolving.thresh import Thresh

_EPSILON = 1.0


def entries() -> Iterator[Entry]:
    yield from _once()
    yield from _few_changes()
    yield from _thresh()
    yield from _many()
    yield from _later()
    yield from _crews()


def _entry(
    id: str, name: str, covers: tuple[Any, ...], promised: float, measure: Any, mutant: str, change: tuple[str, str, str],
) -> Entry:  # fmt: skip
    return Entry(
        f"simulated_{id}", "evolving", f"{name}, simulated", covers, "a simulated release of all epochs",
        "any two sequences of a user", EXACT, promised, measure, mutant, broken(measure, *change),
    )  # fmt: skip


@cache
def _bits(own: tuple[float, ...], *others: tuple[float, ...]) -> BitStream:
    return BitStream.make([1] * (1 + len(others)), [own, *others], 1)


@cache
def _said(words: tuple[int, ...], *others: tuple[int, ...], length: int = 1) -> WordStream:
    return WordStream.make([1] * (1 + len(others)), np.eye(2), [words, *others], length)


def _once() -> Iterator[Entry]:
    two = once.Once(2, 2, 1, _EPSILON)
    yield _entry(
        "once", "one report a user, means", (once.Once, once.simulate), _EPSILON,
        lambda: simulated_loss(
            lambda own, rng: once.run(two, _bits(own, (1, 0)), bits=rng, private=rng),
            lambda own, rng: once.simulate(two, _bits(own, (1, 0)), rng), product((0, 1), repeat=2),
        ),
        "users report in each epoch by chance", ("evolving/rivals/once.py", "rng.multinomial(sizes, np.full(len(self.epochs), 1 / len(self.epochs)))",
         "rng.binomial(np.asarray(sizes)[:, None], 1 / len(self.epochs), size=(len(sizes), len(self.epochs)))"),
    )  # fmt: skip
    for oracle in once_words.ORACLES:
        make = _Hashed if oracle == "olh" else once_words.OnceWords
        words = make(2, 2, 2, 0.4, oracle)

        def run(own: tuple[int, ...], rng: Any, words: Any = words) -> Any:
            rng.words = 3
            return once_words.run(words, _said(own, (1, 0)), words=rng, public=rng, private=rng)

        def simulate(own: tuple[int, ...], rng: Any, words: Any = words) -> Any:
            return once_words.simulate(words, _said(own, (1, 0)), rng)

        yield _entry(
            f"once_words_{oracle}", f"one report a user, words, {oracle}", (once_words.OnceWords, once_words.simulate), 0.4,
            partial(simulated_loss, run, simulate, list(product((0, 1), repeat=2))),
            "only holders support a word" if oracle == "olh" else "reports at 1.1 epsilon",
            ("evolving/rivals/once_words.py", *(("simulate_support(held, int(sizes.sum()), rng)", "simulate_support(held, held, rng)")
             if oracle == "olh" else ("return SignFlip(self.epsilon)", "return SignFlip(1.1 * self.epsilon)"))),
        )  # fmt: skip


_functions = cache(RandomFunctions)  # asked for in each of many runs


@dataclass(frozen=True)
class _Hashed(once_words.OnceWords):
    @property
    def local_hash(self) -> RandomFunctions:
        return _functions(self.epsilon)


def _few_changes() -> Iterator[Entry]:
    for layers in ("rappor", "loloha"):
        two = getattr(memoized.Memoized, layers)(1, 2, _EPSILON, _EPSILON / 2)
        pair = getattr(memoized.Memoized, layers)(2, 2, _EPSILON, _EPSILON / 2)

        def loss(two: Any = two, pair: Any = pair) -> float:
            """Also of two users whose bits fall below two thresholds, which chance decides."""
            told = simulated_loss(
                lambda own, rng: memoized.run(two, _bits(own), bits=rng, private=rng),
                lambda own, rng: memoized.simulate(two, _bits(own), rng), list(product((0, 1), repeat=2)),
            )  # fmt: skip
            streams = ThresholdStream.make(2, (0.25, 0.5))
            with one_at_a_time(threshold_stream):
                alike = told < math.inf and same_law(
                    lambda rng: memoized.run(pair, streams, bits=rng, private=rng),
                    lambda rng: memoized.simulate(pair, streams, rng),
                )
            return told if alike else math.inf

        yield _entry(
            f"memoized_{layers}", f"memoization, {layers}", (memoized.Memoized, memoized.simulate), two.transcript_loss(),
            loss, "reports of zero get no noise",
            ("evolving/rivals/memoized.py", "rng.binomial(ones, noise) + rng.binomial(settings.n_users - ones, noise)", "rng.binomial(ones, noise)"),
        )  # fmt: skip
    few = tree.ChangeTree(1, 3, _EPSILON, 2, "best", tuned=False)
    pair = tree.ChangeTree(2, 2, _EPSILON, 1, "best", tuned=False)

    def of(means: tuple[float, ...]) -> tuple[Any, ThresholdStream]:
        settings = few if len(means) == 3 else pair
        return settings, ThresholdStream.make(settings.n_users, means)

    def chunks() -> float:
        with one_at_a_time(threshold_stream):
            return simulated_loss(
                lambda means, rng: tree.run(*of(means), bits=rng, private=rng), lambda means, rng: tree.simulate(*of(means), rng),
                list(product((0, 1), repeat=3)), [(0.25, 0.5)],
            )  # fmt: skip

    yield _entry(
        "tree", "dyadic tree", (tree.ChangeTree, tree.simulate), _EPSILON, chunks,
        "fair coins are left out", ("evolving/rivals/tree.py", "2 * rng.binomial(still, 0.5) - still", "np.zeros_like(still)"),
    )  # fmt: skip


def _thresh() -> Iterator[Entry]:
    settings = Thresh(2, 3, 1, _EPSILON, 0.2, 0.3, 1, 2, unit=0.01, beta=0.05, margin=0.2)
    others = (0, 0, 0)
    yield _entry(
        "thresh", "THRESH", (Thresh, thresh_simulation.simulate), _EPSILON,
        lambda: simulated_loss(
            lambda own, rng: thresh_protocol.run(settings, _bits(own, others), bits=rng, private=rng),
            lambda own, rng: thresh_simulation.simulate(settings, _bits(own, others), rng).public,
            [others, (1, 0, 0)],
        ),
        "votes beyond the cap", ("evolving/thresh_simulation.py", "np.arange(self.users.shape[1]) < cap", "np.arange(self.users.shape[1]) <= cap"),
    )  # fmt: skip
    heavy = HeavyThresh(replace(settings, horizon=2), 2)
    yield _entry(
        "heavy_thresh", "HEAVYTHRESH", (HeavyThresh, heavy_simulation.simulate), _EPSILON,
        lambda: simulated_loss(
            lambda own, rng: heavy_protocol.run(heavy, _said(own, (0, 0)), rng, rng, rng),
            lambda own, rng: heavy_simulation.simulate(heavy, _said(own, (0, 0)), rng).public,
            [(0, 0), (1, 0)],
        ),
        "silent votes are their mean", ("evolving/heavy_simulation.py", "rng.binomial(voting.n_users - yes, randomizer.flip)",
         "round((voting.n_users - yes) * randomizer.flip)"),
    )  # fmt: skip


def _many() -> Iterator[Entry]:
    """Numbers of users that simulations draw for all of a group together."""
    one = Thresh(1, 1, 1, _EPSILON, 0.2, 0.4, 1, 1, unit=0.01, beta=0.05, margin=0.1)
    several = {users: HeavyThresh(replace(one, n_users=users), 2) for users in (1, 2)}
    laws = np.array([[0.25, 0.75], [1.0, 0.0]])
    mine, other, both = (WordStream.make([users], laws, [(law,)], 1) for users, law in ((1, 0), (1, 1), (2, 0)))

    def words() -> float:
        """All users but those who are too many are drawn as Poisson numbers."""
        with (
            mock.patch.object(heavy_simulation.Known, "make", return_value=None),
            mock.patch.object(heavy_simulation, "_LEFT", 0),
        ):
            return simulated_loss(
                lambda said, rng: heavy_protocol.run(several[said.n_users], said, rng, rng, rng),
                lambda said, rng: heavy_simulation.simulate(several[said.n_users], said, rng).public, [mine, other], [both],
                partial(law_of_accepted, most=2),
            )  # fmt: skip

    base = Thresh(1, 3, 2, _EPSILON, 0.2, 0.3, 1, 2, unit=0.01, beta=0.05, margin=0.2)

    def bits(crowd: bool) -> float:
        """Of groups of which some see a change and some do not: who, cell by cell, or how many and then who."""

        def of(said: BitStream) -> Thresh:
            unit = 0.25 if said.late.any() else 0.01  # so that of users who differ some can see the change
            return replace(base, n_users=said.n_users, horizon=said.horizon, epoch_length=said.epoch_length, unit=unit)

        length = 1 if crowd else 2
        pair = BitStream.make([2], [(0.0, 0.5)], 2, late=[1, 0], late_means=[(0.5, 0.5)])
        uncertain = (
            BitStream.make([1], [(0.25, 0.5, 0.75)], length),
            pair if crowd else BitStream.make([2], [(0.25, 0.5)], 1),
        )
        certain = [BitStream.make([1], [means], length) for means in ((0, 0, 0), (1, 0, 0))]

        with (
            nullcontext() if crowd else mock.patch.object(thresh_simulation, "_FEW", -1.0),
            nullcontext() if crowd else mock.patch.object(count_law, "_SMALL", -1),
        ):
            return simulated_loss(
                lambda said, rng: thresh_protocol.run(of(said), said, bits=rng, private=rng),
                lambda said, rng: thresh_simulation.simulate(of(said), said, rng).public, certain, uncertain,
            )  # fmt: skip

    for id, name, mutant, old, new in (
        ("crowd", "few of whom see a change", "everybody sees what few do", "yes.astype(np.int64) - (all_yes is not None)", "1 - (all_yes is not None)"),
        ("cells", "many of whom see a change", "as many as are expected see it", "self.rng.binomial(may, np.clip(above[high] + below[low], 0, 1)[:, None])",
         "np.rint(may * np.clip(above[high] + below[low], 0, 1)[:, None]).astype(np.int64)"),
    ):  # fmt: skip
        yield _entry(
            f"thresh_{id}", f"THRESH, a group, {name}", (Thresh, thresh_simulation.simulate), _EPSILON, partial(bits, id == "crowd"),
            mutant, ("evolving/thresh_simulation.py", old, new),
        )  # fmt: skip
    yield _entry(
        "heavy_thresh_many", "HEAVYTHRESH, reports of many", (HeavyThresh, heavy_simulation.simulate), 0.4, words,
        "numbers of reports are their means", ("evolving/heavy_simulation.py", "users = rng.poisson(means)\n        while (others",
        "users = np.rint(means).astype(np.int64)\n        while (others"),
    )  # fmt: skip


def _later() -> Iterator[Entry]:
    """Second updates, and votes after these: of one user, in three or four epochs."""
    voting = Thresh(1, 4, 1, _EPSILON, 0.2, 0.2, 1, 2, unit=0.01, beta=0.05, margin=0.2)
    short = replace(voting, horizon=3)
    settings = {
        "": voting, "_sentinel": replace(short, start="sentinel"),
        "_printed": replace(short, exhaustion="printed", estimate_cap=1), "_alike": replace(voting, epoch_length=10**6),
    }  # fmt: skip
    path = "evolving/heavy_simulation.py"
    changes = {
        "": ("votes of the epoch of an update are not charged", "users[:, column + 1] += self._given(voted", "users[:, column] += self._given(voted"),
        "_sentinel": ("votes of the epoch of an update are not charged", "users[:, column + 1] += self._given(voted", "users[:, column] += self._given(voted"),
        "_printed": ("users without estimates report", "group.update(epoch, release.estimates_left > 0)", "group.update(epoch, True)"),
        "_alike": ("an update gives votes back", "self.reference = self.laws[epoch - 1]", "self.reference, self.votes_cast = self.laws[epoch - 1], 0"),
    }  # fmt: skip
    for id, own in settings.items():
        sequences = [(0, 1, 0, 1)[: own.horizon], (0, 0, 1, 0)[: own.horizon]]

        def words(own: Thresh = own, id: str = id, sequences: Any = sequences) -> float:
            heavy, said = HeavyThresh(own, 2), partial(_said, length=own.epoch_length)
            known = mock.patch.object(heavy_simulation.Known, "make", return_value=None) if id == "_alike" else nullcontext()
            with known:
                return simulated_loss(
                    lambda held, rng: heavy_protocol.run(heavy, said(held), rng, rng, rng),
                    lambda held, rng: heavy_simulation.simulate(heavy, said(held), rng).public, sequences,
                )  # fmt: skip

        mutant, old, new = changes[id]
        yield _entry(
            f"heavy_thresh_later{id}", f"HEAVYTHRESH, two updates{id.replace('_', ', ')}",
            (HeavyThresh, heavy_simulation.simulate), _EPSILON, words, mutant, (path, old, new),
        )  # fmt: skip
        if id == "_alike":
            continue

        def bits(own: Thresh = own, sequences: Any = sequences) -> float:
            return simulated_loss(
                lambda held, rng: thresh_protocol.run(own, _bits(held), bits=rng, private=rng),
                lambda held, rng: thresh_simulation.simulate(own, _bits(held), rng).public, sequences,
            )  # fmt: skip

        yield _entry(
            f"thresh_later{id}", f"THRESH, two updates{id.replace('_', ', ')}", (Thresh, thresh_simulation.simulate), _EPSILON,
            bits, "votes of the epoch of an update are not charged",
            ("evolving/thresh_simulation.py", "held, later in ((law.draw_outside, voted, 1)", "held, later in ((law.draw_outside, voted, 0)"),
        )  # fmt: skip


def _crews() -> Iterator[Entry]:
    voting = Thresh(1, 3, 1, _EPSILON, _EPSILON / 2, 0.0, 1, 2, unit=0.01, margin=0.1)
    crews = crew_thresh.CrewThresh(4, _EPSILON, voting, changes=1, cell=1, spare_cell=1)

    def dealt(own: tuple[int, ...], rng: Any) -> Any:
        rng.alike = 3
        return crew_thresh.run(crews, _bits(own, *[(0, 0, 0)] * 3), bits=rng, private=rng)

    yield _entry(
        "crew_thresh", "THRESH with roles by lot", (crew_thresh.CrewThresh, crew_thresh.simulate), _EPSILON,
        lambda: simulated_loss(
            dealt, lambda own, rng: crew_thresh.simulate(crews, BitStream.make([1, 3], [own, (0, 0, 0)], 1), rng),
            [(1, 0, 1), (0, 0, 0)],  # what the mutant gets wrong first
        ),
        "the first crew votes for ever", ("evolving/rivals/crew_thresh.py", "state.order, [max(0, update - 1)])", "state.order, [0])"),
    )  # fmt: skip
    voting = replace(voting, horizon=2, epsilon=0.4, vote_epsilon=0.2, reach=2)
    words = _HashedCrews(4, 0.4, HeavyThresh(voting, 2), changes=1, cell=1, spare_cell=1)

    def run(own: tuple[int, ...], rng: Any) -> Any:
        rng.words, rng.alike = 3, 3
        return crew_words.run(words, _said(own, *[(0, 0)] * 3), words=rng, public=rng, private=rng)

    yield _entry(
        "crew_words", "HEAVYTHRESH with roles by lot", (crew_words.CrewWords, crew_words.simulate), 0.4,
        lambda: simulated_loss(
            run, lambda own, rng: crew_words.simulate(words, WordStream.make([1, 3], np.eye(2), [own, (0, 0)], 1), rng).public,
            [(1, 1), (0, 0)],
        ),
        "the first cell reports in each update",
        ("evolving/rivals/crew_words.py", "sampled(part(settings.crews + update), private)", "sampled(part(settings.crews), private)"),
    )  # fmt: skip


@dataclass(frozen=True)
class _HashedCrews(crew_words.CrewWords):
    def reporters(self, update: int) -> once_words.OnceWords:
        return _reporter(self.epsilon)


_reporter = cache(partial(_Hashed, 1, 1, 2))  # asked for in each of many runs
