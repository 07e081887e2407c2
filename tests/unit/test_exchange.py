"""Clients and servers: bytes of the size that is stated, shards in other processes, and what is refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import binom

from evolvingdp.core.exchange import Client, Listed, Server
from evolvingdp.core.geometry import Geometry
from evolvingdp.core.reports import Hashed, Projective, Sign, Subset
from evolvingdp.core.seeds import stream
from evolvingdp.evolving.rivals.once import Once, Tally
from evolvingdp.heavy_hitters.text_search import Texts
from support import ALPHA

WORDS = ("the", "Grüße", "", "a, b", "none of these")
KINDS = {
    "one": lambda k, epsilon: Subset(k, epsilon),
    "three": lambda k, epsilon: Subset(k, epsilon, 3),
    "hashed": lambda k, epsilon: Hashed(k, epsilon),
    "point": lambda k, epsilon: Projective(k, epsilon, Geometry(2, 3)),
    "sign": lambda k, epsilon: Sign(k, epsilon),
}


def listed(kind="one", epsilon=2.0, public="spring"):
    return Listed(WORDS, epsilon, public, KINDS[kind](len(WORDS), epsilon))


def sent(made, user):
    return Client(made).send(WORDS[user % 3], stream(0, "exchange", user))


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_is_a_number_below_messages_and_back(kind):
    report = KINDS[kind](6, 1.0)
    some = {0, 1, report.messages // 3, report.messages - 1} | set(range(min(report.messages, 20)))
    assert [report.message(row) for row in report.rows(sorted(some))] == sorted(some)
    assert report.messages <= 1 << report.bits < 4 * report.messages
    if kind == "three":
        assert {frozenset(row) for row in report.rows(list(range(20))).tolist()} == {
            frozenset((a, b, c)) for c in range(6) for b in range(c) for a in range(b)
        }


@pytest.mark.parametrize("kind", KINDS)
def test_what_clients_send_is_what_collect_adds_up(kind):
    made, server, user = listed(kind), Server(listed(kind)), 0
    reports = [sent(made, user) for user in range(40)]
    assert {len(each) for each in reports} == {4 + math.ceil(made.report.bits / 8)}
    server.add(reports[:15])
    server.add(iter(reports[15:]))
    sums = np.zeros(made.width, dtype=np.int64)
    for user in range(40):
        public, private = stream(0, "exchange", user).spawn(2)
        sums += made.report.collect(np.array([user % 3]), public, private)
    assert (server.n_reports, server.sums.tolist()) == (40, sums.tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_of_the_table_cover_and_are_no_longer_than_needed(kind):
    made, runs, n_users, law = listed(kind), 400, 1000, np.array([0.7, 0.25, 0.05, 0.0, 0.0])
    covered, rng = np.zeros(5, dtype=int), stream(0, "exchange", "coverage", kind)
    for _ in range(runs):
        sums = made.report.draw_sums(np.array([n_users]), law[None], rng)
        table = made.table(sums, n_users, top=5).set_index("word").loc[list(WORDS)]
        covered += (table["low"] <= law + 1e-12) & (law <= table["high"] + 1e-12)
    assert binom.cdf(covered.min(), runs, 0.95) > ALPHA
    assert binom.sf(covered[:2].max(), runs, 0.95) > ALPHA


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (lambda made: b"", "reports must be of 5 bytes, got b'' in place 1"),
        (lambda made: made.tag + b"\0\0", "reports must be of 5 bytes"),
        (lambda made: "text", "reports must be of 5 bytes, got 'text'"),
        (lambda made: made.tag + b"\5", "reports must be below 5 of this round, got 5 in place 1"),
        (lambda made: sent(listed(public="autumn"), 0), "reports must be of this round, whose tag is"),
        (lambda made: sent(listed(epsilon=1.0), 0), "reports must be of this round, whose tag is"),
    ],
)
def test_what_is_no_report_of_the_round_is_refused_and_nothing_is_added(report, said):
    made, server = listed(), Server(listed())
    server.add([sent(made, 1)])
    before = server.to_json()
    with pytest.raises(ValueError, match=said):
        server.add([sent(made, 0), report(made)])
    assert server.to_json() == before


@pytest.mark.parametrize(
    ("do", "said"),
    [
        (lambda: Client(listed()).send("The", np.random.default_rng(0)), "value must be one of the 5 words, such as 'the'"),
        (lambda: Client(listed()).send(["the"], np.random.default_rng(0)), r"value must be one of .* got \['the'\]"),
        (lambda: Server(listed()) + Server(listed(public="autumn")), "servers must be of one round"),
        (lambda: Server.from_json(listed(), Server(listed(epsilon=1.0)).to_json()), "text must be of the round"),
        (lambda: Server.from_json(listed(), "[]"), "text must be what to_json writes"),
        (lambda: _read(n_reports=-1), r"n_reports must be an integer in \[0, 2\^53\), got -1"),
        (lambda: _read(n_reports=2**70), r"n_reports must be an integer in \[0, 2\^53\), got 1180591620717411303424"),
        (lambda: _read(n_reports=True), "n_reports must be an integer .* got True"),
        (lambda: _read(sums=5), "sums must be a list of 5 integers, got 5"),
        (lambda: _read(sums=None), "sums must be a list of 5 integers, got None"),
        (lambda: _read(sums=[1, 2]), "sums must be a list of 5 integers"),
        (lambda: _read(sums=[1, 2, 3, 4, 0.5]), "sums must be a list of 5 integers"),
        (lambda: _read(n_reports=1, sums=[0, 0, 0, 0, 2**70]), r"sums must lie in \[0, 1\] after 1 reports, got 118059"),
        (lambda: _read(n_reports=1, sums=[10**6] * 5), r"sums must lie in \[0, 1\] after 1 reports, got 1000000 in place 0"),
        (lambda: _read(n_reports=9, sums=[9, -1, 1, 0, 0]), r"sums must lie in \[0, 9\] .* got -1 in place 1"),
        (lambda: _read(n_reports=9, sums=[4, 2, 2, 0, 0]), "sums must add up to 9 in all, got 8"),
        (lambda: _read("three", n_reports=4, sums=[4, 4, 4, 1, 0]), "sums must add up to 12 in all, got 13"),
        (lambda: _read("hashed", n_reports=4, sums=[4, 4, 5, 1, 0]), r"sums must lie in \[0, 4\] .* got 5 in place 2"),
        (lambda: _read("point", n_reports=4, sums=[4, 1] + [0] * 5), "sums must add up to 4 in all, got 5"),
        (lambda: _read("sign", n_reports=4, sums=[-5] + [0] * 7), r"sums must lie in \[-4, 4\] .* got -5 in place 0"),
        (lambda: _read("sign", n_reports=4, sums=[4, -2] + [0] * 6), "sums must add up to 4 in size, or .* less, got 6"),
        (lambda: _read("sign", n_reports=4, sums=[-2, 1] + [0] * 6), "sums must add up to 4 in size, or .* less, got 3"),
        (lambda: Server(listed()).table(), "reports must be added before"),
        (lambda: Server(listed()).table(top=0), "top must be >= 1"),
        (lambda: Listed(("a", "a"), 1.0, "spring"), "words must be different strings"),
        (lambda: Listed(("a", "b"), 1.0, ""), "public must be a string that names the collection"),
        (lambda: Listed(("a", "b"), 1.0, "spring", Subset(3, 1.0)), "report must be one of 2 values with epsilon 1.0"),
        (lambda: Listed(("a",), 1.0, "spring"), "n_values must be >= 2"),
    ],
)
def test_what_cannot_work_is_refused(do, said):
    with pytest.raises(ValueError, match=said):
        do()


def _read(kind="one", **changed):
    made = listed(kind)
    return Server.from_json(made, json.dumps(json.loads(Server(made).to_json()) | changed))


@pytest.mark.parametrize("kind", KINDS)
def test_states_that_reports_lead_to_are_read(kind):
    made = listed(kind)
    server = Server(made)
    for user in range(30):
        assert Server.from_json(made, server.to_json()).to_json() == server.to_json()
        server.add([sent(made, user)])


def test_an_epsilon_that_is_an_integer_makes_the_same_round():
    for report in (None, *(make(len(WORDS), 2) for make in KINDS.values())):
        assert Listed(WORDS, 2, "spring", report).tag == Listed(WORDS, 2.0, "spring", report).tag
    assert Listed(WORDS, 2, "spring", Subset(5, 2)).tag == Listed(WORDS, 2.0, "spring", Subset(5, 2.0)).tag
    assert Texts(2, "spring").tag == Texts(2.0, "spring").tag


def test_servers_of_epochs_are_a_tally_of_users_once():
    servers, settings = [], Once(120, 3, 2.0, len(WORDS), report=Subset(len(WORDS), 2.0))
    for epoch in range(3):
        made = listed(public=f"spring, epoch {epoch}")
        servers.append(Server(made))
        servers[-1].add([sent(made, user) for user in range(epoch, 120, 3)])
    tally = Tally.of(servers)
    assert tally.reports.tolist() == [40, 40, 40]
    assert settings.estimates(tally) == pytest.approx(
        np.array([each.table().set_index("word")["estimate"].loc[list(WORDS)] for each in servers])
    )
    assert settings.detect(tally).estimates.shape == (3, 5)
