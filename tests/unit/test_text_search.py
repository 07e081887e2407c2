"""Texts that nobody listed: clients and servers find them between processes."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binomtest, chisquare

from evolvingdp.core.exchange import Client, Server
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import Texts

ALPHA = 1e-6
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
        (good[:4] + b"\xff" + good[5:], r"reports must have level, row and point below 3, 4, .* got \[255, .* in place 1"),
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


def test_texts_of_so_many_users_as_is_said_are_found_with_95_per_cent_and_hardly_any_that_nobody_holds():
    """Also beside one that most users hold."""
    n_users, held, false = 400_000, [], 0
    search = Texts(4.0, "simulated", longest=3, rows=8, cells=1024)
    texts = ["na", "東", "hi", "é", "zip"]
    least = round(search.found_from(n_users))
    leaves = search.protocol.tree.encode([*texts, "all"])
    for run in range(20):
        reports = search.protocol.simulate(leaves, np.append([least] * 5, n_users - 5 * least), stream(run, "simulation"))
        listed = search.table(np.concatenate([level.sums.ravel() for level in reports.levels]), n_users).word
        held += [text in set(listed) for text in texts]
        false += len(set(listed) - {*texts, "all"})
    assert binomtest(sum(held), len(held), 0.95).pvalue > ALPHA
    assert binomtest(sum(held), len(held), 0.7).pvalue < ALPHA
    assert false <= 8  # of 1 expected: with a probability of 1e-6 more


def test_so_many_users_as_is_said_pass_all_levels_and_not_only_the_last():
    n_users, search = 10**6, Texts(3.0, "sixteen")
    held, settings, passed, survivors = search.found_from(n_users), search._searched(n_users), [], 1.0
    for level in range(settings.tree.depth):
        asked = survivors * 2**16
        cut = settings.cut(level, n_users, asked)
        shared = cut * n_users / (settings.rows * settings.report.space.points)  # words below the cut, which none fits away
        passed.append(ndtr((held - cut) / math.hypot(settings.level_error(level, n_users, held), math.sqrt(shared))))
        survivors = asked * settings.by_chance(level, n_users, cut) + n_users / cut
    assert math.prod(passed) == pytest.approx(0.95, abs=0.001)
    assert passed[-1] > 0.97


def test_levels_have_two_bytes_and_the_last_one_more_users_as_its_cut_is_the_highest():
    assert [ROUND.protocol.tree.steps, replace(ROUND, longest=5).protocol.tree.steps] == [(2, 2, 2), (2, 2, 1)]
    assert replace(ROUND, longest=2).protocol.shares == (1.0,)
    rng = stream(0, "client")
    levels = np.bincount([ROUND.encode("hi", rng)[0] for _ in range(3000)], minlength=3)
    assert chisquare(levels, 3000 * np.array(ROUND.protocol.shares)).pvalue > ALPHA
    assert chisquare(levels).pvalue < ALPHA
