"""Entries of the ledger for simulations of heavy hitters: they must have the exact law of collecting reports.

What the book's figures show comes from simulations. Each is followed, and so is the protocol that it stands for, public
randomness included, on the words of one to three users; where the two laws differ the loss is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.exact.prefixes import prefix_loss
from evolvingdp.audit.exact.simulated import (
    RandomFunctions,
    collected_loss,
    fair_coins_each_read_a_bit,
    one_at_a_time,
    simulated_loss,
    tables_once,
)
from evolvingdp.audit.ledger.entry import EXACT, Entry
from evolvingdp.audit.ledger.mutant import broken
from evolvingdp.core import sampling
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.olh import OLH
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import bitstogram, count_sketch, pem, rappor, tree_hist
from evolvingdp.heavy_hitters.binary_code import BinaryCode
from evolvingdp.heavy_hitters.count_sketch import FreqOracle
from evolvingdp.heavy_hitters.sketches import projective, simulation
from evolvingdp.heavy_hitters.sketches.geometry import Geometry
from evolvingdp.heavy_hitters.sketches.projective import PointHashes, ProjectiveOracle
from evolvingdp.heavy_hitters.trust.prefix_counts import PrefixCounts
from evolvingdp.heavy_hitters.word_tree import WordTree

_EPSILON = 0.8
_TREE = WordTree((1, 1), length=2)
_WORDS = _TREE.encode(["ab", "zb"])
_COLUMNS = 1 | 1 << 16  # the bits of a random word that are columns of two users
_COINS = 3 << 62  # the bits that are fair coins of two users


def entries() -> Iterator[Entry]:
    yield from _sketches()
    yield from _trees()
    yield from _searches()
    yield from _counts()
    yield from _hashing()
    yield from _rappor()


def _entry(
    id: str, name: str, covers: tuple[Any, ...], measure: Any, mutant: str, change: tuple[str, str, str],
    promised: float = _EPSILON,
) -> Entry:  # fmt: skip
    return Entry(
        f"simulated_{id}", "heavy_hitters", f"{name}, simulated", covers, "a simulated release of all reports",
        "any two words of a user", EXACT, promised, measure, mutant, broken(measure, *change),
    )  # fmt: skip


def _hashes(seed: int, width: int, rows: int = 1) -> MultiplyShift:
    return MultiplyShift.draw(rows, width, stream(seed, "hashes"))


def _sketches() -> Iterator[Entry]:
    file, keys = "heavy_hitters/sketches/simulation.py", np.arange(3, dtype=np.uint64)
    honest = (
        "honest = rng.binomial(counts, 1 / randomizer.debias)\n    alone, together, users = _deal(hashes, keys, honest, rng)"
    )
    coins, fair = f"{honest}\n    coins", f"{honest}\n    n_rows"
    cases: tuple[tuple[str, FreqOracle, int, dict[str, Any], tuple[str, str]], ...] = (
        ("users", FreqOracle(_hashes(0, 2, 2), _EPSILON), _COLUMNS, {"path": "users"},
         (coins, coins.replace("1 / randomizer.debias", "randomizer.keep"))),
        ("groups", FreqOracle(_hashes(1, 4), _EPSILON), _COINS, {"path": "groups"},
         ("zero = fair_binomial(users, rng)", "zero = users // 2")),
        ("uncompressed", FreqOracle(_hashes(2, 2), _EPSILON, "none"), _COINS, {},
         (fair, fair.replace("1 / randomizer.debias", "randomizer.keep"))),
    )  # fmt: skip

    def loss(oracle: FreqOracle, words: int, how: dict[str, Any]) -> float:
        with one_at_a_time(*() if how == {"path": "groups"} else (count_sketch, simulation)):
            return collected_loss(oracle, keys[:2], words, **how)

    for id, oracle, words, how, change in cases:
        yield _entry(
            f"freq_oracle_{id}", f"FreqOracle, {id}", (FreqOracle,), partial(loss, oracle, words, how),
            "columns dealt by exact halves" if id == "groups" else "the chance to keep a bit is that of honesty",
            (file, *change),
        )  # fmt: skip
    yield _entry(
        "fair_coins", "FreqOracle, users by hundreds", (FreqOracle,), _of_many, "coins beyond 64 are their mean",
        ("core/sampling.py", "np.diff(np.cumsum(ones, dtype=np.uint16)[ends - 1], prepend=np.uint16(0))", "32 * words[some]"),
    )  # fmt: skip
    frequent = FreqOracle(_hashes(0, 2, 2), _EPSILON)

    def dealt() -> float:
        """Every word is taken for a frequent one, which is dealt to rows by number."""
        with mock.patch.object(simulation, "_FEW", 0):
            return collected_loss(frequent, keys[:2], _COLUMNS, path="users")

    yield _entry(
        "freq_oracle_frequent", "FreqOracle, frequent words", (FreqOracle,), dealt, "halves dealt to rows",
        (file, "users = rng.multinomial(counts[frequent], np.full(hashes.rows, 1 / hashes.rows)).T\n    return alone",
         "users = np.outer([1] + [0] * (hashes.rows - 1), counts[frequent])\n    return alone"),
    )  # fmt: skip
    whole = FreqOracle(_hashes(2, 2), _EPSILON, "none")

    def estimated() -> float:
        def asked(place: int, rng: Any, direct: bool = True) -> Any:
            rng.words, held = _COINS, np.bincount([place, 1], minlength=2)
            if direct:
                return whole.simulate_estimates(keys[:2], held, keys[1:2], rng)
            return whole.estimate(whole.simulate(keys[:2], held, rng), keys[1:2])

        return simulated_loss(partial(asked, direct=False), asked, range(2))

    yield _entry(
        "freq_oracle_asked", "FreqOracle, uncompressed, estimates of one word", (FreqOracle,), estimated,
        "users of other words say nothing",
        (file, "others = in_row[drawn // hashes.width] - plus - minus", "others = 0 * (in_row[drawn // hashes.width] - plus - minus)"),
    )  # fmt: skip
    small = ProjectiveOracle(PointHashes(_hashes(0, 2**32, 2), Geometry(2, 2)), _EPSILON)

    def projected(path: str) -> float:
        with one_at_a_time(*[projective] * (path == "users")):
            return collected_loss(small, keys, path=path)

    for path in ("users", "groups"):
        yield _entry(
            f"projective_{path}", f"Projective-geometry response, {path}", (ProjectiveOracle,), partial(projected, path), "the share of honest users is keep",
            ("heavy_hitters/sketches/projective.py", "held.astype(np.int64), 1 - self.lie)", "held.astype(np.int64), self.response.keep)"),
        )  # fmt: skip


def _trees() -> Iterator[Entry]:
    for plan in tree_hist.PLANS:

        def loss(plan: str = plan) -> float:
            """Also of one sketch for all levels."""
            made: list[dict[str, Any]] = [{}, {"shared_sketch": True}][: 1 + (plan != "split")]
            trees = [tree_hist.TreeHist(_TREE, _EPSILON, 10.0, rows=1, width=2, plan=plan, **more) for more in made]
            drawn = [tree.draw_hashes(stream(0, "hashes")) for tree in trees]
            return max(collected_loss(tree, _WORDS, _COLUMNS, users=1) for tree in drawn)

        yield _entry(
            f"tree_hist_{plan}", f"TreeHist, plan {plan}", (tree_hist.TreeHist, tree_hist.Protocol), loss,
            "everybody reports at the first level",
            ("heavy_hitters/tree_hist.py", "rng.multinomial(counts, self.settings.shares).T",
             "np.outer([1] + [0] * (len(self.settings.shares) - 1), counts)"),
        )  # fmt: skip
    for plan in bitstogram.PLANS:
        settings = bitstogram.Bitstogram(
            _EPSILON, 10.0, length=1, code=BinaryCode(5, 5), buckets=2, plan=plan, rows=1, width=2,
            repetitions=1 + (plan == "split"),
        )  # fmt: skip
        yield _entry(
            f"bitstogram_{plan}", f"Bitstogram, plan {plan}", (bitstogram.Bitstogram, bitstogram.BitstogramProtocol),
            partial(collected_loss, settings.draw_hashes(stream(0, "hashes")), settings.encode(np.array(["a", "b"])), _COLUMNS, users=1),
            "users of the first report make the second, too" if plan == "split" else "nobody makes the second report",
            ("heavy_hitters/bitstogram.py", *(("first = first - last", "first = first") if plan == "split" else
             ("self.final.simulate(messages, last, rng)", "self.final.simulate(messages, 0 * last, rng)"))),
        )  # fmt: skip


def _of_many() -> float:
    """A report among as many fair coins as there are, of which each must read a bit of its own."""
    if not all(map(fair_coins_each_read_a_bit, ([63], [64], [130], [5, 200, 0, 64], [70, 64 * 17 + 3]))):
        return math.inf
    return collected_loss(FreqOracle(_hashes(1, 4), _EPSILON), np.arange(2, dtype=np.uint64), _COINS, path="groups")


def _searches() -> Iterator[Entry]:
    """Simulated searches, against a search in simulated reports."""
    bits = WordTree((1, 4), unit="bits", length=1)
    for plan, words, users in (("two_reports", WordTree((5,), unit="bits", length=1), 1), ("split", bits, 2)):
        settings = tree_hist.TreeHist(
            words, _EPSILON, 0.1, rows=1, width=2, plan=plan, pruning="fixed", estimator="mean", final_cut=True
        )

        def loss(settings: tree_hist.TreeHist = settings, users: int = users) -> float:
            tree, leaves = settings.draw_hashes(stream(1, "hashes")), settings.tree.encode(["a", "z"])

            def listed(place: int, rng: Any, direct: bool = True) -> Any:
                rng.words, held = _COLUMNS, np.bincount([place, 1][:users], minlength=2)
                if direct:
                    return tree.simulate_search(leaves, held, rng).words.to_numpy().tolist()
                return tree.search(tree.simulate(leaves, held, rng), users).words.to_numpy().tolist()

            with tables_once():
                return simulated_loss(partial(listed, direct=False), listed, (1, 0))

        two = plan == "two_reports"
        yield _entry(
            f"tree_hist_search_{plan}", f"TreeHist, search, plan {plan}", (tree_hist.TreeHist, tree_hist.Protocol), loss,
            "nobody makes the second report" if two else "everybody's first level at every level",
            ("heavy_hitters/tree_hist.py", *(("(lambda: final.simulate(leaves, counts, rng)) if", "(lambda: final.simulate(leaves, 0 * counts, rng)) if")
             if two else ("lambda level: shared or held[level][0].simulate(*held[level][1], rng)", "lambda level: shared or held[level][0].simulate(*held[0][1], rng)"))),
        )  # fmt: skip


def _counts() -> Iterator[Entry]:
    for servers, mutant, old, new in (
        (1, "nodes that nobody holds are shown at the cut", "rng.choice(values, size=lucky, p=law / law.sum())", "np.full(lucky, self.cut(level))"),
        (2, "servers share their noise", "sum(self.noise(level).draw(len(held[0]), rng) for _ in range(self.servers))",
         "self.servers * self.noise(level).draw(len(held[0]), rng)"),
    ):  # fmt: skip
        counts = PrefixCounts(WordTree((1,), length=1), 16.0, 1.0, servers)
        yield _entry(
            f"prefix_counts_{servers}", f"counts of prefixes, {servers} server{'s' * (servers - 1)}", (PrefixCounts,),
            tables_once()(partial(prefix_loss, counts, "c", (5, 6))), mutant, ("heavy_hitters/trust/prefix_counts.py", old, new), 16.0,
        )  # fmt: skip


def _hashing() -> Iterator[Entry]:
    keys, few = np.arange(3, dtype=np.uint64), RandomFunctions(0.4)

    def collected(place: int, rng: Any) -> NDArray[np.int64]:
        rng.words = 7
        return few.support(few.report(keys[[place, 2]], rng, rng), keys)

    def simulated(place: int, rng: Any) -> NDArray[np.int64]:
        return few.simulate_support(np.bincount([place, 2], minlength=3), 2, rng)

    def reaching(least: int) -> float:
        """Of what a search looks at: below `least`, who holds a key has a support, and others have none."""

        def passed(support: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.where(support >= least, support, 0)

        def those(place: int, rng: Any) -> NDArray[np.int64]:
            return passed(few.simulate_support(np.bincount([place, 2], minlength=3), 2, rng, least))

        return simulated_loss(lambda place, rng: passed(collected(place, rng)), those, range(3))

    settings = _HashedPEM(_TREE, 0.4, 10.0, shares=(0.5, 0.5))
    nodes = [np.unique(_TREE.prefixes(_WORDS, level)) for level in range(2)]

    def levels(place: int, rng: Any) -> Any:
        support, sizes = settings.supports(_WORDS, np.bincount([place, 1], minlength=2), rng)
        return sizes, [support(asked, level) for level, asked in enumerate(nodes)]

    def reported(place: int, rng: Any) -> Any:
        rng.words = 1 << 1 | 1 << 4 | 1 << 5  # those that the words' prefixes read
        sent = settings.collect(_WORDS[[place, 1]], rng, rng).levels
        support = [settings.oracle.support(one, asked) for one, asked in zip(sent, nodes, strict=True)]
        return [len(one.seeds) for one in sent], support

    rounded = ("core/olh.py", "rng.binomial(counts, self.keep) +", "np.rint(counts * self.keep).astype(np.int64) +")
    yield _entry(
        "olh", "OLH", (OLH,), lambda: simulated_loss(collected, simulated, range(3)),
        "holders' supports rounded to their mean", rounded, 0.4,
    )  # fmt: skip
    yield _entry(
        "olh_reaching", "OLH, supports that reach a cut", (OLH,), lambda: max(map(reaching, (1, 2))), "the first keys reach it",
        ("core/olh.py", "rng.choice(empty, many, replace=False, shuffle=False)", "empty[:many]"), 0.4,
    )  # fmt: skip
    yield _entry(
        "pem", "PEM", (pem.PEM,), lambda: simulated_loss(reported, levels, range(2)), "all users report to each level",
        ("heavy_hitters/pem.py", "simulate_support(own, int(groups[level].sum()), rng, least)", "simulate_support(own, int(counts.sum()), rng, least)"),
        0.4,
    )  # fmt: skip


@dataclass(frozen=True)
class _HashedPEM(pem.PEM):
    @property
    def oracle(self) -> OLH:
        return _sevens(self.epsilon)


class _Sevens(RandomFunctions):
    """Of keys of which at most one leaves each rest."""

    def _hash(self, seeds: Any, keys: Any) -> NDArray[np.uint16]:
        return super()._hash(seeds, np.atleast_1d(keys) % np.uint64(7))


_sevens = cache(_Sevens)  # asked for in each of many runs


def _rappor() -> Iterator[Entry]:
    def loss(users: int, reports: int) -> float:
        """In as many cohorts as a client makes reports, to which words are dealt by number, as frequent ones are."""
        settings = rappor.Rappor(n_bits=2, n_cohorts=reports, one_from_zero=0.1, one_from_one=0.9)
        protocol, keys = settings.draw_hashes(stream(0, "hashes")), np.arange(16, dtype=np.uint64)
        filters = np.array([protocol.bloom(keys, np.array(cohort)) for cohort in range(reports)])
        words = keys[[int(np.flatnonzero(np.all(filters == one, axis=0))[0]) for one in (1, 2)]]

        def held(place: int) -> NDArray[np.int64]:
            return np.array([place] + [1] * (users - 1))

        def collected(place: int, rng: Any) -> rappor.BitCounts:
            return protocol.collect(np.tile(words[held(place)][:, None], reports), protocol.assign(users, rng), rng)

        def simulated(place: int, rng: Any) -> rappor.BitCounts:
            return protocol.simulate(words, np.bincount(held(place), minlength=2), rng, n_reports=reports)

        with mock.patch.object(sampling, "_FEW", 0) if reports > 1 else one_at_a_time(rappor):
            return simulated_loss(collected, simulated, range(2))

    path = "heavy_hitters/rappor.py"
    for id, size, mutant, change in (
        ("report", (2, 1), "permanent ones rounded to their mean",
         ("permanent = rng.binomial(with_bit, settings.permanent_one(1))",
          "permanent = np.rint(with_bit * settings.permanent_one(1)).astype(np.int64)")),
        ("reports", (1, 2), "the permanent response is redrawn", ("memo, reports = self.step(", "_, reports = self.step(")),
    ):  # fmt: skip
        yield _entry(
            f"rappor_{id}", f"RAPPOR, {'one report' if id == 'report' else 'two reports of one word'}",
            (rappor.Rappor, rappor.RapporProtocol), partial(loss, *size), mutant, (path, *change),
            2 * math.log(0.7 / 0.3) if id == "report" else 2 * math.log(3),
        )  # fmt: skip
