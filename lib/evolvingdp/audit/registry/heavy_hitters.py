"""The registry's entries for searches and frequency oracles: one report of each user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.registry.entry import FINITE, REPORTS, Door, Known, Mechanism, Trial
from evolvingdp.core.geometry import Geometry
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import bitstogram, rappor, shuffling
from evolvingdp.heavy_hitters.bitstogram import Bitstogram, explicit_hist
from evolvingdp.heavy_hitters.count_sketch import FreqOracle
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.sketches.projective import ProjectiveOracle
from evolvingdp.heavy_hitters.text_search import Texts
from evolvingdp.heavy_hitters.tree_hist import Algorithm3, Levels, TreeHist
from evolvingdp.heavy_hitters.word_tree import Nodes, WordTree

Rng = np.random.Generator
_USER, _REPORT = "all reports of a user", "a report"
_SIZE = "public: of hash functions, trees and lists"
_TREE = WordTree((1, 1), length=2)


def mechanisms() -> Iterator[Mechanism]:
    def entry(
        id: str, covers: tuple[Any, ...], how: str, trial: Any, *more: Any, unit: str = _USER, **named: Any
    ) -> Mechanism:
        return Mechanism(id, "heavy_hitters", covers, unit, "any two words", how, trial, *more, **named)

    yield entry("local_rnd", (FreqOracle.report,), FINITE, _client_trial, unit=_REPORT)
    yield entry("freq_oracle", (FreqOracle, FreqOracle.collect), REPORTS, _oracle_trial, _oracle_doors, (FreqOracle,))
    sizes = dict.fromkeys(("rows", "width", "max_candidates"), _SIZE)
    covers: tuple[Any, ...] = (TreeHist, Levels.collect)
    yield entry("tree_hist", covers, FINITE, _tree_trial, _tree_doors, made_by=(TreeHist,), public=sizes, cost=20)
    printed = (Algorithm3, Algorithm3.draw)
    yield entry("algorithm_3", printed, REPORTS, _printed_trial)
    sizes, covers = dict.fromkeys(("longest", "rows", "cells"), _SIZE), (Texts, Texts.encode, Texts.point)
    made_by: tuple[Any, ...] = (Texts,)
    yield entry("texts", covers, FINITE, _text_trial, made_by=made_by, public=sizes)
    sizes = dict.fromkeys(("length", "buckets", "repetitions", "rows", "width", "coded"), _SIZE)
    covers = (Bitstogram, bitstogram.BitstogramProtocol.collect)
    yield entry("bitstogram", covers, REPORTS, _bits_trial, _bits_doors, made_by=(Bitstogram,), public=sizes)
    covers = (ProjectiveOracle, ProjectiveOracle.collect, ProjectiveOracle.report)
    yield entry("projective", covers, FINITE, _projective_trial)
    yield entry("explicit_hist", (explicit_hist,), FINITE, _explicit_trial, unit=_REPORT)
    covers = (Rappor, rappor.RapporProtocol.report, rappor.RapporProtocol.collect)
    sizes = {"n_bits": _SIZE, "n_cohorts": _SIZE}
    made_by = (Rappor, Rappor.one_shot)
    told = "reports of one word"
    yield entry("rappor", covers, FINITE, _rappor_trial, _rappor_doors, unit=told, made_by=made_by, public=sizes, cost=16)
    covers = (shuffling.Shuffled, shuffling.epsilon_of_a_report)
    yield entry("shuffled", covers, FINITE, _shuffled_trial, unit="the reports of all, in no order")


def _epsilon(rng: Rng) -> float:
    return float(np.exp(rng.uniform(-2.0, 2.0)))


def _pair(rng: Rng, most: int, users: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    keys = rng.integers(0, most, users).astype(np.uint64)
    other = keys.copy()
    other[0] = (int(keys[0]) + int(rng.integers(1, most))) % most
    return keys, other


def _run(protocol: Any, held: Any, noise: Any) -> Any:
    return protocol.collect(held, stream(0, "public"), noise)


def _client_trial(rng: Rng) -> Trial:
    """Of one user or two, at public places."""
    made, users = FreqOracle(MultiplyShift.draw(2, 4, rng), _epsilon(rng)), int(rng.integers(1, 3))
    places = made.assign(users, rng)
    other = rng.integers(0, 50, users - 1)
    data = tuple(np.array([key, *other], dtype=np.uint64) for key in range(4))
    return Trial((made, places.tolist()), lambda held, noise: made.report(held, places, noise), data, made.epsilon)


def _oracle_trial(rng: Rng) -> Trial:
    rows, width, epsilon = int(rng.integers(1, 3)), int(rng.choice([2, 4])), _epsilon(rng)
    if rng.random() < 0.3:
        made = bitstogram.hashtogram(rows, width, epsilon, rng)
    else:
        made = FreqOracle(MultiplyShift.draw(rows, width, rng), epsilon)
    pair = _pair(rng, 50, int(rng.integers(1, 6)))
    return Trial((made, pair[0].tolist()), lambda held, noise: _sums(_run(made, held, noise)), pair, epsilon)


def _sums(sketch: Any) -> Any:
    return [sketch.sums, sketch.n_reports]


def _all_sums(reports: Any) -> Any:
    return [*map(_sums, reports.levels), _sums(reports.final) if reports.final is not None else None]


def _oracle_doors(rng: Rng) -> list[Door]:
    return [_keys(FreqOracle(MultiplyShift.draw(2, 4, stream(0, "hashes")), 1.0))]


def _keys(protocol: Any, words: Any = range(9)) -> Door:
    """`collect` of four users who hold some of `words`."""
    return Door(
        "collect",
        lambda noise, keys: _run(protocol, keys, noise),
        lambda drawn: {"keys": drawn.choice(np.array(words), 4)},
        loose={"keys": "any number of users may report"},
    )


def _leaves(rng: Rng, users: int) -> tuple[Nodes, Nodes]:
    words = ["ab", "cd", "ax", "zz"]
    keys = _TREE.encode([words[place] for place in rng.integers(0, 4, users)])
    other = keys.copy()
    other[0] = next(leaf for leaf in _TREE.encode(words)[rng.permutation(4)] if (leaf != keys[0]).any())
    return keys, other


def _tree_trial(rng: Rng) -> Trial:
    made = TreeHist(_TREE, float(rng.uniform(0.5, 1.2)), 10.0, rows=1, width=2, leaf_share=float(rng.uniform(0.1, 0.9)))
    return _tree_trial_of(made, made.draw_hashes(rng), made.epsilon, rng, 1)


def _printed_trial(rng: Rng) -> Trial:
    epsilon, drawn = _epsilon(rng), int(rng.integers(1, 6))
    return _tree_trial_of("Algorithm 3", Algorithm3.draw(_TREE, epsilon, 10.0, 2, 4, rng), epsilon, rng, drawn)


def _tree_trial_of(made: Any, protocol: Levels, epsilon: float, rng: Rng, users: int) -> Trial:
    pair = _leaves(rng, users)
    return Trial((made, pair[0].tolist()), lambda held, noise: _all_sums(_run(protocol, held, noise)), pair, epsilon)


def _tree_doors(rng: Rng) -> list[Door]:
    protocol = TreeHist(_TREE, 1.0, 10.0, rows=2, width=4).draw_hashes(stream(0, "hashes"))
    return [_keys(protocol, _TREE.encode(["ab", "cd", "ax", "zz"]))]


def _text_trial(rng: Rng) -> Trial:
    """Of a user's level and hash function, which are public: those of a stream."""
    made, level = Texts(float(rng.uniform(0.5, 1.2)), str(rng.integers(0, 9)), 3, 1, 2), int(rng.integers(0, 2))
    texts = ("a", "b", "ab", "é")
    return Trial((made, level), lambda text, noise: made.point(text, level, 0, noise), texts, made.epsilon)


