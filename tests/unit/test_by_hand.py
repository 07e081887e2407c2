"""What the chapters work out by hand and what their exercises answer is what the library computes."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from evolvingdp.book.checkout import params_of
from evolvingdp.continual_mean import BinaryMechanism, choosing, prefix_sums
from evolvingdp.continual_mean.prefix_sums import Tree
from evolvingdp.core.detection import penalty
from evolvingdp.core.noise import Laplace
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import Thresh
from evolvingdp.heavy_hitters import FreqOracle
from evolvingdp.notebooks.evolving.thresh import protocols
from evolvingdp.sparse_vector import ThresholdMonitorEvolving, calibrate, privacy
from support import REPOSITORY

CHAPTERS = ("heavy_hitters", "evolving", "continual_mean", "sparse_vector")
BOOK = REPOSITORY / "book"
PAGES = {name: "\n".join(page.read_text() for page in sorted(BOOK.glob(f"{name}*.md"))) for name in CHAPTERS}  # and in depth
DIGITS = str.maketrans({"−": "-", "+": "", "–": "-"})


def by_hand(chapter: str) -> tuple[str, list[list[str]]]:
    """The text of the chapter's example, and the rows of its table with their first column."""
    text = re.split(r"\*\*By hand\.\*\*|\{dropdown\} By hand.*", PAGES[chapter])[1]
    text = re.split(r"\n\n```\{|\n````", text)[0]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if line.startswith("|")]
    return text, [row for row in rows if not set(row[0]) <= set("-: ")]


def solutions(chapter: str) -> list[str]:
    """The folded solutions of the chapter's exercises, in order."""
    section = PAGES[chapter].split("\n## Exercises\n")[1].split("\n## ")[0]
    tasks = re.split(r"^\d\. ", section, flags=re.MULTILINE)[1:]
    found = [task.partition("````{dropdown} Solution\n")[2].rpartition("````")[0] for task in tasks]
    assert all(found), "every exercise has a folded solution"
    return found


def code(solution: str) -> dict[str, Any]:
    """The names that the solution's code defines."""
    (block,) = re.findall(r"```python\n(.*?)```", solution, re.DOTALL)
    names: dict[str, Any] = {}
    exec("\n".join(line.removeprefix("   ") for line in block.splitlines()), names)
    return names


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_is_a_story_in_the_order_in_which_a_newcomer_asks(chapter):
    """Picture, code with its output, measurement, which method, promise, way on; no formula before its promise."""
    page = (BOOK / f"{chapter}.md").read_text()
    shown = ["```{live} ", "```{code-cell}", "```{measured-figure} "]
    asked = [*shown, "## Which method", "## What is promised", "## Where to go on"]
    places = [page.index(start) for start in asked]
    assert places == sorted(places)
    assert "$$" not in page[: places[4]]
    rows = re.findall(r"^\| .*", page[places[3] : places[4]], re.MULTILINE)
    assert 3 <= len(rows) - 1 <= 5, "a reader chooses among five"
    assert all("{value}`" in row for row in rows[1:]), "computed"
    assert 3 <= len(solutions(chapter)) <= 5


class OneRow:
    """The example's hash functions: cat has cell 1 and sign +, dog 2 and -, emu 3 and +."""

    rows, width = 1, 4

    def cells(self, rows, keys):
        return np.broadcast_to(np.asarray(keys).astype(np.int64), np.broadcast_shapes(np.shape(rows), np.shape(keys)))

    def signs(self, rows, keys):
        return np.where(self.cells(rows, keys) == 2, -1, 1)


def test_the_count_sketch_that_is_read_by_hand():
    text, rows = by_hand("heavy_hitters")
    table = {row[0]: row[1:] for row in rows}
    oracle = FreqOracle(OneRow(), math.log(3))
    keys = np.array([{"cat": 1, "dog": 2}[word] for word in table["word"]], dtype=np.uint64)
    columns = np.array(table["column $r$"], dtype=np.int64)
    signs = {name: np.array([1 if sign == "+" else -1 for sign in table[f"{name}"]]) for name in ("truth $x$", "report $y$")}
    never = type("Never", (), {"random": lambda _, shape: np.ones(shape)})()  # no coin says lie
    assert np.array_equal(oracle.report(keys, columns, never), signs["truth $x$"])
    sketch = oracle.add(oracle.empty(), columns, signs["report $y$"])
    assert f"$S = {', '.join(map(str, sketch.sums[0]))}$" in text
    cat, dog, emu = oracle.estimate(sketch, np.array([1, 2, 3], dtype=np.uint64))
    assert f"(S_0 - S_1 + S_2 - S_3) = {cat:.0f}$" in text
    assert f"(S_0 + S_1 - S_2 - S_3) = {dog:.0f}$" in text
    assert f"(S_0 - S_1 - S_2 + S_3) = {emu:.0f}$" in text
    assert f"= {oracle.standard_error(8, 'mean'):.1f}$ users" in text
    many = oracle.standard_error(8_000_000, "mean")
    assert f"For eight million it is {many:,.0f}, or {many / 80_000:.2f} % of them" in text
    assert f"{oracle.standard_error(8_000_000, 'mean') / 8_000_000:.1%}".startswith("0.1")
    assert np.array_equal(np.flatnonzero(signs["truth $x$"] != signs["report $y$"]) + 1, [1, 6])


