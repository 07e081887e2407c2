"""Entries of the ledger for heavy hitters: what users report from home, from the shipped `collect`, `report` and `step`.

Two users report, of whom the second holds what it holds in both worlds: noise that users share would give the first away.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.exact import reports
from evolvingdp.audit.exact.draws import law_of, loss_of
from evolvingdp.audit.exact.laws import as_stated, epsilon_at, rows
from evolvingdp.audit.exact.probes import Chosen
from evolvingdp.audit.exact.sensitivity import cost
from evolvingdp.audit.ledger.entry import EXACT, SENSITIVITY, Entry
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import bitstogram, count_sketch, olh, pem, rappor, tree_hist
from evolvingdp.heavy_hitters.binary_code import BinaryCode
from evolvingdp.heavy_hitters.sketches import local_rnd, projective
from evolvingdp.heavy_hitters.sketches.geometry import Geometry
from evolvingdp.heavy_hitters.trust import prefix_counts, shuffling
from evolvingdp.heavy_hitters.word_tree import WordTree

_TREE = WordTree((1, 1), length=2)
_WORDS = ["ab", "ac", "zb"]
_EPSILON = 0.8  # not 1: its inverse would be the same
_ANY = "any two words"


def entries() -> Iterator[Entry]:
    yield from _sketches()
    yield from _trees()
    yield from _local_hashing()
    yield from _projective()
    yield from _trusting()
    yield from _rappor()


def _entry(id: str, name: str, covers: tuple[Any, ...], measure: Any, **more: Any) -> Entry:
    one: dict[str, Any] = {"unit": "all reports of a user", "promised": _EPSILON} | more
    return Entry(
        id, "heavy_hitters", name, covers, one["unit"], _ANY, EXACT, one["promised"], measure,
    )  # fmt: skip


def _hashes(seed: int, width: int = 4, rows: int = 1) -> MultiplyShift:
    return MultiplyShift.draw(rows, width, stream(seed, "hashes"))


def _sketches() -> Iterator[Entry]:
    keys = np.arange(4)
    yield _entry(
        "freq_oracle", "LocalRnd, FreqOracle", (local_rnd.LocalRnd, count_sketch.FreqOracle),
        lambda: reports.collected_loss(lambda seed: count_sketch.FreqOracle(_hashes(seed, rows=2), _EPSILON), keys),
    )  # fmt: skip
    yield _entry(
        "freq_oracle_uncompressed", "FreqOracle, uncompressed", (count_sketch.FreqOracle,),
        lambda: reports.collected_loss(
            lambda seed: count_sketch.FreqOracle(_hashes(seed, 2), _EPSILON, "none"), keys, range(4)
        ),
    )  # fmt: skip
    yield _entry(
        "hashtogram", "Hashtogram", (bitstogram.hashtogram, bitstogram.Unsigned),
        lambda: reports.collected_loss(lambda seed: bitstogram.hashtogram(1, 4, _EPSILON, stream(seed, "hashes")), keys),
    )  # fmt: skip


def _trees() -> Iterator[Entry]:
    leaves = _TREE.encode(_WORDS)

    def tree(plan: str) -> float:
        options: list[dict[str, Any]] = [{}, {"shared_sketch": True}][: 1 + (plan != "split")]
        made = [tree_hist.TreeHist(_TREE, _EPSILON, 10.0, rows=1, width=4, plan=plan, **more) for more in options]
        return max(
            reports.collected_loss(lambda seed, one=one: one.draw_hashes(stream(seed, "hashes")), leaves, range(6))  # type: ignore[misc]
            for one in made
        )

    projective_tree = tree_hist.TreeHist(
        _TREE, _EPSILON, 10.0, rows=1, width=2, plan="two_reports", compression="projective"
    )
    for plan in tree_hist.PLANS:
        yield _entry(
            f"tree_hist_{plan}", f"TreeHist, plan {plan}", (tree_hist.TreeHist, tree_hist.Protocol),
            lambda plan=plan: tree(plan),
        )  # fmt: skip

    yield _entry(
        "tree_hist_projective", "TreeHist, two projective reports", (tree_hist.TreeHist, tree_hist.Protocol),
        lambda: reports.projected_loss(projective_tree, leaves),
    )  # fmt: skip

    def bits(plan: str) -> float:
        sized: dict[str, Any] = {"length": 1, "code": BinaryCode(5, 5), "buckets": 2, "plan": plan, "rows": 1, "width": 2}
        signed = bitstogram.Bitstogram(_EPSILON, 10.0, **sized)
        cells = bitstogram.Bitstogram(_EPSILON, 10.0, **sized, bit_as="cell", signed_final=False)
        messages = signed.encode(np.array(["a", "b", "p"]))
        return max(
            reports.collected_loss(lambda seed, made=made: made.draw_hashes(stream(seed, "hashes")), messages, range(seeds))  # type: ignore[misc]
            for made, seeds in ((signed, 16), (cells, 2))
        )

    for plan in bitstogram.PLANS:
        yield _entry(
            f"bitstogram_{plan}", f"Bitstogram, plan {plan}",
            (bitstogram.Bitstogram, bitstogram.BitstogramProtocol, bitstogram.CodeHashes), lambda plan=plan: bits(plan),
        )  # fmt: skip


def _local_hashing() -> Iterator[Entry]:
    keys, leaves = np.arange(3), _TREE.encode(_WORDS[1:])
    for id, name, make in (("olh", "OLH", olh.OLH), ("explicit_hist", "ExplicitHist", olh.explicit_hist)):
        yield _entry(
            id, name, (make,), lambda make=make: reports.hashed_loss(make(_EPSILON), keys),
            unit="a report",
        )  # fmt: skip
    yield _entry(
        "pem", "PEM", (pem.PEM,),
        lambda: reports.extended_loss(pem.PEM(_TREE, _EPSILON, 10.0, shares=(0.5, 0.5)), leaves),
    )  # fmt: skip


def _projective() -> Iterator[Entry]:
    """All vectors of a small space."""

    def small(seed: int) -> projective.ProjectiveOracle:
        hashes = MultiplyShift.draw(1, 2**32, stream(seed, "hashes"))
        return projective.ProjectiveOracle(projective.PointHashes(hashes, Geometry(3, 2)), _EPSILON)

    yield _entry(
        "projective", "Projective-geometry response", (projective.ProjectiveOracle,),
        lambda: reports.collected_loss(small, np.arange(3), range(1)),
        unit="a report",
    )  # fmt: skip


def _trusting() -> Iterator[Entry]:
    """What leaves a shuffler, at delta; and what those learn who know one server's noise."""
    delta, space = 0.1, Geometry(2, 2)
    tree, words = WordTree((1, 1), length=2), ["ab", "cd"]

    def mixed() -> float:
        one = shuffling.epsilon_of_a_report(_EPSILON, delta, 3, lambda _: space.order, 10.0)
        hashes = projective.PointHashes(MultiplyShift.draw(1, 2**32, stream(0, "hashes")), space)
        oracle = projective.ProjectiveOracle(hashes, one)
        points = hashes.cells(np.array(0), np.arange(20, dtype=np.uint64)).tolist()
        keys = [points.index(point) for point in range(space.points)]

        def sums(held: list[int], private: Any) -> Any:  # what the shuffler passes on: how often each report was sent
            return oracle.collect(np.array(held, dtype=np.uint64), stream(0, "rows"), private).sums

        told = max(
            epsilon_at([law_of(lambda rng, held=[key, *others]: sums(held, rng)) for key in keys[:2]], delta)  # type: ignore[misc]
            for others in ([keys[0], keys[0]], [keys[2], keys[2]])
        )
        stated = shuffling.Shuffled(one, 3, space.order).total_epsilon(delta)
        return max(
            as_stated(told, stated), as_stated(signs(), shuffling.Shuffled(_EPSILON, 3, 2, False).total_epsilon(delta))
        )

    def signs() -> float:
        """The sum of three users' randomized signs, of whom two say the same."""

        def told(pair: tuple[int, int], rng: Any) -> int:
            return int(SignFlip(_EPSILON).randomize(np.array([pair[0], pair[1], pair[1]]), rng).sum())

        return max(loss_of(told, [(-1, other), (1, other)], delta) for other in (-1, 1))

    def counted() -> float:
        settings = prefix_counts.PrefixCounts(tree, _EPSILON, 500.0, shares=(0.4, 0.6))
        leaves, neighbours = tree.encode(words), (np.array([1000, 1000]), np.array([1001, 999]))
        hidden = [np.eye(26)[2] - np.eye(26)[0], np.eye(52)[26 + 3] - np.eye(52)[1]]  # noise of c, a; of cd, ab
        losses = []
        for other in (slice(None), slice(None, None, -1)):  # either server is the honest one
            honest, lists = Chosen(moved=hidden), []
            for counts, rng in zip(neighbours, (Chosen(), honest), strict=True):
                lists.append(settings.search(leaves, counts, (rng, Chosen())[other]).words)  # type: ignore[arg-type]
            hides = lists[0].equals(lists[1]) and len(lists[0]) == len(words)
            losses.append(sum(map(cost, hidden, honest.asked)) if hides else math.inf)
        return max(losses)

    yield Entry(
        "shuffled", "heavy_hitters", "Projective reports, shuffled", (shuffling.Shuffled, shuffling.epsilon_of_a_report),
        "the reports of three users", _ANY, EXACT, _EPSILON, mixed,
        delta,
    )  # fmt: skip
    yield Entry(
        "prefix_counts", "heavy_hitters", "Counts of prefixes, one of two servers honest", (prefix_counts.PrefixCounts,),
        "all counts of a user", _ANY, SENSITIVITY, _EPSILON, counted,
    )  # fmt: skip


