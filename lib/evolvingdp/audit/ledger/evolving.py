"""Entries of the ledger for data that change at home: whole transcripts of THRESH and HEAVYTHRESH, and their rivals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from evolvingdp.audit.exact import rivals, transcripts
from evolvingdp.audit.exact.draws import loss_of
from evolvingdp.audit.exact.laws import as_stated
from evolvingdp.audit.ledger.entry import EXACT, Entry
from evolvingdp.evolving import baselines, heavy_protocol, heavy_simulation, thresh_protocol, thresh_simulation
from evolvingdp.evolving.heavy_projection import HashSigns
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals import crew_thresh, crew_words, memoized, once, once_words, signs, tree
from evolvingdp.evolving.rivals.crew_thresh import CrewThresh
from evolvingdp.evolving.rivals.crew_words import CrewWords
from evolvingdp.evolving.streams import BitStream, WordStream
from evolvingdp.evolving.thresh import Thresh

_EPSILON = 1.0


def entries() -> Iterator[Entry]:
    yield from _thresh()
    yield from _recomputed()
    yield from _once()
    yield from _crews()
    yield from _few_changes()


def _entry(
    id: str, name: str, covers: tuple[Any, ...], promised: float, measure: Any, **more: Any,
) -> Entry:  # fmt: skip
    one = {"unit": "all that a user ever sends", "neighbours": "any two sequences of a user"} | more
    return Entry(
        id, "evolving", name, covers, one["unit"], one["neighbours"], EXACT, promised, measure,
        more.get("delta", 0.0),
    )  # fmt: skip


def _once() -> Iterator[Entry]:
    """Users split over epochs: one report each."""
    yield _entry(
        "once", "one report a user, means", (once.Once, once.step, once.simulate), _EPSILON,
        lambda: rivals.once_loss(once.Once(2, 2, 2, _EPSILON)),
    )  # fmt: skip
    covers = (once_words.OnceWords, once_words.step, once_words.simulate)
    for oracle in once_words.ORACLES:
        yield _entry(
            f"once_words_{oracle}", f"one report a user, words, {oracle}", covers, _EPSILON,
            lambda oracle=oracle: rivals.once_words_loss(once_words.OnceWords(1, 2, 2, _EPSILON, oracle)),
        )  # fmt: skip


def _crews() -> Iterator[Entry]:
    """Roles by lot: a voter has one truthful vote of epsilon / 2, a reporter one or two reports."""

    def voting(reach: int = 1) -> Thresh:
        return Thresh(3, 5, 1, _EPSILON, _EPSILON / 2, 0.0, 1, 2, unit=0.01, margin=0.1, reach=reach)

    def crews(role: str) -> float:
        return transcripts.crew_loss(CrewThresh(9, _EPSILON, voting(), changes=1, cell=1, spare_cell=1, reports=2), role)

    def words(role: str) -> float:
        return transcripts.crew_words_loss(
            CrewWords(9, _EPSILON, HeavyThresh(voting(2), 2), changes=1, cell=1, spare_cell=1), role
        )

    covers: tuple[Any, ...] = (CrewThresh, crew_thresh.step, crew_thresh.simulate)
    for role in ("voters", "reporters"):
        yield _entry(
            f"crew_thresh_{role}", f"THRESH with roles by lot, {role}", covers, _EPSILON,
            partial(crews, role),
        )  # fmt: skip
    covers = (CrewWords, crew_words.step, crew_words.simulate)
    for role in ("voters", "reporters"):
        yield _entry(
            f"crew_words_{role}", f"HEAVYTHRESH with roles by lot, {role}", covers, _EPSILON,
            partial(words, role),
        )  # fmt: skip


def _thresh() -> Iterator[Entry]:
    def voting(horizon: int, **changes: Any) -> Thresh:
        base = {"vote_epsilon": 0.2, "estimate_epsilon": 0.3, "vote_cap": 1, "estimate_cap": 1} | changes
        return Thresh(10, horizon, 1, 100.0, unit=0.01, beta=0.05, **base)

    covers: tuple[Any, ...] = (Thresh, thresh_protocol.step, thresh_simulation.simulate)
    yield _entry(
        "thresh_forced", "THRESH, start forced", covers, voting(5).privacy_loss, lambda: transcripts.thresh_loss(voting(5)),
    )  # fmt: skip
    yield _entry(
        "thresh_sentinel", "THRESH, start sentinel", covers, 0.7,
        lambda: transcripts.thresh_loss(voting(5, start="sentinel")),
    )  # fmt: skip
    yield _entry(
        "thresh_printed", "THRESH, exhaustion as printed", covers, 0.7,
        lambda: transcripts.thresh_loss(voting(4, exhaustion="printed")),
    )  # fmt: skip

    def tuned() -> float:
        settings = Thresh.tuned(10**6, 5, 1, _EPSILON, changes=1, deviation=0.01, spare=0)
        return as_stated(transcripts.thresh_loss(replace(settings, epsilon=100.0)), settings.privacy_loss)

    yield _entry(
        "thresh_tuned", "THRESH, tuned", covers, _EPSILON, tuned,
    )  # fmt: skip
    covers = (HeavyThresh, heavy_protocol.step, heavy_simulation.simulate)
    yield _entry(
        "heavy_thresh_printed", "HEAVYTHRESH, exhaustion as printed", covers, 0.7,
        lambda: transcripts.heavy_loss(HeavyThresh(voting(4, exhaustion="printed"), 2)),
    )  # fmt: skip
    for name, phi in (("Hadamard", None), ("hashed", HashSigns(2, 5, 0))):
        yield _entry(
            f"heavy_thresh_{name.lower()}", f"HEAVYTHRESH, {name} signs", covers, 0.7,
            lambda phi=phi: transcripts.heavy_loss(HeavyThresh(voting(4), 2, phi)),
        )  # fmt: skip
    yield _entry(
        "heavy_thresh_sentinel", "HEAVYTHRESH, start sentinel", covers, 0.7,
        lambda: transcripts.heavy_loss(HeavyThresh(voting(4, start="sentinel"), 2)),
    )  # fmt: skip


def _recomputed() -> Iterator[Entry]:
    epochs = 11  # with 6 reports

    def sent(composition: str, delta: float) -> float:
        def estimates(bit: int, rng: Any) -> Any:
            stream = BitStream.make([1], [[float(bit)] * epochs], 1)
            return baselines.recompute(stream, _EPSILON, rng, every=2, composition=composition, delta=delta or 1e-6)

        return loss_of(estimates, (0, 1), delta)

    for composition, delta in (("basic", 0.0), ("advanced", 1e-2), ("optimal", 1e-2)):
        yield _entry(
            f"recompute_{composition}", f"recomputation, {composition} composition",
            (baselines.recompute, baselines.epsilon_of_report), _EPSILON, partial(sent, composition, delta),
            delta=delta,
        )  # fmt: skip
    thresh = Thresh(1, 3, 1, _EPSILON, 0.1, 0.8, 1, 1, unit=0.01, margin=0.1, reach=2)

    def again(words: tuple[int, ...], rng: Any) -> Any:
        return list(baselines.recompute_words(HeavyThresh(thresh, 2), WordStream.make([1], np.eye(2), [words], 1), rng))

    yield _entry(
        "recompute_words", "recomputation of words", (baselines.recompute_words,), _EPSILON,
        lambda: loss_of(again, product((0, 1), repeat=3)),
    )  # fmt: skip


def _few_changes() -> Iterator[Entry]:
    """Dyadic trees, and memoization with the two guarantees that it has."""
    for randomizer in tree.RANDOMIZERS:
        promised = {"erlingsson": _EPSILON / 2, "future_rand": 0.3}.get(randomizer, _EPSILON)

        def loss(randomizer: str = randomizer) -> float:
            even, tuned = (tree.ChangeTree(10, 3, _EPSILON, 2, randomizer, tuned=tuned) for tuned in (False, True))
            return max(as_stated(rivals.tree_loss(made), made.privacy_loss) for made in (even, tuned))

        yield _entry(
            f"tree_{randomizer}", f"dyadic tree, {randomizer.replace('_', ' ')}",
            (tree.ChangeTree, tree.collect, signs.Signs), promised, loss,
        )  # fmt: skip

    def many() -> float:
        """From the chances that flips are drawn with: of the patterns whose first d signs are flipped."""
        chances = signs.future_rand(40, _EPSILON).flip_chances
        flipped = np.log(np.diag(chances))
        logs = [flipped[:d].sum() + np.log1p(-chances[d:, d : d + 1]).sum() for d in range(len(chances) + 1)]
        return float(np.ptp(logs))

    yield _entry(
        "signs_future_rand", "FutureRand, 40 changes", (signs.Signs, signs.future_rand), _EPSILON, many,
        unit="the reports of 40 changes",
    )  # fmt: skip

    few = tree.ChangeTree(10, 2, _EPSILON, 1, "best", tuned=False)
    yield _entry(
        "tree_two_users", "dyadic tree, two users", (tree.ChangeTree, tree.collect, signs.Signs), _EPSILON,
        lambda: rivals.tree_loss(few, others=1),
    )  # fmt: skip
    covers: tuple[Any, ...] = (memoized.Memoized, memoized.collect)
    yield _entry(
        "memoized_two_users", "memoization, two layers, two users", covers, _EPSILON,
        lambda: rivals.memoized_loss(memoized.Memoized.rappor(10, 2, _EPSILON, _EPSILON / 2), others=1),
        unit="all that a user ever sends in 2 epochs",
    )  # fmt: skip
    for name, promised in (("rappor", 0.7), ("loloha", 1.5)):

        def two(name: str = name) -> float:
            made = getattr(memoized.Memoized, name)(10, 3, _EPSILON, _EPSILON / 2)
            constant = as_stated(rivals.memoized_loss(made, constant=True), made.one_value_loss())
            return max(constant, as_stated(rivals.memoized_loss(made), made.transcript_loss()))

        yield _entry(
            f"memoized_{name}", f"memoization, two layers: {name}", covers, promised, two,
            unit="all that a user ever sends in 3 epochs",
        )  # fmt: skip

    def one_layer() -> float:
        made = memoized.Memoized.dbitflip(10, 3, _EPSILON)
        return as_stated(rivals.memoized_loss(made, constant=True), made.one_value_loss())

    yield _entry(
        "memoized_dbitflip", "memoization, one layer: dBitFlipPM", covers, _EPSILON / 2, one_layer,
        neighbours="two bits that never change: changes are not protected",
    )  # fmt: skip
