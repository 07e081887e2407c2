"""Texts that nobody listed: clients and servers find them between processes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from evolvingdp.core.exchange import Client, Server
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import Texts

ROUND = Texts(8.0, "test", longest=6, rows=4, cells=256)


CLIENTS = """
import sys
from evolvingdp.core.exchange import Client
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import Texts
client, rng = Client(Texts(8.0, "test", longest=6, rows=4, cells=256)), stream(int(sys.argv[1]), "clients")
texts = ["hi"] * 1200 + ["\u6771\u4eac"] * 900 + ["na\u00efve"] * 700 + ["\u042f"] * 20
sys.stdout.buffer.write(b"".join(client.send(text, rng) for text in texts))
"""


def test_two_shards_and_a_restart_give_one_list():
    shards = []
    for shard in ("0", "1"):
        sent = subprocess.run([sys.executable, "-c", CLIENTS, shard], capture_output=True, check=True).stdout
        shards.append([sent[first : first + 11] for first in range(0, len(sent), 11)])
    stopped = Server(ROUND)
    stopped.add(shards[0][:1000])
    again = Texts(8.0, "test", longest=6, rows=4, cells=256)  # another process's
    restarted, second, whole = Server.from_json(again, stopped.to_json()), Server(again), Server(ROUND)
    restarted.add(shards[0][1000:])
    second.add(shards[1])
    whole.add(shards[0] + shards[1])
    both = restarted + second
    assert np.array_equal(both.sums, whole.sums)
    assert both.table(top=2).word.tolist() == ["hi", "東京"]
    every = both.table().set_index("word")
    assert set(every.index) == {"hi", "東京", "naïve"}
    held = np.array([2400, 1800, 1400]) / 5640
    told = every.loc[["hi", "東京", "naïve"]]
    assert np.all(np.abs(told.estimate - held) < 2.5 * (told.high - told.estimate))
    assert np.all((told.low < told.estimate) & (told.estimate < told.high))


def test_reports_that_nobody_can_send_or_of_another_round_are_refused_and_nothing_is_added():
    good, other = (Client(one).send("hi", stream(0, "client")) for one in (ROUND, replace(ROUND, public="other")))
    server = Server(ROUND)
    server.add([good])
    before = server.sums.copy()
    for wrong, message in (
        (good[:-1], "reports must be of 11 bytes"),
        (other, "reports must be of this round"),
        (good[:4] + b"\xff" + good[5:], r"reports must have level, row and point below 6, 4, .* got \[255, .* in place 1"),
        (good[:-4] + b"\xff" * 4, "reports must have level, row and point below .* in place 1"),
    ):
        with pytest.raises(ValueError, match=message):
            server.add([good, wrong])
    assert np.array_equal(server.sums, before)
    assert server.n_reports == 1


def test_hash_functions_are_those_of_the_collection_s_name():
    one, same, other = ROUND, replace(ROUND), replace(ROUND, public="other")
    prints = [[oracle.fingerprint for oracle in each.protocol.oracles] for each in (one, same, other)]
    assert prints[0] == prints[1]
    assert not set(prints[0]) & set(prints[2])
    with pytest.raises(ValueError, match="public must be a string that names the collection, got ''"):
        Texts(1.0, "")
    with pytest.raises(ValueError, match="rows must be below 2"):
        Texts(1.0, "many", rows=2**16)


def test_a_longer_text_is_refused_before_anything_is_drawn():
    rng = stream(0, "client")
    before = (rng.bit_generator.state, rng.bit_generator.seed_seq.n_children_spawned)
    with pytest.raises(ValueError, match="words must have 1 to 6 bytes"):
        Client(ROUND).send("too long", rng)
    assert (rng.bit_generator.state, rng.bit_generator.seed_seq.n_children_spawned) == before


def test_texts_at_the_threshold_are_found_about_every_other_time_and_clear_ones_nearly_always():
    search, found = Texts(4.0, "simulated", longest=6, rows=8, cells=1024), []
    least = search.found_from(400_000, 300_000)
    held = np.round(least * np.array([1.0, 1.25, 1.5])).astype(int)
    leaves = search.protocol.tree.encode(["naïve", "東京", "hi", "others"])
    for run in range(12):
        reports = search.protocol.simulate(leaves, np.append(held, 400_000 - held.sum()), stream(run, "simulation"))
        sums = np.concatenate([level.sums.ravel() for level in reports.levels])
        found.append([text in set(search.table(sums, 400_000).word) for text in ("naïve", "東京", "hi")])
    at, above, clear = np.mean(found, axis=0)
    assert 0.05 < at < 0.95
    assert above >= 0.8
    assert clear == 1