def test_the_votes_that_are_counted_by_hand():
    text, (_, *rows) = by_hand("evolving")
    thresh = Thresh(100, 4, 100, 11.0, math.log(3), math.log(3), vote_cap=4, estimate_cap=2, unit=0.05)
    for epoch, threshold, distance, votes, yeses, cut, update in rows:
        assert float(threshold) == pytest.approx(thresh.threshold(int(epoch)))
        counts = np.array([50 + round(100 * float(distance))])
        assert thresh.votes_yes(int(epoch), counts, np.array([50]), np.array([0]))[0] == (votes == "yes")
        assert float(cut) == round(100 * thresh.update_cut, 1)
        assert (int(yeses) > float(cut)) == (update == "yes")
    assert f"= {thresh.report_one(0.65):.3f}$" in text
    assert f"= {thresh.estimate(58):.2f}$" in text
    assert f"= {thresh.privacy_loss:.2f}$" in text
    assert thresh.votes_yes(2, np.array([90]), np.array([50]), np.array([0]))[0]


def test_the_changes_for_which_both_bounds_are_proved():
    text = PAGES["evolving"]
    params = params_of("evolving/thresh").make()
    paper, tuned = protocols(params, params.n_users, params.horizon).values()
    assert "leaves eleven votes, so that its bound is proved for two changes" in text
    assert (paper.vote_cap, paper.changes) == (11, 2)
    assert "tuned has twelve votes, for three" in text
    assert (tuned.vote_cap, tuned.changes) == (12, 3)
    assert f"{penalty(params.horizon):.1f} for $T$ = {params.horizon:,}" in text


class Written:
    """The noises that stand in a table, in turn."""

    def __init__(self, noises):
        self.noises = list(noises)

    def take(self, count):
        taken, self.noises = self.noises[:count], self.noises[count:]
        return np.array(taken, dtype=int)

    def draw(self, size, rng):
        return [self.noises.pop(0)]


def test_the_running_sums_that_are_added_by_hand(monkeypatch):
    _, rows = by_hand("continual_mean")
    table = {row[0]: [cell.translate(DIGITS) for cell in row[1:]] for row in rows}
    bits, noises = (np.array(table[name], dtype=int) for name in ("bit", "noise"))
    mechanism = BinaryMechanism(horizon=8, epsilon=4.0, integer=True)
    assert mechanism.noise.scale == 1
    assert np.array_equal(np.cumsum(bits), np.array(table["true running sum"], dtype=int))
    for size in ("FIRST", "LONGEST"):
        monkeypatch.setattr(prefix_sums, size, 1)  # a block's noise is drawn when it ends, and not with those of many steps
    released = np.cumsum(bits) + mechanism.structure.all(8, Written(noises))
    assert released.tolist() == [int(number) for number in table["released"]]
    blocks = [(step - (step & -step) + 1, step) for step in range(1, 9)]
    assert table["block that ends here"] == [str(last) if first == last else f"{first}-{last}" for first, last in blocks]


def test_the_counters_that_are_kept_by_hand():
    text, (_, *rows) = by_hand("sparse_vector")
    monitor = ThresholdMonitorEvolving(Laplace(20.0), threshold=3, reports=2)
    object.__setattr__(monitor, "noise", Written(float(row[3].translate(DIGITS)) for row in rows))
    state = monitor.start(6)
    for _, users, counted, noise, total, answer, counters in rows:
        held = np.isin(np.arange(1, 7), [int(user) for user in users.split()])
        assert int(counted) == np.count_nonzero(held & state.active)
        assert float(total) == pytest.approx(int(counted) + float(noise.translate(DIGITS)))
        state, release = monitor.step(state, held, lambda values: values, stream(0, "unused"))
        assert release == (answer == "yes")
        assert state.counted.tolist() == [int(counter) for counter in counters.split()]
    assert not state.active.any()
    assert f"about {calibrate(1.0, 1e-6, 2).scale:.0f} users" in text


