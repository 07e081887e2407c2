"""Entries of the ledger for data that change at home: whole transcripts of THRESH and HEAVYTHRESH, and recomputation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from evolvingdp.audit.exact import rivals, sequences, transcripts
from evolvingdp.audit.exact.laws import epsilon_at, product
from evolvingdp.audit.ledger.entry import EXACT, Entry
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.evolving import baselines, heavy_protocol, heavy_simulation, thresh_protocol, thresh_simulation
from evolvingdp.evolving.heavy_projection import HashSigns
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals import memoized, once, once_words, signs, tree
from evolvingdp.evolving.thresh import Thresh

_EPSILON = 1.0
_ON_A_GRID = math.log(3)  # randomizers' probabilities are then quarters and halves


def entries() -> Iterator[Entry]:
    yield from _thresh()
    yield from _once()
    yield from _few_changes()


def _once() -> Iterator[Entry]:
    """Users split over epochs: one report each."""
    unit, neighbours, mutant = "all that a user ever sends", "any two sequences of a user", "epsilon is a tenth larger"
    size, larger = (1, 2, 2), 1.1 * _ON_A_GRID
    yield Entry(
        "once", "evolving", "one report a user, means", (once.Once, once.step, once.simulate), unit, neighbours, EXACT,
        _ON_A_GRID, partial(rivals.once_loss, once.Once(*size, _ON_A_GRID)),
        mutant, partial(rivals.once_loss, once.Once(*size, larger)),
    )  # fmt: skip
    covers = (once_words.OnceWords, once_words.step, once_words.simulate)
    for oracle in once_words.ORACLES:
        right, wrong = (once_words.OnceWords(*size, epsilon, oracle) for epsilon in (_ON_A_GRID, larger))
        yield Entry(
            f"once_words_{oracle}", "evolving", f"one report a user, words, {oracle}", covers, unit, neighbours, EXACT,
            _ON_A_GRID, partial(rivals.once_words_loss, right), mutant, partial(rivals.once_words_loss, wrong),
        )  # fmt: skip


def _thresh() -> Iterator[Entry]:
    unit, neighbours = "all that a user ever sends", "any two sequences of a user"
    mutant = "the cap on estimates is off by one"

    def voting(horizon: int, **changes: Any) -> Thresh:
        base = {"vote_epsilon": 0.2, "estimate_epsilon": 0.3, "vote_cap": 1, "estimate_cap": 1} | changes
        return Thresh(10, horizon, 1, 100.0, unit=0.01, beta=0.05, **base)

    covers: tuple[Any, ...] = (Thresh, thresh_protocol.step, thresh_simulation.simulate)
    for start in ("forced", "sentinel"):
        right, wrong = voting(5, start=start), voting(5, start=start, estimate_cap=2 if start == "forced" else 4)
        yield Entry(
            f"thresh_{start}", "evolving", f"THRESH, start {start}", covers, unit, neighbours, EXACT, right.privacy_loss,
            partial(transcripts.thresh_loss, right),
            mutant if start == "forced" else "three estimates too many", partial(transcripts.thresh_loss, wrong),
        )  # fmt: skip
    covers = (HeavyThresh, heavy_protocol.step, heavy_simulation.simulate)
    for name, phi in (("Hadamard", None), ("hashed", HashSigns(2, 5, 0))):
        right_words, wrong_words = (HeavyThresh(voting(4, estimate_cap=cap), 2, phi) for cap in (1, 2))
        yield Entry(
            f"heavy_thresh_{name.lower()}", "evolving", f"HEAVYTHRESH, {name} signs", covers, unit, neighbours, EXACT,
            right_words.voting.privacy_loss,
            partial(transcripts.heavy_loss, right_words),
            mutant, partial(transcripts.heavy_loss, wrong_words),
        )  # fmt: skip

    def recomputed(composition: str, delta: float, sent: int) -> float:
        one = SignFlip(baselines.epsilon_of_report(_EPSILON, 6, composition, delta or 1e-6))
        return epsilon_at([product([one.probabilities(bit)] * sent) for bit in (-1, 1)], delta)

    for composition, delta in (("basic", 0.0), ("advanced", 1e-2), ("optimal", 1e-2)):
        extra = 12 if composition == "advanced" else 7
        yield Entry(
            f"recompute_{composition}", "evolving", f"recomputation, {composition} composition",
            (baselines.recompute, baselines.epsilon_of_report), unit, neighbours, EXACT, _EPSILON,
            partial(recomputed, composition, delta, 6),
            f"{extra} reports instead of the 6 that are composed",
            partial(recomputed, composition, delta, extra), delta,
        )  # fmt: skip


def _few_changes() -> Iterator[Entry]:
    """Dyadic trees, and memoization with the two guarantees that it has."""
    unit, neighbours = "all that a user ever sends", "any two sequences of a user"
    for randomizer in tree.RANDOMIZERS:
        settings = tree.ChangeTree(10, 6, _EPSILON, 2, randomizer, tuned=False)
        yield Entry(
            f"tree_{randomizer}", "evolving", f"dyadic tree, {randomizer.replace('_', ' ')}",
            (tree.ChangeTree, tree.collect, signs.Signs), unit, neighbours, EXACT, settings.privacy_loss,
            partial(sequences.tree_loss, settings),
            "one change more is let through", partial(sequences.tree_loss, settings, extra=1),
        )  # fmt: skip
    covers: tuple[Any, ...] = (memoized.Memoized, memoized.collect)
    two_layers = {
        "rappor": memoized.Memoized.rappor(10, 3, _EPSILON, _EPSILON / 2),
        "loloha": memoized.Memoized.loloha(10, 3, _EPSILON, _EPSILON / 2),
    }
    for name, layers in two_layers.items():
        yield Entry(
            f"memoized_{name}", "evolving", f"memoization, two layers: {name}", covers,
            f"{unit} in 3 epochs", neighbours, EXACT,
            layers.transcript_loss(), partial(sequences.memoized_loss, layers, 3),
            "one report more", partial(sequences.memoized_loss, layers, 4),
        )  # fmt: skip
    layer, larger = (memoized.Memoized.dbitflip(10, 3, epsilon) for epsilon in (_EPSILON, 1.1 * _EPSILON))
    yield Entry(
        "memoized_dbitflip", "evolving", "memoization, one layer: dBitFlipPM", covers, unit,
        "two bits that never change: changes are not protected", EXACT, layer.permanent_epsilon,
        partial(sequences.memoized_loss, layer, 3, constant=True),
        "answers at 1.1 epsilon", partial(sequences.memoized_loss, larger, 3, constant=True),
    )  # fmt: skip
