"""TreeHist on synthetic words and on Brown: Table 2 of the paper as a ladder of changes, and against RAPPOR.

`run` gives a row a run, `values` the numbers that claims and prose read, the rest is what the notebook's cells show.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from evolvingdp.book import engine
from evolvingdp.book.own import Release, checked
from evolvingdp.book.params import Metric
from evolvingdp.core import brown
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import theory
from evolvingdp.heavy_hitters.count_sketch import FreqOracle, Sketch
from evolvingdp.heavy_hitters.planning import planned, prospect, several_words
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.rappor_decoding import decode
from evolvingdp.heavy_hitters.tree_hist import Algorithm3, Held, TreeHist
from evolvingdp.heavy_hitters.word_tree import Nodes, WordTree
from evolvingdp.notebooks.heavy_hitters.lists import BITS, LETTERS, data, find, judge, leaves_of
from evolvingdp.notebooks.heavy_hitters.predicted import expected_candidates, found_probability, known_f1
from evolvingdp.notebooks.heavy_hitters.streams import brown_keys
from evolvingdp.streams import reading

METRIC = Metric("brown_projective_f1", "F1 of TreeHist on Brown")

CLAIMS = """
abs(synthetic_as_run_precision - 0.36) <= 0.05 + noise   Table 2 is reproduced: distance to the printed precision, synthetic
abs(synthetic_as_run_recall_expected - 0.95) <= 0.05   The paper's run: distance of its expected recall to the printed one, synthetic
abs(synthetic_as_run_recall - synthetic_as_run_recall_expected) <= 4.9 * 0.05 / sqrt(runs)   The runs found as many heavy words as expected: distance of recalls, synthetic
abs(brown_as_run_precision - 0.24) <= 0.05 + noise   Table 2 is reproduced: distance to the printed precision, brown
abs(brown_as_run_recall_expected - 0.86) <= 0.05   The paper's run: distance of its expected recall to the printed one, brown
abs(brown_as_run_recall - brown_as_run_recall_expected) <= 4.9 * 0.05 / sqrt(runs)   The runs found as many heavy words as expected: distance of recalls, brown
each_over_drawn >= 1   Users with several words, a rare one: error of reporting each over one drawn, least
synthetic_projective_f1 >= 0.985 - noise   Projective reports: F1, synthetic
synthetic_projective_known_f1 - synthetic_projective_expected_f1 <= 0.01   Not knowing the words costs projective reports little: expected F1 lost, synthetic
synthetic_separate_f1 - synthetic_as_run_f1 >= 0.3   The largest gain is one sketch a level: F1 less that of the paper's run, synthetic
brown_projective_f1 >= 0.96 - noise   Projective reports: F1, brown
brown_projective_known_f1 - brown_projective_expected_f1 <= 0.01   Not knowing the words costs projective reports little: expected F1 lost, brown
brown_separate_f1 - brown_as_run_f1 >= 0.3   The largest gain is one sketch a level: F1 less that of the paper's run, brown
projective_error_ratio <= 1.15 + noise   The stated error is right: RMSE over standard error, projective reports, planned
projective_f1_off <= 0.03 + noise   Normal errors predict mean F1: largest distance, projective reports, planned
"""

PAPER_TABLE_2 = {"synthetic": {"precision": 0.36, "recall": 0.95}, "brown": {"precision": 0.24, "recall": 0.86}}
PAPER_RUNS = 20  # the tolerances are for that many runs; with fewer, noise is added to them
BETA = 0.05
AS_RUN = "as the paper ran it"
SPLIT = "one bit, users split"
PROJECTIVE = "projective reports, planned"
RAPPOR, LACKING = "RAPPOR, all words listed", "RAPPOR, a tenth not listed"
LISTS = {RAPPOR: 1.0, LACKING: 0.9}  # share of Brown's words that are candidates
RIVALS = {PROJECTIVE: "TreeHist", RAPPOR: RAPPOR, LACKING: LACKING}
ROWS, WIDTH = 285, 4096  # of the rungs before ours
RUNGS: dict[str, dict[str, Any]] = {
    AS_RUN: {"shared": True},
    "one sketch a level": {},
    "Algorithm 3, 30 bits": {"two_reports": True, "tree": BITS},
    "Algorithm 3, two letters": {"two_reports": True},
    SPLIT: {"leaf_share": 0.75},
}
VARIANTS = (*RUNGS, PROJECTIVE)
FINAL_CUT = ", final cut"  # the same run of Algorithm 3 with its list cut at the threshold
LADDER = [name for rung in VARIANTS for name in ((rung, rung + FINAL_CUT) if "3, " in rung else (rung,))]
SHORT = {"as_run": AS_RUN, "separate": "one sketch a level", "alg3_bits_cut": "Algorithm 3, 30 bits" + FINAL_CUT}
SHORT |= {"alg3": "Algorithm 3, two letters", "alg3_cut": "Algorithm 3, two letters" + FINAL_CUT, "split": SPLIT}
SHORT |= {"projective": PROJECTIVE}  # in values' names
MAP_EPSILONS = (0.5, 1.0, 2.0, 4.0)
WORDS_A_USER = (2, 5, 10)


@dataclass(frozen=True)
class Rung:
    """A search between the paper's and ours: medians of 285 rows of 4,096 cells, and every level cut at the threshold."""

    epsilon: float  # of a user
    threshold: float  # users
    tree: WordTree = LETTERS
    leaf_share: float | None = None  # of the users report whole words; None: as many as every other level
    two_reports: bool = False  # as Algorithm 3 has it
    shared: bool = False  # one sketch of all levels, as Section 4 ran it
    max_candidates: int = 20_000_000

    @property
    def shares(self) -> tuple[float, ...]:
        depth = self.tree.depth
        if self.leaf_share is None:
            return (1 / depth,) * depth
        return (*[(1 - self.leaf_share) / (depth - 1)] * (depth - 1), self.leaf_share)

    def by_chance(self, level: int, n_users: int, cut: float) -> float:
        share = self.shares[level]
        reports = n_users if self.shared else max(1, round(n_users * share))
        error = theory.noise_standard_error(reports, self.epsilon / (1 + self.two_reports), ROWS) / share
        return float(ndtr(-cut / error))

    def cut(self, level: int, n_users: int, asked: float = 0.0) -> float:
        return self.threshold

    def draw_hashes(self, public: np.random.Generator) -> Algorithm3:
        if self.two_reports:
            return Algorithm3.draw(self.tree, self.epsilon, self.threshold, ROWS, WIDTH, public)
        depth = self.tree.depth
        drawn = 1 if self.shared else depth
        oracles = [FreqOracle(MultiplyShift.draw(ROWS, WIDTH, public), self.epsilon) for _ in range(drawn)]
        made = Shared if self.shared else Algorithm3
        return made(self.tree, self.shares, tuple(oracles * (depth // drawn)), None, self.threshold)


@dataclass(frozen=True, eq=False)
class Shared(Algorithm3):
    """As Section 4 ran it: one sketch is told the prefixes of all levels, which in a tree of letters are different numbers."""

    def told(self, leaves: Nodes, counts: NDArray[np.integer], rng: np.random.Generator) -> Held:
        keys, users = zip(*self.simulate_held(leaves, counts, rng), strict=True)
        return np.concatenate(keys), np.concatenate(users)

    def simulate_sketches(self, leaves: Nodes, counts: NDArray[np.integer], rng: np.random.Generator) -> Iterator[Sketch]:
        sketch = self.oracles[0].simulate(*self.told(leaves, counts, rng), rng)
        return iter([sketch] * self.tree.depth)

    def found(
        self, leaves: Nodes, counts: NDArray[np.integer], asked: Nodes, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """The probability that each leaf of `asked` is found, (asked,)."""
        nodes = np.array([self.tree.prefixes(asked, level) for level in range(self.tree.depth)])
        cuts = self.threshold * np.array(self.shares)
        return found_probability(self.oracles[0], self.told(leaves, counts, rng), nodes, cuts, rng)


def check(params: Any) -> dict[str, Any]:
    """Raise ValueError where no word is heavy, or a search would ask for too many candidates that nobody holds."""
    if params.data:
        return checked(params, _own_words)
    for name, users, share in (("n_users", [params.n_users], 0.01), ("n_users_sweep", params.n_users_sweep, 0.05)):
        for n_users in users:  # the most frequent word of Brown has .07 of the users
            most = share * n_users / math.isqrt(n_users)
            if params.factor > most:
                raise ValueError(
                    f"factor must be at most {most:.3g} with {n_users} users ({name}), so that some words are heavy, "
                    f"got {params.factor:g}"
                )
    for variant in VARIANTS:
        needed = params.factor
        while not answers(protocol(params, variant, params.n_users, params.epsilon, needed), params.n_users):
            needed *= 1.05
        if needed > 0.01 * params.n_users / math.isqrt(params.n_users):
            raise ValueError(
                f"epsilon must be larger, or n_users: at epsilon = {params.epsilon:g} and {params.n_users} users there is no factor "
                f"at which {variant!r} finds words and does not ask for too many candidates that nobody holds"
            )
        if needed > params.factor:
            raise ValueError(
                f"factor must be at least {needed:.3g} at epsilon = {params.epsilon:g}, so that {variant!r} does not ask for "
                f"too many candidates that nobody holds, got {params.factor:g}"
            )
    return {}


def threshold(params: Any, n_users: int) -> float:
    return float(params.factor * math.isqrt(n_users))


def protocol(params: Any, variant: str, n_users: int, epsilon: float, factor: float | None = None) -> TreeHist | Rung:
    """The variant with the threshold of `params`, or of another factor."""
    least = threshold(params, n_users) if factor is None else factor * math.isqrt(n_users)
    if variant == PROJECTIVE:
        return _planned(epsilon, n_users, least)
    return Rung(epsilon, least, **RUNGS[variant])


_planned = cache(planned)


def answers(method: TreeHist | Rung, n_users: int) -> bool:
    """Whether a search keeps well below the number of candidates that it may ask for, as any that is planned does."""
    return isinstance(method, TreeHist) or expected_candidates(method, n_users) <= method.max_candidates / 2


def bits_a_user(params: Any, variant: str) -> int:
    """What a user sends: a bit a report, or a point."""
    method = protocol(params, variant.removesuffix(FINAL_CUT), params.n_users, params.epsilon)
    if isinstance(method, Rung):
        return 1 + method.two_reports
    return math.ceil(math.log2(method.report.space.points))


def run(params: Any, seed: int) -> pd.DataFrame:
    """A row per run: how many words were found, how many of them are heavy, and the estimates' error."""
    ladder = [(_trial, params, seed, *setting) for setting in _settings(params)]
    points = [("epsilon", params.n_users, epsilon) for epsilon in params.epsilon_sweep]
    points += [
        ("n_users", n_users, params.epsilon)
        for n_users in params.n_users_sweep
        if n_users != params.n_users or params.epsilon not in params.epsilon_sweep  # else in both, and computed once
    ]
    runs = [(*point, repetition) for point in points for repetition in range(params.sweep_repetitions)]
    ours = [(_trial, params, seed, "brown", sweep, PROJECTIVE, *point) for sweep, *point in runs]
    table = pd.DataFrame(engine.rows([*ladder, *[(_rappor, params, seed, *one) for one in runs], *ours]))
    if params.n_users not in params.n_users_sweep or params.epsilon not in params.epsilon_sweep:
        return table
    shared = table[(table.sweep == "epsilon") & (table.epsilon == params.epsilon)].assign(sweep="n_users")
    return pd.concat([table, shared], ignore_index=True)


def _settings(params: Any) -> Iterator[tuple[str, str, str, int, float, int]]:
    for dataset in PAPER_TABLE_2:
        for variant in VARIANTS:
            for repetition in range(params.repetitions):
                yield dataset, "ladder", variant, params.n_users, params.epsilon, repetition


def _trial(
    params: Any, seed: int, dataset: str, sweep: str, variant: str, n_users: int, epsilon: float, repetition: int
) -> Iterator[dict[str, Any]]:
    """The row of one run; of Algorithm 3 two rows, as printed and with the final list cut."""
    truth, least = data(params.n_items, dataset, n_users, seed, repetition), threshold(params, n_users)
    try:
        method = protocol(params, variant, n_users, epsilon)
    except ValueError:  # no plan can be followed at this point of a sweep
        return
    name = (dataset, sweep, variant, n_users, str(epsilon), repetition)
    found = find(method, truth, seed, *name)
    setting = {
        "dataset": dataset,
        "sweep": sweep,
        "variant": variant,
        "n_users": n_users,
        "epsilon": epsilon,
        "repetition": repetition,
        "candidates": int(found.path.candidates.sum()),
    }
    leaves, counts = leaves_of(method.tree, truth.index), truth.to_numpy()
    if isinstance(method, TreeHist):
        setting |= {
            "expected_f1": prospect(method, leaves, counts, least).f1[0],
            "known_f1": known_f1(method, counts, least),
        }
    if isinstance(method, Rung) and method.shared:
        runs = range(repetition, max(PAPER_RUNS, params.repetitions), params.repetitions)  # what they expect costs no search
        setting["expected_recall"] = np.mean([_expected_recall(params, method, seed, *name[:-1], run) for run in runs])
    yield setting | judge(found.words, truth, least)
    if variant + FINAL_CUT in LADDER:
        cut = found.words[found.words.estimate >= method.threshold]
        yield setting | {"variant": variant + FINAL_CUT} | judge(cut, truth, least)


def _expected_recall(
    params: Any, method: Rung, seed: int, dataset: str, sweep: str, variant: str, n_users: int, epsilon: str, run: int
) -> float:
    """Of heavy words by a shared sketch, with a run's own data and hash functions."""
    name, truth = (dataset, sweep, variant, n_users, epsilon, run), data(params.n_items, dataset, n_users, seed, run)
    drawn, leaves, counts = (
        method.draw_hashes(stream(seed, "hashes", *name)),
        leaves_of(method.tree, truth.index),
        truth.to_numpy(),
    )
    heavy = leaves[counts > threshold(params, n_users)]
    return float(drawn.found(leaves, counts, heavy, stream(seed, "deal", *name)).mean())


def _rappor(params: Any, seed: int, sweep: str, n_users: int, epsilon: float, repetition: int) -> Iterator[dict[str, Any]]:
    """RAPPOR on the same users: one report of 64 bits each, without permanent noise, whose loss is epsilon.

    What it can find it must be asked for: all words of Brown, or nine tenths of them, by lot.  Listed are the candidates
    whose unbiased estimate reaches the threshold.
    """
    truth, least = data(params.n_items, "brown", n_users, seed, repetition), threshold(params, n_users)
    keys, name = brown_keys(), (sweep, n_users, str(epsilon), repetition)
    client = Rappor.one_shot(epsilon, n_bits=64, n_cohorts=128).draw_hashes(stream(seed, "RAPPOR hashes", *name))
    counts = client.simulate(keys, truth.to_numpy(), stream(seed, "RAPPOR", *name))
    lots = stream(seed, "RAPPOR list", *name).random(len(keys))
    for variant, share in LISTS.items():
        asked = lots < share
        words = decode(client, counts, keys[asked]).words.assign(word=truth.index[asked])
        listed = words[words.unbiased >= least].drop(columns="estimate").rename(columns={"unbiased": "estimate"})
        setting = {"dataset": "brown", "sweep": sweep, "variant": variant, "n_users": n_users, "epsilon": epsilon}
        yield setting | {"repetition": repetition, "candidates": int(asked.sum())} | judge(listed, truth, least)


def summary(table: pd.DataFrame, sweep: str) -> pd.DataFrame:
    """Mean and standard deviation over runs of precision, recall, F1 and words found, per setting."""
    setting = ["dataset", "sweep", "variant", "n_users", "epsilon"]
    grouped = table[table.sweep == sweep].groupby(setting, sort=False)
    columns = ["precision", "recall", "f1", "hits", "rmse"]
    mean, sd = grouped[columns].mean(), grouped[columns].std().add_suffix("_sd")
    theory_columns = grouped[["standard_error", "expected_recall", "expected_f1", "known_f1"]].mean()
    theory_columns["expected_recall_sd"] = grouped["expected_recall"].std()
    return pd.concat([mean, sd, theory_columns, grouped.size().rename("runs")], axis=1).reset_index()


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    n, epsilon = params.n_users, params.epsilon
    rungs = summary(table, "ladder").set_index(["dataset", "variant"])
    eta = theory.paper_threshold(n, epsilon, BETA, math.log2(26**LETTERS.length))
    brown_run = rungs.loc[("brown", AS_RUN)]
    drawn, each = zip(*(several_words(epsilon, n, words) for words in WORDS_A_USER), strict=True)
    found: dict[str, Any] = {
        "runs": params.repetitions,
        "noise": 4.9 * 0.05 * max(0.0, params.repetitions**-0.5 - PAPER_RUNS**-0.5),  # the paper's deviations are about .05
        "threshold": threshold(params, n),
        "three_eta_fraction": 3 * eta / n,
        "brown_as_run_recall_expected_error": brown_run.expected_recall_sd / math.sqrt(brown_run.runs),
        "each_over_drawn": min(b / a for a, b in zip(drawn, each, strict=True)),
        "projective_bits": bits_a_user(params, PROJECTIVE),
        "shared_noise": 3 * theory.noise_standard_error(n, epsilon, 285),
    }
    distinct = table[table.sweep == "ladder"].groupby("dataset").distinct.mean()
    for dataset in PAPER_TABLE_2:
        found[f"{dataset}_distinct"] = distinct[dataset]
        found[f"{dataset}_as_run_recall_expected"] = rungs.expected_recall[dataset, AS_RUN]
        for short, variant in SHORT.items():
            for column in ("precision", "recall", "f1", "expected_f1", "known_f1"):
                found[f"{dataset}_{short}_{column}"] = rungs[column][dataset, variant]
    ours = table[(table.variant == PROJECTIVE) & (table.sweep == "ladder")]
    f1 = ours.groupby("dataset")[["f1", "expected_f1"]].mean()
    found["projective_error_ratio"] = math.sqrt(np.nanmean(np.square(ours.rmse / ours.standard_error)))
    found["projective_f1_off"] = (f1.f1 - f1.expected_f1).abs().max()
    return found


def found_words(params: Any, seed: int) -> pd.DataFrame:
    """Our first run on Brown: every heavy or found word with truth, estimate and 95% interval, in users."""
    truth = data(params.n_items, "brown", params.n_users, seed, 0)
    method = protocol(params, PROJECTIVE, params.n_users, params.epsilon)
    name = ("brown", "ladder", PROJECTIVE, params.n_users, str(params.epsilon), 0)
    found = find(method, truth, seed, *name).words.set_index("word")
    shown = found.index.union(truth.index[truth > method.threshold])
    frame = pd.DataFrame({"truth": truth.reindex(shown, fill_value=0), "estimate": found.estimate.reindex(shown)})
    half = 1.96 * found.standard_error.reindex(shown)
    frame = frame.assign(low=frame.estimate - half, high=frame.estimate + half, threshold=method.threshold)
    frame.index = frame.index.map(lambda word: brown.wholes().get(word, word))  # what nobody holds has no whole word
    return frame.sort_values("truth", ascending=False).rename_axis("word").reset_index()


def plans(params: Any, seed: int) -> pd.DataFrame:
    """What `planned` chooses at some epsilons, and the F1 that normal errors predict on Brown, also with the words known."""
    truth = data(params.n_items, "brown", params.n_users, seed, 0)
    least, counts, rows = threshold(params, params.n_users), truth.to_numpy(), []
    for epsilon in MAP_EPSILONS:
        plan = planned(epsilon, params.n_users, least)
        row = {"epsilon": f"{epsilon:g}", "error of a report": f"{plan.report.standard_error(params.n_users):,.0f}"}
        row["cut, over the threshold"] = f"{plan.threshold / least:.2f}"
        row["F1"] = f"{prospect(plan, leaves_of(plan.tree, truth.index), counts, least).f1[0]:.3f}"
        row["F1, words known"] = f"{known_f1(plan, counts, least):.3f}"
        row |= {"letters a level": " + ".join(map(str, plan.tree.steps)), "whole words": f"{plan.leaf_share:.0%}"}
        rows.append(row)
    return pd.DataFrame(rows)


OWN_TREE = WordTree((2,) * 6, 12, shorter=True)  # for words of a reader's own


def _own_words(path: Any) -> reading.Words:
    return reading.read_words(path, letters=OWN_TREE.length)


def of_own(params: Any, seed: int) -> Release:
    """TreeHist on the words of a file, a user each, at a threshold of five standard errors of whole words."""
    own = _own_words(params.data)
    n_users = int(own.counts.sum())
    draft = TreeHist(OWN_TREE, params.epsilon, 1.0, rows=8, width=2**14, leaf_share=0.5)
    method = replace(draft, threshold=5 * draft.level_error(OWN_TREE.depth - 1, n_users))
    protocol = method.draw_hashes(stream(seed, "own", "hashes"))
    found = protocol.simulate_search(OWN_TREE.encode(own.words), own.counts, stream(seed, "own", "noise")).words
    truth = found.word.map(dict(zip(own.words, own.counts.tolist(), strict=True))).fillna(0)
    off = 1.96 * found.standard_error
    table = found[["word", "estimate"]].assign(low=found.estimate - off, high=found.estimate + off, truth=truth)
    promise = f"pure {params.epsilon:g}-local differential privacy of a user's only report"
    return Release(own.name, "word", "users", f"TreeHist, from {method.threshold:,.0f} users on", promise, table)
