"""Every local report, enumerated: the likelihood ratio never exceeds e^epsilon and attains it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evolvingdp.audit.exact import reports
from evolvingdp.audit.exact.laws import worst_loss
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.binary_code import BinaryCode
from evolvingdp.heavy_hitters.bitstogram import PLANS as BITSTOGRAM_PLANS
from evolvingdp.heavy_hitters.bitstogram import READINGS, Bitstogram
from evolvingdp.heavy_hitters.olh import OLH
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.sketches.local_rnd import LocalRnd
from evolvingdp.heavy_hitters.tree_hist import PLANS, TreeHist
from evolvingdp.heavy_hitters.word_tree import WordTree

EPSILONS = (0.1, 1.0, 2.0, 8.0)
KEYS = np.arange(12, dtype=np.uint64)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_report_costs_exactly_epsilon(epsilon):
    client = LocalRnd(MultiplyShift.draw(3, 8, stream(0, "hashes")), epsilon)
    losses = []
    for slot in range(3 * 8):  # public: fixed for both words
        bits = client.true_bits(KEYS, np.full(len(KEYS), slot))
        losses.append(worst_loss([client.randomizer.probabilities(int(bit)) for bit in bits]))
    assert max(losses) == pytest.approx(epsilon, rel=1e-9)
    assert min(losses) >= 0


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_an_uncompressed_report_costs_exactly_epsilon(epsilon):
    client = LocalRnd(MultiplyShift.draw(1, 4, stream(0, "hashes")), epsilon)
    laws = reports.uncompressed_laws(client, KEYS)
    assert sum(laws[0].values()) == pytest.approx(1)
    assert worst_loss(laws) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 4.0])
def test_an_olh_report_costs_exactly_epsilon(epsilon):
    oracle = OLH(epsilon)
    laws = [oracle.probabilities(hashed) for hashed in range(oracle.hash_values)]
    assert all(sum(law.values()) == pytest.approx(1) for law in laws)
    assert worst_loss(laws) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("plan", PLANS)
def test_a_tree_hist_user_s_transcript_costs_exactly_epsilon(plan):
    """All of a user's reports together, enumerated for every level the user may be given and every slot of a tiny sketch."""
    tree = WordTree((1, 1), length=2)
    protocol = TreeHist(tree, 1.7, 10.0, rows=1, width=4, plan=plan).draw_hashes(stream(0, "hashes"))
    leaves = tree.encode(["ab", "ac", "zb", "mn"])
    assert reports.tree_hist_loss(protocol, leaves) == pytest.approx(1.7, rel=1e-9)


@pytest.mark.parametrize("plan", BITSTOGRAM_PLANS)
@pytest.mark.parametrize("bit_as", READINGS)
def test_a_bitstogram_user_s_transcript_costs_exactly_epsilon(plan, bit_as):
    """All of a user's reports together, for every group, column and final slot that the user may be given."""
    method = Bitstogram(1.3, 10.0, length=1, code=BinaryCode(7, 7), buckets=2, plan=plan, bit_as=bit_as, rows=1, width=2)
    drawn = method.draw_hashes(stream(0, "hashes"))
    messages = method.encode(["a", "b", "p", "z"])
    assert reports.bitstogram_loss(drawn, messages) == pytest.approx(1.3, rel=1e-9)


@pytest.mark.parametrize("n_reports", [1, 2])
@pytest.mark.parametrize("n_hashes", [1, 2])
@pytest.mark.parametrize(
    "noise", [{}, {"permanent_noise": 0.2, "one_from_zero": 0.1, "one_from_one": 0.5}, {"permanent_noise": 0.0}]
)
def test_rappor_reports_of_one_word_cost_exactly_what_is_stated(n_reports, n_hashes, noise):
    """All sequences of reports of 4 bits, for all Bloom filters that words have."""
    settings = Rappor(n_bits=4, n_hashes=n_hashes, n_cohorts=40, **noise)
    protocol = settings.draw_hashes(stream(0, "hashes"))
    filters = set(protocol.bloom(KEYS[:, None], np.arange(40)[None, :]).ravel().tolist())
    assert len(filters) == (4 if n_hashes == 1 else 10)  # every filter with one, or with one or two bits
    laws = list(reports.rappor_laws(settings, filters, n_reports))
    assert worst_loss(laws) == pytest.approx(settings.epsilon_of_reports(n_reports), rel=1e-9)
    assert settings.epsilon_of_reports(n_reports) <= settings.epsilon_permanent


def test_a_permanent_response_that_is_redrawn_is_caught():
    """Real clients did this: the loss then grows with every report, past what the permanent response allows."""
    settings = Rappor(n_bits=4)
    kept, redrawn = settings.epsilon_of_reports(10), 10 * settings.epsilon_of_reports(1)
    assert kept < settings.epsilon_permanent < redrawn


def test_a_randomizer_that_keeps_too_often_is_caught():
    """The check has power: the flip of epsilon 10 % too large fails it."""
    laws = [SignFlip(1.1).probabilities(bit) for bit in (-1, 1)]
    assert worst_loss(laws) > 1.0 * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [1.0, 36.0, 40.0])
def test_the_sampler_flips_at_least_as_often_as_the_law_it_states(epsilon):
    """A uniform of 53 bits is below p with probability ceil(p 2^53) / 2^53."""

    class Smallest:
        def random(self, shape):
            return np.zeros(shape)

    flip = SignFlip(epsilon)
    assert flip.randomize(np.array([1, -1]), Smallest()).tolist() == [-1, 1]  # some uniform flips, however large epsilon
    sampled = math.ceil(flip.flip * 2**53) / 2**53
    assert sampled >= flip.flip > 0
    assert math.log((1 - sampled) / sampled) <= epsilon * (1 + 1e-12)