def _bits_trial(rng: Rng) -> Trial:
    made = Bitstogram(
        _epsilon(rng),
        10.0,
        length=2,
        buckets=2,
        rows=2,
        width=4,
        final_share=float(rng.uniform(0.1, 0.9)),
        printed=bool(rng.random() < 0.5),
    )
    protocol, pair = made.draw_hashes(rng), _pair(rng, 26**2, int(rng.integers(1, 6)))
    return Trial((made, pair[0].tolist()), lambda held, noise: _all_sums(_run(protocol, held, noise)), pair, made.epsilon)


def _bits_doors(rng: Rng) -> list[Door]:
    protocol = Bitstogram(1.0, 10.0, length=2, buckets=2, rows=2, width=4).draw_hashes(stream(0, "hashes"))
    return [_keys(protocol)]


def _projective_trial(rng: Rng) -> Trial:
    made = ProjectiveOracle.draw(1, 4, float(rng.uniform(0.3, 1.5)), rng)
    pair = _pair(rng, 50, 1)
    return Trial(
        (made, pair[0].tolist(), pair[1].tolist()), lambda held, noise: _sums(_run(made, held, noise)), pair, made.epsilon
    )


def _explicit_trial(rng: Rng) -> Trial:
    epsilon, known = float(rng.uniform(0.05, 2.2)), Known(int(rng.integers(0, 2**62)))
    made = explicit_hist(epsilon)
    keys = tuple(np.array([key], dtype=np.uint64) for key in range(4))
    return Trial((made,), lambda held, noise: made.report(held, known, noise), keys, epsilon)


