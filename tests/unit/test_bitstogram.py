"""Bitstogram: the code corrects what it promises, words come back, the choices are what they say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolvingdp.core import words
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.binary_code import ReedMuller
from evolvingdp.heavy_hitters.bitstogram import Bitstogram, CodeHashes, explicit_hist, hashtogram
from evolvingdp.notebooks.heavy_hitters.bitstogram import lemmas

CODE = ReedMuller()


def sent(code, messages):
    return 1 - 2.0 * code.encode(messages)


@settings(max_examples=40)
@given(st.integers(0, 2**29 - 1), st.sets(st.integers(0, 127), max_size=15))
def test_the_code_corrects_every_pattern_it_promises(message, wrong):
    received = sent(CODE, np.array([message], dtype=np.uint64))
    received[0, sorted(wrong)] *= -1
    assert CODE.correctable == 15
    assert CODE.decode(received)[0] == message


@pytest.mark.parametrize(("variables", "degree"), [(3, 1), (4, 1), (4, 2), (3, 3)])
def test_every_word_within_reach_of_a_codeword_is_decoded_to_it(variables, degree):
    """All 2^length words against all codewords, whose least distance is that of the textbook."""
    code = ReedMuller(variables, degree)
    messages = np.arange(2**code.message_bits, dtype=np.uint64)
    words_ = 1 - 2 * ((np.arange(2**code.length)[:, None] >> np.arange(code.length)) & 1).astype(np.float32)
    agree = (
        words_ @ (1 - 2 * code.encode(messages).astype(np.float32)).T
    )  # how many bits are the same, less those that are not
    assert code.encode(messages[1:]).sum(axis=1).min() == 2 ** (variables - degree)
    near = agree.max(axis=1) >= code.length - 2 * code.correctable
    assert np.array_equal(code.decode(words_.astype(float))[near], messages[agree.argmax(axis=1)][near])


def test_a_codeword_is_the_table_of_its_polynomial():
    """1 + x0 + x0 x2 of three variables: coefficients of 1, x0, x1, x0 x1, x2, x0 x2, x1 x2."""
    code = ReedMuller(3, 2)
    table = [(1 + x0 + x0 * x2) % 2 for x2 in (0, 1) for _ in (0, 1) for x0 in (0, 1)]
    assert code.encode(np.array([0b0100011], dtype=np.uint64))[0].tolist() == table


def test_certain_bits_outvote_more_uncertain_ones():
    """Of three bits wrong in eight, four are halfway to another word; but the wrong ones are hardly certain."""
    code = ReedMuller(3, 1)
    received = sent(code, np.array([0b1010], dtype=np.uint64))
    for place in (0, 3, 6):
        received[0, place] *= -0.2
    assert code.decode(received)[0] == 0b1010
    assert code.decode(np.sign(received))[0] != 0b1010


def test_random_errors_beyond_the_promise_are_nearly_always_corrected():
    """The noise of a bucket at which a sixth of its bits are wrong, half as many again as are always corrected."""
    noise = 1 + stream(0, "errors").normal(size=(400, CODE.length))
    assert np.mean(noise < 0) > 1.3 * CODE.correctable / CODE.length
    assert np.mean(CODE.decode(noise) == 0) > 0.95


def test_the_shortest_code_that_carries_a_word_is_taken():
    assert [ReedMuller.least((26**length - 1).bit_length()).length for length in range(1, 7)] == [8, 16, 32, 64, 128, 128]
    assert ReedMuller.least(29, corrects=False) == ReedMuller(5, 5)
    with pytest.raises(ValueError, match="degree must be at most variables"):
        ReedMuller(3, 4)


@given(st.text(words.LETTERS, min_size=6, max_size=6))
def test_words_are_numbered_densely(word):
    (number,) = words.index([word], 6)
    assert words.from_index(np.array([number]), 6) == [word]
    assert number < 26**6


def test_the_bits_of_a_row_are_those_of_the_codeword():
    family = CodeHashes(MultiplyShift.draw(2, 8, stream(0, "hashes")), CODE, True)
    keys = np.array([12345, 999], dtype=np.uint64)
    assert family.rows == 2 * 128
    assert family.width == 16
    for repetition in (0, 1):
        rows = repetition * 128 + np.arange(128)
        cells, signs = family.cells(rows[:, None], keys[None, :]), family.signs(rows[:, None], keys[None, :])
        assert np.array_equal(cells.T % 2, CODE.encode(keys))
        assert np.all(cells // 2 == cells[0] // 2)  # one bucket for all bits of a repetition
        assert np.all(signs == 1)
    family = CodeHashes(MultiplyShift.draw(2, 8, stream(0, "hashes")), CODE, False)
    signs = family.signs(np.arange(128)[:, None], keys[None, :])
    assert np.array_equal(signs.T < 0, CODE.encode(keys) == 1)


TEXTS = np.array(["cat", "dog", "cow"])
COUNTS = np.array([60_000, 30_000, 10_000])


@pytest.mark.parametrize("path", ["collect", "simulate"])
@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"printed": True},
        {"coded": False},
        {"repetitions": 2},
    ],
    ids=["split", "printed", "SuccinctHist", "repeated"],
)
def test_heavy_words_are_found_with_their_counts(path, choices):
    settings_ = {"length": 3, "buckets": 64, "rows": 8, "width": 256} | choices
    method = Bitstogram(6.0, 5_000.0, **settings_)
    drawn = method.draw_hashes(stream(0, "hashes"))
    messages = method.encode(TEXTS)
    if path == "collect":
        reports = drawn.collect(np.repeat(messages, COUNTS), stream(0, "slots"), stream(0, "noise"))
    else:
        reports = drawn.simulate(messages, COUNTS, stream(0, "noise"))
    found = drawn.search(reports, int(COUNTS.sum())).words.set_index("word")
    assert set(TEXTS) <= set(found.index)
    assert np.all(np.abs(found.estimate[TEXTS] - COUNTS) < 6 * found.standard_error.iloc[0] + COUNTS.sum() / 256)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"length": 12}, "length must be at most 11"),
        ({"buckets": 1000}, "buckets must be a power of two, got 1000; 512 or 1024"),
    ],
)
def test_settings_that_cannot_work_are_refused(choices, message):
    with pytest.raises(ValueError, match=message):
        Bitstogram(**{"epsilon": 1.0, "threshold": 10.0} | choices)


def test_words_of_another_length_are_named():
    with pytest.raises(ValueError, match="words must have exactly 6 letters, got 'cat' with 3"):
        Bitstogram(1.0, 10.0).encode(np.array(["cat"]))


def test_hashtogram_lies_high_by_what_collides_and_freq_oracle_does_not():
    """A word that nobody holds among 200 light words in 16 cells: n/width too high without signs, on average over hashes."""
    keys, counts = np.arange(1, 201, dtype=np.uint64) ** 2, np.full(200, 500)
    asked = np.array([10**6 + 3], dtype=np.uint64)
    estimates = []
    for run in range(60):
        oracle = hashtogram(16, 16, 8.0, stream(0, "hashes", run))
        estimates.append(oracle.row_estimates(oracle.simulate(keys, counts, stream(0, "noise", run)), asked).mean())
    expected = counts.sum() / 16
    assert abs(np.mean(estimates) - expected) < 4.9 * np.std(estimates) / np.sqrt(60)
    assert np.mean(estimates) > 0.5 * expected


def test_explicit_hist_is_a_randomized_bit_with_the_paper_s_estimate():
    oracle = explicit_hist(2.0)
    assert oracle.hash_values == 2
    assert oracle.probabilities(0)[0] == pytest.approx(np.exp(2) / (np.exp(2) + 1))
    a = (np.exp(2) + 1) / (np.exp(2) - 1)
    support = np.array([700])
    assert oracle.estimate(support, 1000)[0] == pytest.approx(a * (700 - 300))  # a times the sum of y Z = 700 - 300


def test_noise_is_dropped_unless_it_is_a_word_of_its_bucket():
    """Every bucket decodes to some message: of 64, one is expected in its own bucket."""
    method = Bitstogram(0.5, 1.0, length=2, coded=False, buckets=64, rows=2, width=64, printed=True)
    survivors, lists = [], []
    for run in range(20):
        drawn = method.draw_hashes(stream(0, "hashes", run))
        found = drawn.search(drawn.simulate(method.encode(["ab"]), np.array([500]), stream(0, "noise", run)), 500)
        survivors.append(int(found.path.survivors.iloc[0]))
        lists += found.words.word.tolist()
    assert np.mean(survivors) < 3
    assert all(len(word) == 2 and word.isalpha() and word.isascii() and word.islower() for word in lists)


def test_the_stated_standard_error_is_that_of_many_runs():
    method = Bitstogram(3.0, 1_000.0, length=3, buckets=64, rows=8, width=4096, final_share=0.3)
    counts, errors = np.array([60_000, 40_000, 1]), []
    for run in range(60):
        drawn = method.draw_hashes(stream(0, "hashes", run))
        words = drawn.search(drawn.simulate(method.encode(TEXTS), counts, stream(0, "noise", run)), 100_001).words
        for word, count in zip(TEXTS[:2], counts, strict=False):
            errors += ((words.estimate - count) / words.standard_error)[words.word == word].tolist()
    assert len(errors) > 100
    sampled = math.sqrt(0.7 / 0.3 * 50_000) / words.standard_error.iloc[0]  # which users report finally is random, too
    assert np.std(errors) == pytest.approx(math.hypot(1, sampled), rel=0.35)


def test_the_lemmas_of_succinct_hist_and_hashtogram_ask_for_what_they_print():
    """Lemmas 6.3 and 6.6 at ten million users and six letters, evaluated by hand."""
    asked = lemmas(10**7, 1.0, 6)
    by_hand = 32 * 28.2026 * math.log(451.242) + 48 * math.sqrt(2e7 * 28.2026 * math.log(1804.97))
    assert asked["succinct_from_fraction"] == pytest.approx(by_hand / 10**7, rel=1e-5)
    assert asked["succinct_list"] == pytest.approx(32e7 / by_hand, rel=1e-5)
    assert asked["hashtogram_rows"] == pytest.approx(300 * math.log(12 * 10**7 * 26**6 / 0.05))
    assert asked["hashtogram_buckets"] == pytest.approx(math.sqrt(10**7 / math.log(10**7 * 26**6 / 0.05)))
    error = 400 * math.sqrt(math.log(12 * 10**7 * 26**6 / 0.05) / 10**7)
    assert asked["hashtogram_error_fraction"] == pytest.approx(error)
    assert lemmas(10**7, 0.5, 6)["hashtogram_error_fraction"] == pytest.approx(2 * error)
    assert lemmas(10**7, 4.0, 6) == asked  # which is for an epsilon of 1 at most


SMALL = {"length": 3, "buckets": 64, "rows": 8, "width": 256}


def test_a_word_that_only_the_second_repetition_reads_is_found():
    """It shares its first bucket with a word of twice its users, and its second with nobody."""
    method = Bitstogram(6.0, 5_000.0, **SMALL | {"repetitions": 2})
    drawn = method.draw_hashes(stream(0, "hashes"))
    texts = np.array(words.from_index(np.arange(26**3), 3))
    home = drawn.bits.hashes.buckets.cells(np.array([[0], [1]]), method.encode(texts))
    hidden = int(np.flatnonzero((home[0] == home[0, 0]) & (home[1] != home[1, 0]) & (home[1] != home[0]))[0])
    asked = texts[[0, hidden]]
    reports = drawn.simulate(method.encode(asked), np.array([60_000, 30_000]), stream(0, "noise"))
    assert set(drawn.search(reports, 90_000).words.word) == set(asked)


def test_messages_that_no_word_has_are_refused():
    drawn = Bitstogram(6.0, 5_000.0, **SMALL).draw_hashes(stream(0, "hashes"))
    messages = np.array([0, 26**3], dtype=np.uint64)
    for refused in (
        lambda: drawn.collect(messages, stream(0, "slots"), stream(0, "noise")),
        lambda: drawn.simulate(messages, np.array([1, 1]), stream(0, "noise")),
    ):
        with pytest.raises(ValueError, match="messages must be made by encode, got 17576 at position 1"):
            refused()


@pytest.mark.parametrize("printed", [True, False])
def test_the_final_cut_is_at_the_threshold_and_not_an_error_beside_it(printed):
    """As printed there is none."""
    method = Bitstogram(6.0, 5_000.0, printed=printed, **SMALL)
    drawn = method.draw_hashes(stream(0, "hashes"))
    reports = drawn.simulate(method.encode(TEXTS), COUNTS, stream(0, "noise"))
    estimate = drawn.search(reports, 100_000).words.set_index("word").estimate["dog"]
    for threshold, listed in ((estimate + 1, False), (estimate - 1, True)):
        found = replace(drawn, settings=replace(method, threshold=threshold)).search(reports, 100_000).words
        assert ("dog" in set(found.word)) == (listed or printed)


@pytest.mark.parametrize("printed", [True, False])
def test_a_search_reads_only_its_own_reports_and_knows_how_many_reported(printed):
    method = Bitstogram(6.0, 5_000.0, printed=printed, **SMALL)
    drawn, other = (method.draw_hashes(stream(0, "hashes", own)) for own in (0, 1))
    reports = drawn.simulate(method.encode(TEXTS), COUNTS, stream(0, "noise"))
    with pytest.raises(ValueError, match="sketch must hold reports made for"):
        other.search(reports, 100_000)
    with pytest.raises(ValueError, match="sketch must hold reports made for"):
        drawn.search(replace(reports, final=other.final.empty()), 100_000)
    for n_users in (99_999, 200_000):
        with pytest.raises(ValueError, match=rf"n_users must be the number of users who reported, .* got {n_users}"):
            drawn.search(reports, n_users)
    with pytest.raises(ValueError, match=r"reports must be 1 sketches of levels and 1 of a final phase, got 1 .* and 0"):
        drawn.search(replace(reports, final=None), 100_000)


def test_local_hashing_with_few_values_serves_a_large_epsilon_but_none_at_which_nothing_is_flipped():
    oracle = explicit_hist(36.0)
    assert 0 < oracle.probabilities(0)[1] < 1e-15
    with pytest.raises(ValueError, match="epsilon must be at most 36"):
        explicit_hist(800.0)
    reports = oracle.report([3, 4], stream(0, "seeds"), stream(0, "noise"))
    assert oracle.support(reports, [3])[0] >= 1
