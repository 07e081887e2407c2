"""Bitstogram: the code corrects what it promises, words come back, the choices are what they say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolvingdp.book.checkout import params_of
from evolvingdp.core import words
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import binary_code, theory
from evolvingdp.heavy_hitters.binary_code import BinaryCode
from evolvingdp.heavy_hitters.bitstogram import Bitstogram, BitstogramProtocol, CodeHashes, hashtogram
from evolvingdp.heavy_hitters.olh import explicit_hist

CODE = BinaryCode()


@settings(max_examples=40)
@given(st.integers(0, 2**29 - 1), st.sets(st.integers(0, 126), max_size=21))
def test_the_code_corrects_every_pattern_it_promises(message, wrong):
    received = CODE.encode(np.array([message], dtype=np.uint64))
    received[0, sorted(wrong)] ^= 1
    decoded, within_reach = CODE.decode(received)
    assert within_reach[0]
    assert decoded[0] == message


def test_the_code_corrects_at_least_an_eighth_of_its_bits():
    assert CODE.correctable == 21
    assert CODE.correctable / CODE.length >= 1 / 8


def test_more_errors_are_noticed_or_give_another_codeword_but_never_the_message():
    rng = stream(0, "errors")
    messages = rng.integers(0, 2**29, size=200).astype(np.uint64)
    received = CODE.encode(messages)
    for row in received:
        row[rng.choice(127, size=40, replace=False)] ^= 1
    decoded, within_reach = CODE.decode(received)
    assert not np.any(within_reach & (decoded == messages))


@given(st.integers(0, 2**29 - 1), st.integers(0, 2**29 - 1))
def test_the_code_is_linear(first, second):
    one, two, both = CODE.encode(np.array([first, second, first ^ second], dtype=np.uint64))
    assert np.array_equal(one ^ two, both)


def test_without_a_code_the_codeword_is_the_message():
    trivial = BinaryCode(29, 29)
    messages = np.array([0, 1, 2**28, 2**29 - 1], dtype=np.uint64)
    assert trivial.encode(messages)[1].tolist() == [0] * 28 + [1]
    assert trivial.decode(trivial.encode(messages))[0].tolist() == messages.tolist()


def test_codes_that_do_not_exist_are_told_those_that_do():
    with pytest.raises(ValueError, match=r"message_bits must be that of a BCH code of length 15 \(11, 7, 5.*\), got 6"):
        BinaryCode(15, 6)
    with pytest.raises(ValueError, match=r"length must be 2\^m - 1"):
        BinaryCode(100, 29)


TEXTBOOK = {  # message bits and errors corrected, Lin and Costello (2004), Table 6.1, and the repetition codes
    7: [(4, 1), (1, 3)],
    15: [(11, 1), (7, 2), (5, 3), (1, 7)],
    31: [(26, 1), (21, 2), (16, 3), (11, 5), (6, 7), (1, 15)],
    63: [(57, 1), (51, 2), (45, 3), (39, 4), (36, 5), (30, 6), (24, 7), (18, 10), (16, 11), (10, 13), (7, 15), (1, 31)],
    127: [
        (120, 1), (113, 2), (106, 3), (99, 4), (92, 5), (85, 6), (78, 7), (71, 9), (64, 10), (57, 11), (50, 13), (43, 14),
        (36, 15), (29, 21), (22, 23), (15, 27), (8, 31), (1, 63),
    ],
}  # fmt: skip


@pytest.mark.parametrize("length", TEXTBOOK)
def test_the_codes_that_exist_are_those_of_the_textbook(length):
    with pytest.raises(ValueError, match="message_bits must be that of a BCH code") as refused:
        BinaryCode(length, 2)
    listed = str(refused.value).split("(")[1].split(")")[0]
    assert listed == ", ".join(str(bits) for bits, _ in TEXTBOOK[length])
    for bits, correctable in TEXTBOOK[length]:
        if bits <= 63:
            assert BinaryCode(length, bits).correctable == correctable


@pytest.mark.parametrize(("length", "message_bits"), [(7, 4), (15, 7), (15, 5), (15, 1)])
def test_every_word_is_decoded_to_the_codeword_within_reach_if_there_is_one(length, message_bits):
    """All 2^length words against all codewords."""
    code = BinaryCode(length, message_bits)
    messages = np.arange(2**message_bits, dtype=np.uint64)
    codewords = code.encode(messages)
    words_ = ((np.arange(2**length)[:, None] >> np.arange(length)) & 1).astype(np.uint8)
    distance = np.array([(words_ != codeword).sum(axis=1) for codeword in codewords])
    decoded, within_reach = code.decode(words_)
    assert np.array_equal(within_reach, distance.min(axis=0) <= code.correctable)
    assert np.array_equal(decoded[within_reach], messages[distance.argmin(axis=0)][within_reach])
    assert np.array_equal(codewords[:, :message_bits] @ (1 << np.arange(message_bits)[::-1]), messages)  # in clear


def test_no_words_are_decoded_to_none():
    assert [part.tolist() for part in CODE.decode(np.zeros((0, CODE.length), dtype=np.uint8))] == [[], []]


def test_the_codewords_are_those_of_the_generator_polynomial():
    """(15, 7): x^8 + x^7 + x^6 + x^4 + 1 for the field of x^4 + x + 1, as every textbook has it."""
    assert BinaryCode(15, 7).encode(np.array([1], dtype=np.uint64))[0].tolist() == [0] * 6 + [1, 1, 1, 0, 1, 0, 0, 0, 1]


@pytest.mark.parametrize("length", [2**m - 1 for m in range(2, 17)])
def test_every_field_has_a_primitive_element(length):
    """Its powers are all elements: else a code would have fewer roots than it says."""
    power, exponent = binary_code._Bch(length, 1)._field
    assert np.array_equal(np.sort(power[:length]), np.arange(1, length + 1))
    assert np.array_equal(power[exponent[1:]], np.arange(1, length + 1))


def test_a_refusal_builds_no_code(monkeypatch):
    monkeypatch.setattr(binary_code, "_Bch", lambda *_: pytest.fail("builds a code of 1023 bits"))
    with pytest.raises(ValueError, match=r"of length 1023 \(1013, 1003, .*, got 60"):
        BinaryCode(1023, 60)


def test_a_length_without_a_code_is_named_as_such():
    params = params_of("heavy_hitters/bitstogram")
    with pytest.raises(ValueError, match=r"code_length must be 2\^m - 1 for a BCH code, .* got 64"):
        params(code_length=64)
    with pytest.raises(ValueError, match=r"message_bits must be that of a BCH code of length 127"):
        params(message_bits=30)


@given(st.text(words.LETTERS, min_size=6, max_size=6))
def test_words_are_numbered_densely(word):
    (number,) = words.index([word], 6)
    assert words.from_index(np.array([number]), 6) == [word]
    assert number < 26**6


def test_the_bits_of_a_row_are_those_of_the_codeword():
    family = CodeHashes(MultiplyShift.draw(2, 8, stream(0, "hashes")), CODE, True)
    keys = np.array([12345, 999], dtype=np.uint64)
    assert family.rows == 2 * 127
    assert family.width == 16
    for repetition in (0, 1):
        rows = repetition * 127 + np.arange(127)
        cells, signs = family.cells_and_signs(rows[:, None], keys[None, :])
        assert np.array_equal(cells.T % 2, CODE.encode(keys))
        assert np.all(cells // 2 == cells[0] // 2)  # one bucket for all bits of a repetition
        assert np.all(signs == 1)
    family = CodeHashes(MultiplyShift.draw(2, 8, stream(0, "hashes")), CODE, False)
    _, signs = family.cells_and_signs(np.arange(127)[:, None], keys[None, :])
    assert np.array_equal(signs.T < 0, CODE.encode(keys) == 1)


TEXTS = np.array(["cat", "dog", "cow"])
COUNTS = np.array([60_000, 30_000, 10_000])


@pytest.mark.parametrize("path", ["collect", "simulate"])
@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"printed": True},
        {"code": BinaryCode(15, 15)},
        {"repetitions": 2},
    ],
    ids=["split", "printed", "SuccinctHist", "repeated"],
)
def test_heavy_words_are_found_with_their_counts(path, choices):
    settings_ = {"length": 3, "code": BinaryCode(31, 16), "buckets": 64, "rows": 8, "width": 256} | choices
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
        ({"code": BinaryCode(15, 7)}, "code must carry 29 message bits for words of 6 letters"),
        ({"buckets": 1000}, "buckets must be a power of two, got 1000; 512 or 1024"),
        ({"final_share": 0}, "final_share must lie in"),
        ({"threshold": -1}, "threshold must be > 0"),
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
    """Without a code every bucket decodes to some message: of 64, one is expected in its own bucket."""
    method = Bitstogram(0.5, 1.0, length=2, code=BinaryCode(10, 10), buckets=64, rows=2, width=64, printed=True)
    survivors, lists = [], []
    for run in range(20):
        drawn = method.draw_hashes(stream(0, "hashes", run))
        found = drawn.search(drawn.simulate(method.encode(["ab"]), np.array([500]), stream(0, "noise", run)), 500)
        survivors.append(int(found.path.survivors.iloc[0]))
        lists += found.words.word.tolist()
    assert np.mean(survivors) < 3
    assert all(len(word) == 2 and word.isalpha() and word.isascii() and word.islower() for word in lists)


def test_the_final_cut_leaves_no_estimate_below_the_threshold():
    counts = np.array([30_000, 20_000, 12_000])

    def found(printed):
        method = Bitstogram(6.0, 15_000.0, length=3, code=BinaryCode(31, 16), buckets=64, rows=8, width=256, printed=printed)
        drawn = method.draw_hashes(stream(0, "hashes"))
        return drawn.search(drawn.simulate(method.encode(TEXTS), counts, stream(0, "noise")), int(counts.sum())).words

    assert set(found(False).word) == {"cat", "dog"}
    assert {"cat", "dog", "cow"} <= set(found(True).word)


def test_the_stated_standard_error_is_that_of_many_runs():
    method = Bitstogram(3.0, 1_000.0, length=3, code=BinaryCode(31, 16), buckets=64, rows=8, width=256, final_share=0.3)
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
    bits = 6 * math.log2(26)
    succinct = theory.succinct_hist_constants(10**7, 1.0, bits)
    by_hand = 32 * 28.2026 * math.log(451.242) + 48 * math.sqrt(2e7 * 28.2026 * math.log(1804.97))
    assert succinct["found_from"] == pytest.approx(by_hand, rel=1e-5)
    assert succinct["list_length"] == pytest.approx(32e7 / by_hand, rel=1e-5)
    hashtogram = theory.hashtogram_constants(10**7, 1.0, 0.05, 6 * math.log(26))
    assert hashtogram["rows"] == pytest.approx(300 * math.log(12 * 10**7 * 26**6 / 0.05))
    assert hashtogram["buckets"] == pytest.approx(math.sqrt(10**7 / math.log(10**7 * 26**6 / 0.05)))
    assert hashtogram["error"] == pytest.approx(400 * math.sqrt(10**7 * math.log(12 * 10**7 * 26**6 / 0.05)))
    assert theory.hashtogram_constants(10**7, 0.5, 0.05, 6 * math.log(26))["error"] == pytest.approx(2 * hashtogram["error"])


SMALL = {"length": 3, "code": BinaryCode(31, 16), "buckets": 64, "rows": 8, "width": 256}


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


def test_uncertain_bits_are_tried_both_ways_and_the_word_that_agrees_best_is_read(monkeypatch):
    """Two bits more than the code corrects are wrong, and these two are the least certain of the bucket."""
    drawn = Bitstogram(epsilon=2.0, threshold=10_000.0, buckets=16).draw_hashes(stream(0, "hashes"))
    code, message = drawn.settings.code, words.index(np.array(["planet"]), 6)
    home = int(drawn.bits.hashes.buckets.cells(np.zeros(1, dtype=int), message)[0])
    certain = np.full((16, code.length), 100.0)
    certain[home] *= 1 - 2.0 * code.encode(message)[0]
    wrong = np.arange(code.correctable + 2) * 3
    certain[home, wrong] *= -1
    certain[home, wrong[:2]] /= 50
    monkeypatch.setattr(BitstogramProtocol, "_certainty", lambda self, reports: certain)
    reports = drawn.simulate(message, np.array([100_000]), stream(0, "noise"))
    assert drawn.search(reports, 100_000).words.empty
    for soft_bits, listed in ((1, []), (2, ["planet"]), (4, ["planet"])):
        softer = replace(drawn, settings=replace(drawn.settings, soft_bits=soft_bits))
        assert softer.search(reports, 100_000).words.word.tolist() == listed


def test_the_final_cut_is_at_the_threshold_and_not_an_error_beside_it():
    method = Bitstogram(6.0, 5_000.0, **SMALL)
    drawn = method.draw_hashes(stream(0, "hashes"))
    reports = drawn.simulate(method.encode(TEXTS), COUNTS, stream(0, "noise"))
    estimate = drawn.search(reports, 100_000).words.set_index("word").estimate["dog"]
    for threshold, listed in ((estimate + 1, False), (estimate - 1, True)):
        found = replace(drawn, settings=replace(method, threshold=threshold)).search(reports, 100_000).words
        assert ("dog" in set(found.word)) == listed


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
    with pytest.raises(ValueError, match="reports must be 1 sketch of bits and 1 of a final phase"):
        drawn.search(replace(reports, final=None), 100_000)


def test_local_hashing_with_few_values_serves_a_large_epsilon_but_none_at_which_nothing_is_flipped():
    oracle = explicit_hist(36.0)
    assert 0 < oracle.probabilities(0)[1] < 1e-15
    with pytest.raises(ValueError, match="epsilon must be at most 36"):
        explicit_hist(800.0)
    reports = oracle.report([3, 4], stream(0, "seeds"), stream(0, "noise"))
    assert oracle.support(reports, [3])[0] >= 1