def _rappor_trial(rng: Rng) -> Trial:
    edge, reports = bool(rng.random() < 0.5), int(rng.integers(1, 3))
    if rng.random() < 0.5:
        made, reports = (
            Rappor.one_shot(float(rng.uniform(20.0, 50.0) if edge else rng.uniform(0.2, 3.0)), n_bits=2, n_cohorts=1),
            1,
        )
    else:
        noise = float(10.0 ** rng.uniform(-15.6, -8)) if edge else float(rng.uniform(0.1, 0.9))
        made = Rappor(2, 1, noise, *sorted(rng.uniform(0.05, 0.95, 2).tolist()))
    protocol = made.draw_hashes(stream(0, "hashes"))
    words = range(16)
    by_filter = {int(protocol.hashes.cells(np.array([0]), np.array([word], dtype=np.uint64))[0]): word for word in words}

    def run(word: int, noise: Any) -> Any:
        return protocol.report(np.full((1, reports), word, dtype=np.uint64), np.array([0]), noise)

    return Trial((made, reports), run, tuple(by_filter.values()), made.epsilon_of_reports(reports))


def _rappor_doors(rng: Rng) -> list[Door]:
    protocol = Rappor(2, 1).draw_hashes(stream(0, "hashes"))
    return [
        Door(
            "collect",
            lambda noise, keys: protocol.collect(keys, np.zeros(4, dtype=np.int64), noise),
            lambda drawn: {"keys": drawn.integers(0, 9, (4, 2)).astype(np.uint64)},
            loose={"keys": "any number of reports"},
        )
    ]


def _shuffled_trial(rng: Rng) -> Trial:
    """How often each report was sent, by users of whom all but one say the same."""
    users, epsilon, delta = int(rng.integers(2, 4)), float(rng.uniform(0.3, 2.0)), float(rng.choice([0.01, 0.1]))
    if rng.random() < 0.5:
        space = Geometry(2, 2)
        one = shuffling.epsilon_of_a_report(
            epsilon, delta, users, lambda _: (1 / space.share, space.common / space.points), 10.0
        )
        hashes = MultiplyShift.draw(1, space.points, stream(0, "hashes"), signed=False, scrambled=True)
        points = hashes.cells(np.array(0), np.arange(20, dtype=np.uint64)).tolist()
        keys, other = [points.index(point) for point in (0, 1)], points.index(int(rng.integers(0, space.points)))
        oracle = ProjectiveOracle(hashes, one, space)
        data = tuple(np.array([key, *[other] * (users - 1)], dtype=np.uint64) for key in keys)
        return Trial((oracle, users, delta), lambda held, noise: _run(oracle, held, noise).sums, data, epsilon, delta)
    one, same = shuffling.epsilon_of_a_report(epsilon, delta, users, lambda _: (2, 0.0), 10.0), int(rng.choice([-1, 1]))
    data = tuple(np.array([own, *[same] * (users - 1)]) for own in (-1, 1))
    return Trial((one, users, delta), lambda held, noise: SignFlip(one).randomize(held, noise).sum(), data, epsilon, delta)
