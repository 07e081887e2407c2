"""The sampler of the monitor's noise has the closed-form law."""

from __future__ import annotations

import pytest
from scipy.stats import kstest

from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector.noise import MonitorNoise
from support import ALPHA

SAMPLES = 40_000


@pytest.mark.parametrize(("cap", "inner"), [(2.0969, 2.3978), (0.5, 6.0)])
def test_samples_have_the_closed_form_law(cap, inner):
    noise = MonitorNoise(cap, inner)
    samples = noise.draw(SAMPLES, stream(0, "monitor", "samples"))
    assert kstest(samples, noise.cdf).pvalue > ALPHA
    assert kstest(samples, MonitorNoise(1.1 * cap, 1.1 * inner).cdf).pvalue < ALPHA
    one = stream(0, "monitor", "samples")
    assert [float(noise.draw(1, one)[0]) for _ in range(50)] == samples[:50].tolist()
