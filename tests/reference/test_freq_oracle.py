"""Algorithms 1 and 2 transcribed line by line, with W as a matrix, against the library: same noise in, same numbers out."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import hadamard

from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.count_sketch import FreqOracle

N, T, M, EPSILON = 200, 3, 8, 1.3


def transcription(users, words, h, g, j, r, uniforms):
    """`h[j][v]`, `g[j][v]`; j, r and the uniforms that decide the flips, one each per user."""
    W = hadamard(M)  # noqa: N806
    y = []
    for i in range(N):  # Algorithm 1, each user once
        s, c = g[j[i]][users[i]], h[j[i]][users[i]]
        x = s * W[r[i], c]
        flip = 1 / (math.exp(EPSILON) + 1)
        y.append(-x if uniforms[i] < flip else x)
    a = (math.exp(EPSILON) + 1) / (math.exp(EPSILON) - 1)
    estimates = []
    for v in words:  # Algorithm 2
        rows = []
        for row in range(T):
            s, c = g[row][v], h[row][v]
            rows.append(T * a * sum(y[i] * s * W[r[i], c] for i in range(N) if j[i] == row))
        estimates.append(sorted(rows)[T // 2])
    return y, estimates


def test_the_library_agrees_with_the_paper_s_lines():
    words = np.arange(6, dtype=np.uint64)
    users = stream(0, "users").integers(0, 6, size=N).astype(np.uint64)
    oracle = FreqOracle(MultiplyShift.draw(T, M, stream(0, "hashes")), EPSILON)
    cells, signs = (told(np.arange(T)[:, None], words[None, :]) for told in (oracle.hashes.cells, oracle.hashes.signs))

    slots = oracle.assign(N, stream(0, "slots"))
    reports = oracle.report(users, slots, stream(0, "noise"))
    sketch = oracle.collect(users, stream(0, "slots"), stream(0, "noise"))

    j, r = np.divmod(slots, M)
    y, estimates = transcription(users, words, cells, signs, j, r, stream(0, "noise").random(N))
    assert reports.tolist() == y
    assert np.allclose(oracle.estimate(sketch, words), estimates)
    assert np.array_equal(oracle.add(oracle.empty(), slots, reports).sums, sketch.sums)
