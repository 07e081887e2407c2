"""Texts that nobody listed: the tree of UTF-8 holds them all, and clients and servers find them between processes."""

from __future__ import annotations

import subprocess
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import TextSearch, TextTree

SEARCH = TextSearch(8.0, longest=6, rows=4, cells=256)
TEXTS = ["hi", "東京", "naïve", "Я"]
TREE = TextTree(12, 2)


def reports_of(texts, name, search=SEARCH):
    public, private = stream(0, name, "public"), stream(0, name, "private")
    return [search.report(text, public, private) for text in texts]


@settings(max_examples=60)
@given(st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), min_size=1, max_size=4))
def test_every_text_is_found_by_descending(text):
    letters = unicodedata.normalize("NFC", text)
    if len(letters.encode()) > TREE.longest:
        return
    (leaf,) = TREE.encode([text])
    assert TREE.decode(leaf[None]) == [letters]
    for level in range(TREE.depth):
        above = leaf[None, : 2 * level]
        below = TREE.children(above, level)
        assert len(below) <= TREE.fan(level)
        assert np.count_nonzero((below == leaf[: 2 * level + 2]).all(axis=1)) == 1
        assert TREE.prefixes(leaf[None], level) == TREE.keys(leaf[None, : 2 * level + 2])


def test_children_are_different_and_no_bytes_that_no_text_has():
    first = TextTree(3).children(TextTree(3).root, 0)
    second = TextTree(3).children(first, 1)
    whole = TextTree(3).children(second, 2)
    assert len(np.unique(TextTree(3).keys(whole))) == len(whole)
    assert len(first) == 127 + 51
    told = {bytes(leaf).rstrip(b"\0") for leaf in whole}
    assert {b"abc", "é".encode(), "東".encode(), b"a"} <= told
    assert not {b"", b"\xc3", b"a\xc3", b"\xe6\x9d", b"\x80", b"\xff"} & told


@pytest.mark.parametrize("text", ["", "a\0b", "1234567890123", "\ud800"])
def test_texts_without_a_leaf_are_named(text):
    with pytest.raises(ValueError, match=r"texts must have 1 to 12 bytes of UTF-8, none of them 0, got .* at position 1"):
        TREE.encode(["ok", text])


def test_what_is_no_text_or_no_leaf_is_refused():
    with pytest.raises(TypeError, match="texts must be text, got nan at position 0"):
        TREE.encode([float("nan")])
    with pytest.raises(TypeError, match="texts must be a list of texts, got the text 'ab'"):
        TREE.encode("ab")
    with pytest.raises(ValueError, match="leaves must be made by encode"):
        TREE.checked(np.zeros((2, 3), dtype=np.uint8))
    with pytest.raises(ValueError, match="longest must be at most 64 and a multiple of step"):
        TextTree(7, 2)


CLIENTS = """
import sys
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import TextSearch
search, shard = TextSearch(8.0, longest=6, rows=4, cells=256), int(sys.argv[1])
public, private = stream(shard, "public"), stream(shard, "private")
texts = ["hi"] * 1200 + ["\u6771\u4eac"] * 900 + ["na\u00efve"] * 700 + ["\u042f"] * 20
sys.stdout.buffer.write(b"".join(search.report(text, public, private) for text in texts))
"""


def test_two_shards_and_a_restart_give_one_list():
    sent = [
        subprocess.run([sys.executable, "-c", CLIENTS, str(shard)], capture_output=True, check=True).stdout
        for shard in (0, 1)
    ]
    shards = [[own[first : first + 15] for first in range(0, len(own), 15)] for own in sent]
    half = SEARCH.save(SEARCH.add(SEARCH.empty(), shards[0][:1000]))  # the first server stops here
    restarted = TextSearch(8.0, longest=6, rows=4, cells=256)
    first = restarted.add(restarted.load(half), shards[0][1000:])
    both = first + SEARCH.add(SEARCH.empty(), shards[1])
    whole = SEARCH.add(SEARCH.empty(), shards[0] + shards[1])
    assert all(np.array_equal(a.sums, b.sums) for a, b in zip(both.levels, whole.levels, strict=True))
    table = SEARCH.table(both, top=2)
    assert table.word.tolist() == ["hi", "東京"]
    every = SEARCH.table(both).set_index("word")
    assert set(every.index) == {"hi", "東京", "naïve"}
    held = np.array([2400, 1800, 1400])
    assert np.all(np.abs(every.estimate[["hi", "東京", "naïve"]] - held) < 5 * every.standard_error)
    assert np.all((every.low < every.estimate) & (every.estimate < every.high))


def test_reports_that_are_none_of_the_search_are_refused_and_nothing_is_added():
    good, other = reports_of(["hi"], "own")[0], TextSearch(8.0, longest=6, seed=1, rows=4, cells=256)
    held = SEARCH.add(SEARCH.empty(), [good])
    for wrong, message in (
        (good[:-1], "reports must have 15 bytes, got 14 at position 1"),
        (reports_of(["hi"], "other", other)[0], "reports must be made for this search, .* got another's at position 1"),
        (good[:8] + b"\xff" + good[9:], "reports must be what report makes, got level 255"),
        (good[:-4] + b"\xff" * 4, "reports must be what report makes, got level"),
    ):
        with pytest.raises(ValueError, match=message):
            SEARCH.add(held, [good, wrong])
    with pytest.raises(TypeError, match="reports must be bytes, got str at position 0"):
        SEARCH.add(held, ["hi"])
    with pytest.raises(ValueError, match="sketches must be of one oracle to be merged"):
        held + other.empty()
    with pytest.raises(ValueError, match="sketch must hold reports made for"):
        SEARCH.table(other.add(other.empty(), reports_of(["hi"], "other", other)))
    with pytest.raises(ValueError, match="held must be of one report or more"):
        SEARCH.table(SEARCH.empty())


def test_a_saved_state_is_only_loaded_by_its_search():
    held = SEARCH.add(SEARCH.empty(), reports_of(TEXTS, "saved"))
    saved = SEARCH.save(held)
    assert all(np.array_equal(a.sums, b.sums) for a, b in zip(SEARCH.load(saved).levels, held.levels, strict=True))
    with pytest.raises(ValueError, match="saved must be of this search"):
        TextSearch(8.0, longest=6, seed=1, rows=4, cells=256).load(saved)
    for broken in (b"", b"no archive", saved[:200]):
        with pytest.raises(ValueError, match="saved must be the bytes that save made"):
            SEARCH.load(broken)


def test_a_longer_text_is_refused_before_anything_is_drawn():
    class Untouched:
        def __getattr__(self, name):
            raise AssertionError(name)

    with pytest.raises(ValueError, match="texts must have 1 to 6 bytes"):
        SEARCH.report("too long", Untouched(), Untouched())


def test_texts_at_the_threshold_are_found_about_every_other_time_and_clear_ones_nearly_always():
    search, found = TextSearch(4.0, longest=6, rows=8, cells=1024), []
    least = search.found_from(400_000, 300_000)
    held = np.round(least * np.array([1.0, 1.25, 1.5])).astype(int)
    leaves = search._protocol.tree.encode(["naïve", "東京", "hi", "others"])
    for run in range(12):
        sketch = search._protocol.simulate(leaves, np.append(held, 400_000 - held.sum()), stream(run, "simulation"))
        found.append([text in set(search.table(sketch).word) for text in ("naïve", "東京", "hi")])
    at, above, clear = np.mean(found, axis=0)
    assert 0.05 < at < 0.95
    assert above >= 0.8
    assert clear == 1
