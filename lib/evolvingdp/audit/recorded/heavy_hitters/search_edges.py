"""Scenes of heavy hitters: settings and edges of searches: TreeHist, Bitstogram and its code, PEM, prefix counts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.heavy_hitters.searches import COUNTS, KEYS, WORDS, found
from evolvingdp.audit.recorded.heavy_hitters.sketch_edges import EPSILONS, NONE, TREE, USERS
from evolvingdp.audit.recorded.scene import Scene, outcome, taken
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.noise import DiscreteLaplace
from evolvingdp.heavy_hitters import bitstogram, olh
from evolvingdp.heavy_hitters.binary_code import BinaryCode
from evolvingdp.heavy_hitters.bitstogram import Bitstogram, CodeHashes, Unsigned
from evolvingdp.heavy_hitters.count_sketch import COMPRESSIONS
from evolvingdp.heavy_hitters.listing import HeavyHitters, Reports, adaptive_cut
from evolvingdp.heavy_hitters.pem import PEM
from evolvingdp.heavy_hitters.tree_hist import PLANS, PRUNINGS, TreeHist
from evolvingdp.heavy_hitters.trust import prefix_counts
from evolvingdp.heavy_hitters.trust.prefix_counts import PrefixCounts
from evolvingdp.heavy_hitters.word_tree import WordTree, candidates_at


def tree_settings(rng: np.random.Generator) -> Iterator[Any]:
    for plan, pruning, compression, epsilon in product(PLANS, PRUNINGS, (*COMPRESSIONS, "projective"), (0.05, 5.0)):
        for how, share, depth in (("joint", 0.2, 2), ("median", 0.9, 3), ("mean", 0.5, 1)):
            tree = WordTree((1,) * depth, depth)
            given = {"plan": plan, "pruning": pruning, "compression": compression, "estimator": how, "leaf_share": share}
            made = outcome(TreeHist, tree, epsilon, 40.0, 3, 8, **given)
            if isinstance(made, str):
                yield made
                continue
            yield made.shares, made.epsilon_of_a_report, [made.cut(level, 300) for level in range(depth)]
            yield [
                made.level_error(level, users, held)
                for level in range(depth)
                for users in (0, 1, 77)
                for held in (0.0, 30.0)
            ]
            drawn = made.draw_hashes(rng)
            yield len(drawn.oracles), [oracle.epsilon for oracle in drawn.oracles], drawn.oracles[-1].fingerprint
    names = (
        "epsilon threshold rows width plan leaf_share leaf_share pruning estimator compression max_survivors max_candidates"
    )
    values = (0.0, 0.0, 0, 3, "x", 0.0, 1.0, "x", "x", "x", 0, 0)
    wrongs: list[dict[str, Any]] = [{name: value} for name, value in zip(names.split(), values, strict=True)]
    for wrong in (
        *wrongs,
        {"width": 1},
        {"shared_sketch": True},
        *({"width": w, "compression": "projective"} for w in (1, 3)),
    ):
        yield outcome(TreeHist, **({"tree": TREE, "epsilon": 1.0, "threshold": 9.0} | wrong))
    yield (
        TreeHist(TREE, 1.0, 9.0),
        [adaptive_cut(threshold, error) for threshold in (1.0, 50.0) for error in (0.0, 9.0, 10.0, 11.0)],
    )


def tree_edges(rng: np.random.Generator) -> Iterator[Any]:
    leaves = TREE.encode(WORDS.tolist())
    usual = TreeHist(TREE, 4.0, 300.0, 5, 32, estimator="mean")
    names = "plan estimator threshold max_survivors max_candidates compression pruning shared_sketch final_cut"
    for values in (
        (), ("split", "joint"), ("split", "median"), ("split", "mean", 1e9), ("one_report", "joint", 90.0, 3),
        ("split", "mean", 1e-3, 9, 999, "none", "fixed"), ("split", "mean", 99.0, 2),
        ("split", "joint", 99.0, 1), ("split", "mean", 99.0, 9, 26), ("split", "mean", 99.0, 9, 60),
        ("two_reports",), ("two_reports", "mean", 1e9), ("one_report", "mean", 90.0, 9, 999, "none", "fixed", True),
        ("two_reports", "mean", 90.0, 9, 999, "hadamard", "adaptive", True, False),
        ("split", "mean", 90.0, 9, 999, "projective", "fixed", False, False),
        ("two_reports", "joint", 90.0, 9, 999, "projective", "adaptive"),
        ("one_report", "joint", 90.0, 9, 999, "projective", "adaptive", True),
    ):  # fmt: skip
        changed: dict[str, Any] = dict(zip(names.split(), values, strict=False))
        drawn = replace(usual, **changed).draw_hashes(rng)
        one, two = drawn.simulate(leaves, COUNTS * 30, rng), drawn.collect(np.repeat(leaves, COUNTS), *rng.spawn(2))
        both = one + two
        yield str(both), found(outcome(drawn.search, both, 3100)), outcome(drawn.search, both, 3099)
        yield found(outcome(drawn.simulate_search, leaves, COUNTS * 30, rng)), drawn.keys(leaves, 0), drawn.keys(leaves, 1)
        yield found(outcome(drawn.simulate_search, leaves[:1], np.array([7]), rng)), outcome(drawn.search, both, -1)
        for _, (keys, users) in drawn.holders(leaves, COUNTS, rng):
            yield keys, users
        other = replace(usual, **changed, epsilon=4.5).draw_hashes(rng)
        yield taken(other.check, both, 3100), taken(drawn.check, Reports(both.levels[:1], None), 3100)
        yield (
            taken(drawn.check, Reports(both.levels, both.levels[0]), 3100),
            taken(both.__add__, Reports(both.levels[:1], None)),
        )
        none = drawn.collect(NONE, *rng.spawn(2))
        yield [level.sums.sum() for level in none.levels], found(outcome(drawn.search, none, 0))
        yield (
            outcome(drawn.collect, np.array([5], dtype=np.uint64), *rng.spawn(2)),
            outcome(drawn.simulate, leaves, COUNTS[1:], rng),
        )
    yield found(HeavyHitters.of(["b", "a", "c"], np.array([1.0, 1.0, 2.0]), np.array([3.0, 4.0, 5.0]), [{"level": 0}]))


def tree_words(_: np.random.Generator) -> Iterator[Any]:
    for steps, length, unit, shorter in (
        ((1, 1), 2, "letters", True),
        ((2,), 2, "letters", True),
        ((3, 2, 5), 2, "bits", True),
        ((4, 6), 2, "bits", False),
        ((5, 5), 2, "bits", True),
        ((7, 3), 2, "bits", False),
        ((1, 2), 3, "letters", False),
        ((10,), 2, "bits", False),
    ):
        tree = WordTree(steps, length, unit, shorter)
        for text in ("", "a", "b", "zz", "ab", "a b", "Ab", "abc", None, 3):
            yield outcome(tree.encode, [text])
        for leaf in (0, 1, 27, 28, 54, 32, 33, 27**2, 27**3 - 1, 2**10 - 1, 26 * 27 + 26, 26 * 32 + 26, 27 * 32 + 1):
            yield outcome(tree.checked, np.array([leaf], dtype=np.int64))
        yield (
            outcome(tree.checked, np.array([1.0])),
            outcome(tree.checked, np.array([[1]])),
            outcome(tree.checked, np.array([-1])),
        )
        leaves = tree.encode(["ab" + "c" * (length - 2), "zz" + "z" * (length - 2)])
        yield tree.decode(leaves), tree.decode(tree.encode(["q"])) if shorter else "", tree.base, tree.depth
        for level in range(tree.depth):
            above = tree.prefixes(leaves, level - 1) if level else np.zeros(1, dtype=np.uint64)
            children = tree.children(above, level)
            yield tree.prefixes(leaves, level), tree.fan(level), len(children), int(children.sum()), children[::11]
            yield len(tree.children(NONE, level)), outcome(candidates_at, level, 3, tree, 3 * tree.fan(level))
            yield outcome(candidates_at, level, 3, tree, 3 * tree.fan(level) - 1), candidates_at(level, 0, tree, 1)
    for few in (
        ((0, 2), 2),
        ((12,), 12),
        ((13,), 13),
        ((1,), 0),
        ((5, 5), 2, "letters"),
        ((1, 1), 2, "bits"),
        ((2.0,), 2),
    ):
        yield outcome(WordTree, *few)
    yield WordTree(), np.array(WordTree((12,), 12).encode(["zzzzzzzzzzzz"]))


def bitstogram_edges(rng: np.random.Generator) -> Iterator[Any]:
    usual = Bitstogram(4.0, 60.0, 1, BinaryCode(7, 7), 4, rows=2, width=8)
    yield usual, Bitstogram(1.0, 9.0, soft_bits=1)
    codes = (BinaryCode(15, 5), BinaryCode(5, 5))
    for plan, bit_as, repetitions, epsilon in product(bitstogram.PLANS, bitstogram.READINGS, (1, 3), EPSILONS):
        made = replace(
            usual, plan=plan, bit_as=bit_as, repetitions=repetitions, epsilon=epsilon, code=codes[repetitions // 3]
        )
        yield made.shares, made.epsilon_of_a_report, [made.bit_error(9, users) for users in USERS]
        drawn = made.draw_hashes(rng)
        yield drawn.bits.fingerprint, drawn.final.fingerprint, drawn.bits.shape, drawn.bits.epsilon, drawn.final.epsilon
        rows = np.arange(drawn.bits.hashes.rows)
        yield drawn.bits.hashes.cells_and_signs(rows[:, None], KEYS[None, :] % np.uint64(26)), drawn.bits.hashes.width
    messages = usual.encode(np.array(["a", "q", "z", "b", "c"]))
    names = "plan final_share bit_as repetitions soft_bits threshold final_cut signed_final estimator code"
    for values in (
        (), ("split", 0.01), ("split", 0.99), ("split", 0.4, "cell", 2, 1), ("two_reports", 0.3, "sign", 1, 3, 1e9),
        ("two_reports", 0.3, "cell", 2, 0, 1e9, False, False, "mean"), ("split", 0.3, "sign", 2, 7, 1e-3, True, False),
        ("split", 0.3, "sign", 1, 2, 9.0, True, True, "joint", BinaryCode(31, 6)),
    ):  # fmt: skip
        changed: dict[str, Any] = dict(zip(names.split(), values, strict=False))
        made = replace(usual, **changed)
        drawn = made.draw_hashes(rng)
        one, two = drawn.simulate(messages, COUNTS * 30, rng), drawn.collect(np.repeat(messages, COUNTS), *rng.spawn(2))
        both, users = one + two, 3100
        yield both.levels[0].sums, both.levels[0].n_reports, both.final, drawn.read_bits(both)
        yield found(outcome(drawn.search, both, users)), outcome(drawn.search, both, users - 1)
        none = drawn.collect(NONE, *rng.spawn(2))
        yield none.levels[0].sums.sum(), found(outcome(drawn.search, none, 0)), outcome(drawn.search, none, 1)
        yield (
            outcome(drawn.search, Reports(both.levels * 2, both.final), users),
            outcome(drawn.simulate, messages, COUNTS[1:], rng),
        )
        yield outcome(drawn.search, Reports(both.levels, None), users)
        other = replace(made, epsilon=4.1).draw_hashes(rng)
        yield outcome(other.search, both, users), outcome(drawn.search, Reports(both.levels, other.final.empty()), users)
    names = "epsilon threshold length repetitions rows soft_bits buckets width plan bit_as estimator final_share"
    wrongs = (0.0, 0.0, 0, 0, 0, -1, 3, 3, "x", "x", "x", 0.0)
    for name, value in (*zip(names.split(), wrongs, strict=True), ("final_share", 1.0), ("soft_bits", 8)):
        yield outcome(replace, usual, **{name: value}), outcome(replace, usual, **({"plan": "two_reports"} | {name: value}))
    yield outcome(replace, usual, length=2), outcome(replace, usual, code=BinaryCode(7, 4)), outcome(usual.encode, ["ab"])
    for family in (Unsigned(MultiplyShift.draw(2, 8, rng)), CodeHashes(MultiplyShift.draw(2, 8, rng), codes[0], "sign")):
        yield (
            family.rows,
            family.width,
            family.cells(np.arange(2)[:, None], KEYS),
            family.cells_and_signs(np.arange(2), KEYS[:2]),
        )


def prefix_edges(rng: np.random.Generator) -> Iterator[Any]:
    leaves = TREE.encode(WORDS.tolist())
    for epsilon, shares, threshold in product((0.05, 1.0, 5.0, 9.9), ((0.3, 0.7),), (1e-3, 50.0, 1e9)):
        search = PEM(TREE, epsilon, threshold, shares)
        yield (
            search.fingerprint,
            search.oracle,
            search.oracle.keep,
            search.standard_errors(np.array([-9.0, 0.0, 99.0, 9e9]), 90),
        )
        support, sizes = search.supports(leaves, COUNTS * 9, rng)
        yield (
            sizes,
            support(leaves[1:], 1),
            support(np.append(leaves[:1], NONE), 1),
            support(np.arange(20, dtype=np.uint64), 0),
        )
        reports = search.collect(np.repeat(leaves, COUNTS), *rng.spawn(2))
        yield [(level.seeds, level.values) for level in reports.levels], found(outcome(search.search, reports + reports))
        yield (
            found(outcome(search.simulate, leaves, COUNTS * 9, rng)),
            found(outcome(replace(search, max_candidates=30).search, reports)),
        )
        for other in (replace(search, epsilon=2.0), replace(search, shares=(0.4, 0.6)), replace(search, threshold=3.0)):
            made = other.collect(leaves, *rng.spawn(2))
            yield taken(reports.__add__, made), taken(search.search, made), made.settings
    yield (
        found(outcome(PEM(TREE, 1.0, 9.0, (0.5, 0.5)).search, search.collect(NONE, *rng.spawn(2)))),
        outcome(search.collect, [1], rng, rng),
    )
    uneven: tuple[tuple[float, ...], ...] = ((0.5, 0.5 + 2e-9), (0.5, 0.5 + 1e-10), (1.0,), (1.0, 0.0))
    for parts in uneven:
        yield outcome(PEM, TREE, 1.0, 9.0, parts), outcome(PrefixCounts, TREE, 1.0, 9.0, 1, parts)
    yield (
        outcome(PEM, TREE, 10.1, 9.0, (0.5, 0.5)),
        outcome(PEM, TREE, 0.0, 9.0, (0.5, 0.5)),
        PEM(WordTree((1, 1, 1), 3), 1.0, 9.0),
    )
    for epsilon, servers, threshold in (
        *product((1.0, 5.0, 12.0), (1, 2, 4), (1e-3, 20.0)), (0.3, 2, 3.0), (0.05, 1, 900.0), (1.0, 1, 1e9), (1.0, 3, 1e9),
    ):  # fmt: skip
        counted = PrefixCounts(TREE, epsilon, threshold, servers, (0.25, 0.75), 20_000)
        yield [(counted.noise(level), counted.error(level), counted.cut(level), counted.passing(level)) for level in (0, 1)]
        yield np.log(max(counted.passing(1), 1e-300)), prefix_counts.noise_tail(counted.noise(1), servers, 2)[0][:30]
        yield (
            found(outcome(counted.search, leaves, COUNTS, rng.spawn(servers))),
            found(outcome(counted.simulate, leaves, COUNTS, rng)),
        )
    one = PrefixCounts(WordTree((2,), 2), 1.0, 3.0, max_candidates=26**2)
    for few in (one, replace(one, max_candidates=729), replace(one, max_candidates=728), replace(one, servers=1)):
        yield (
            found(outcome(few.search, leaves, COUNTS, rng.spawn(few.servers))),
            found(outcome(few.simulate, leaves, COUNTS, rng)),
        )
        yield outcome(few.search, leaves, COUNTS, rng.spawn(few.servers + 1)), outcome(few.simulate, leaves, COUNTS[1:], rng)
    for scale, cut in product((0.03, 0.4, 3.0), (-3, 0, 1)):
        yield [prefix_counts.noise_tail(DiscreteLaplace(scale), servers, cut) for servers in (1, 2, 3)]
    yield olh.explicit_hist(1.0).probabilities(1), olh.explicit_hist(0.05).keep
    for estimates in ([0.0], [9.0, 9.0], [3.0, 3.0, 3.0, -9.0], [1.0, 2.0, 6.0], [], [[1.0]], [np.nan], [-1e9, 1e9]):
        yield [outcome(olh.consistent, np.array(estimates), users) for users in (0, 1, 9)]


def scenes() -> dict[str, Scene]:
    warnings.simplefilter("ignore")  # of searches that have more survivors than they may
    every = (tree_settings, tree_edges, tree_words, bitstogram_edges, prefix_edges)
    return {f"words_{scene.__name__}": scene for scene in every}
