"""THRESH and HEAVYTHRESH user by user against their algorithms line by line: same data and noise in, same releases out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from evolving_reference import Scripted, heavy_runs, many_counts, sign_matrix, thresh_runs

from evolvingdp.core.seeds import stream
from evolvingdp.evolving import protocol, streams
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.streams import WordStream
from evolvingdp.evolving.thresh import Thresh

TINY = Thresh(2, 4, 3, 30.0, 2.0, 2.5, vote_cap=2, estimate_cap=2, unit=0.1, beta=0.9, margin=0.1)
MIDDLE = Thresh(400, 19, 30, 50.0, 0.8, 1.0, vote_cap=3, estimate_cap=3, unit=0.05, beta=0.05)
SMALL = Thresh(300, 8, 2000, 60.0, 1.5, 2.0, vote_cap=8, estimate_cap=3, unit=0.2, beta=0.05)
LAWS = [[0.9, 0.02, 0.02, 0.02, 0.02, 0.02], [0.02, 0.02, 0.02, 0.02, 0.02, 0.9]]


@pytest.mark.parametrize(
    ("settings", "means", "runs"),
    [
        (replace(TINY, unit=0.07), [0.3, 0.3, 0.8, 0.5], 1500),
        (replace(TINY, exhaustion="printed", estimate_cap=1), [0.3, 0.3, 0.8, 0.5], 1500),
        (MIDDLE, streams.steps(19, 0.3, {4: 0.6, 9: 0.35}), 50),
        (replace(MIDDLE, vote_cap=1, estimate_cap=2, exhaustion="printed"), streams.drift(19, 0.2, 0.8), 50),
    ],
    ids=["freeze", "printed", "steps", "drift, printed"],
)
def test_users_of_thresh_do_what_algorithms_1_to_3_say(settings, means, runs):
    data, rng = (
        streams.BitStream.make([settings.n_users], means, settings.epoch_length),
        stream(0, "line by line", str(means)),
    )
    counts = many_counts(data, runs, rng)
    votes, reports = rng.random(counts.shape), rng.random(counts.shape)
    expected = thresh_runs(settings, counts, lambda t: votes[:, t], lambda t, pays: reports[pays, t])
    for run in range(runs):
        state = protocol.start(settings)
        for t in range(settings.horizon):
            noise = Scripted([*([votes[run, t]] if t else []), reports[run, t]])
            state, release = protocol.step(settings, state, counts[run, t], noise, noise)
            assert (release.updated, release.frozen) == (expected.updated[run, t], expected.frozen[run, t])
            if expected.updated[run, : t + 1].any():
                assert release.estimate == settings.estimate(int(expected.reported[run, t]))
        assert np.array_equal(state.used, expected.used[run])
    assert 0 < expected.updated.mean() < 1


@pytest.mark.parametrize(
    ("voting", "laws", "runs"),
    [
        (
            replace(TINY, horizon=3, unit=0.06),
            [[0.2, 0.7, 0.1], [0.6, 0.1, 0.3], [0.4, 0.3, 0.3]],
            1000,
        ),
        (
            replace(TINY, horizon=3, exhaustion="printed", estimate_cap=1, margin=0.6),
            [[0.3, 0.7], [0.8, 0.2], [0.5, 0.5]],
            1000,
        ),
        (
            replace(TINY, horizon=3, epoch_length=2, unit=0.2),
            [[0.2, 0.7, 0.1], [0.6, 0.1, 0.3], [0.6, 0.1, 0.3]],
            1000,
        ),
        (
            replace(MIDDLE, horizon=8, epoch_length=12, unit=0.09),
            [[0.6, 0.3, 0.1], [0.1, 0.6, 0.3]] * 4,
            40,
        ),
        (SMALL, [LAWS[t >= 3] for t in range(8)], 15),
    ],
    ids=["freeze", "printed", "three words", "middle", "six words"],
)
def test_users_of_heavythresh_do_what_algorithms_4_to_8_say(voting, laws, runs):
    settings = HeavyThresh(voting, len(laws[0]))
    data = WordStream.make([voting.n_users], laws, [list(range(voting.horizon))], voting.epoch_length)
    rng = stream(0, "line by line", str(voting))
    counts = many_counts(data, runs, rng)
    votes, reports = rng.random(counts.shape[:3]), rng.random(counts.shape[:3])
    places = rng.integers(0, settings.width, size=counts.shape[:3])
    expected = heavy_runs(settings, counts, votes, places, reports)
    scale = voting.estimate_randomizer.debias / voting.n_users
    for run in range(runs):
        state = protocol.start(settings)
        for t in range(voting.horizon):
            private = Scripted([*([votes[run, t]] if t else []), reports[run, t]])
            public = Scripted(places=[places[run, t]])
            state, release = protocol.step(settings, state, counts[run, t], public, private)
            assert (release.updated, release.frozen) == (expected.updated[run, t], expected.frozen[run, t])
            if expected.updated[run, : t + 1].any():
                assert release.estimate == pytest.approx(
                    expected.reported[run, t] @ sign_matrix(settings) * scale, abs=1e-12
                )
        assert np.array_equal(state.used, expected.used[run])
    assert 0 < expected.updated.mean() < 1