def test_the_exercises_on_heavy_hitters():
    majority, users, rows = solutions("heavy_hitters")
    assert f"2\\ln 3 = {2 * math.log(3):.3f}" in majority
    assert f"= {binom.sf(10, 21, SignFlip(math.log(3)).keep):.3f}$" in majority
    for epsilon in (1.0, 2.0):
        debias = SignFlip(epsilon).debias
        assert f"a_{epsilon:.0f} = {debias:.3f}$" in users
        assert f" {math.ceil(math.pi / 2 * (500 * debias) ** 2):,}" in users
    names = code(rows)
    assert names["rows_1"].max() > 9_000
    assert names["rows_64"].max() < 1_500


def test_the_exercises_on_evolving_data():
    first, once, chosen, _ = solutions("evolving")
    thresh = Thresh(100, 16, 1000, 100.0, 1.0, 1.0, vote_cap=4, estimate_cap=2, unit=0.04)
    for epochs, height in (((3, 15), "0.40"), ((2, 6, 10, 14), "0.32"), ((4, 12), "0.24"), ((8,), "0.16"), ((16,), "0.08")):
        assert {f"{thresh.threshold(epoch):.2f}" for epoch in epochs} == {height}
        assert height in first
    for change, epoch in ((0.25, 4), (0.45, 2)):
        assert next(t for t in range(2, 17) if change > thresh.threshold(t)) == epoch
    error = SignFlip(1.0).debias * math.sqrt(100 / 40_000)
    assert f"= {error:.3f}$" in once
    assert f"j = {math.ceil((error / 0.05) ** 2)}$" in once
    ratios = code(chosen)["ratios"]
    assert ("an eighth of the error" in chosen) == (7.5 <= 1 / ratios[3] <= 8.5)
    assert ("a sixth less" in chosen) == (5.5 <= 1 / (1 - ratios[1000]) <= 6.5)


def test_the_exercises_on_continual_means():
    blocks, scale, cap, base = solutions("continual_mean")
    assert "64 + 32 + 4" in blocks
    assert f"{sum(Tree(128).relative_variance(step) == 1 for step in range(1, 129))} steps" in blocks
    mechanism = BinaryMechanism(100_000, 1.0, sensitivity=16.0)
    assert f"= {mechanism.noise.scale:.0f}$" in scale
    for error in mechanism.standard_error([65_536, 65_535]):
        assert f"= {error:.1f}$" in scale
    assert f"The cap is {code(cap)['cap']}." in cap
    assert choosing.recommended(n_users=1000, samples_per_user=64, epsilon=2.0, horizon=20_000).samples_per_user < 64
    errors = code(base)["errors"]
    assert f"has {errors[4]:.2f}, the binary one {errors[2]:.2f}" in base


def test_the_exercises_on_sparse_vectors():
    coins, scales, deletion = solutions("sparse_vector")
    weights = {number: Fraction(1, 3 ** abs(number)) for number in range(-40, 41)}
    above = [
        sum(weight for number, weight in weights.items() if number >= least) / sum(weights.values()) for least in (1, 0)
    ]
    assert [float(chance) for chance in above] == pytest.approx([1 / 4, 3 / 4])
    assert "frac14" in coins
    assert "frac34" in coins
    assert privacy.delta_of_epsilon(math.log(3), 1 / math.log(3), 1, "replacement") == pytest.approx(6 / 13)
    found = code(scales)["scales"]
    assert all(f"{scale:.2f}" in scales for scale in found)
    assert all(f"{larger / smaller:.2f}" in scales for smaller, larger in pairwise(found))
    three, ten = (calibrate(1.0, 1e-6, reports).scale for reports in (3, 10))
    assert f"{ten:.2f} instead of {three:.2f}" in deletion
    assert f"is {privacy.epsilon_of_delta(1e-6, three, 10, 'replacement'):.2f} instead of 1" in deletion
    monitor = ThresholdMonitorEvolving.calibrated(calibrate(1.0, 1e-6, 3), threshold=300)
    state, rng, yeses = monitor.start(1000), stream(0, "exercise"), 0
    for _ in range(10):
        state, release = monitor.step(state, np.ones(1000), np.asarray, rng)
        yeses += release
    assert f"there are {yeses} yeses, then {10 - yeses} noes" in deletion


def test_a_letter_has_one_meaning_in_a_chapter():
    """A row of a chapter's table of notation has each symbol once; what another paper calls so stands in brackets."""
    page = (REPOSITORY / "book" / "notation.md").read_text()
    for section in page.split("\n## ")[2:]:
        symbols: list[str] = []
        for row in re.findall(r"^\| (?:`|\|).*$", section, re.MULTILINE):
            cell = row.split(" | ")[1] if row.startswith("| `") else row.split("|")[2]
            symbols += re.findall(r"\$([^$]+)\$", re.sub(r"\([^()]*\)", "", cell))
        twice = {symbol for symbol in symbols if symbols.count(symbol) > 1}
        assert not twice, section.splitlines()[0]