def _rappor() -> Iterator[Entry]:
    settings = rappor.Rappor(n_bits=2, n_cohorts=1, one_from_zero=0.1, one_from_one=0.9)
    protocol = settings.draw_hashes(stream(0, "hashes"))
    filters = protocol.bloom(np.arange(16, dtype=np.uint64), np.zeros(1, dtype=np.int64)).tolist()
    words = (filters.index(1), filters.index(2))  # different filters
    cohorts = np.zeros(2, dtype=np.int64)

    def steps(held: list[list[int]], rng: Any, protocol: rappor.RapporProtocol = protocol) -> Any:
        memo, sent = protocol.start(), []
        clients = np.arange(len(held[0]))
        for keys in held:
            memo, shown = protocol.step(memo, clients, cohorts[clients], np.array(keys, dtype=np.uint64), rng)
            sent.append(shown)
        return sent

    def said() -> bool:
        """Whether two reports of two words of one client, whose filters may share a bit, lose what is stated of them."""
        shared = replace(settings, n_hashes=2).draw_hashes(stream(0, "hashes"))
        known = shared.bloom(np.arange(16, dtype=np.uint64), np.zeros(1, dtype=np.int64)).tolist()
        histories = [(3, 3), (3, 1), (1, 2)]

        def sent(history: tuple[int, ...], rng: Any) -> Any:
            return steps([[known.index(shown)] for shown in history], rng, shared)

        logs = np.log(rows(law_of(partial(sent, history)) for history in histories))
        losses = [[float((one - other).max()) for other in logs] for one in logs]
        return bool(
            np.allclose(losses, [[settings.loss_of_histories(one, other) for other in histories] for one in histories])
        )

    def two_clients(word: int, rng: Any) -> Any:
        return steps([[word, words[0]]], rng)

    def again(word: int, rng: Any) -> Any:
        return steps([[word], [word]], rng)

    def one_shot(hashes: int) -> float:
        size = {"n_bits": 2 * hashes, "n_hashes": hashes, "n_cohorts": 1}
        once = rappor.Rappor.one_shot(_EPSILON, **size).draw_hashes(stream(0, "hashes"))
        blooms = once.bloom(np.arange(64, dtype=np.uint64), np.zeros(1, dtype=np.int64)).tolist()
        own = next(bloom for bloom in blooms if bloom.bit_count() == hashes and 4**hashes - 1 - bloom in blooms)
        disjoint = [blooms.index(own), blooms.index(4**hashes - 1 - own)]

        def sent(word: int, rng: Any) -> NDArray[np.int64]:
            return once.collect(np.array([[word], [disjoint[0]]], dtype=np.uint64), cohorts, rng).ones

        stated = once.settings.epsilon_of_reports(1)
        return as_stated(loss_of(sent, disjoint), stated) if math.isinf(once.settings.epsilon_permanent) else math.inf

    def permanent() -> float:
        """Of two reports of one word; as stated of these, and of any number of reports, of which many are nearly all."""
        loss = loss_of(again, words)
        if loss > settings.epsilon_permanent or not said():
            return math.inf
        many = as_stated(settings.epsilon_of_reports(60), settings.epsilon_permanent)
        return max(as_stated(loss, settings.epsilon_of_reports(2)), many - 2 * math.log(3) + loss)

    _path, covers = "heavy_hitters/rappor.py", (rappor.Rappor, rappor.RapporProtocol)
    report = 2 * math.log(0.7 / 0.3)  # of the bits of two words, each shown as it is with 0.75 * 0.9 + 0.25 * 0.1
    yield _entry(
        "rappor_report", "RAPPOR, one report", covers, lambda: loss_of(two_clients, words),
        unit="a report", promised=report,
    )  # fmt: skip
    yield _entry(
        "rappor_permanent", "RAPPOR, any number of reports of one word", covers, permanent,
        unit="all reports of one word", promised=2 * math.log(3),
    )  # fmt: skip
    yield _entry(
        "rappor_one_shot", "RAPPOR without permanent response", covers, lambda: max(map(one_shot, (1, 2))),
        unit="a report",
    )  # fmt: skip
