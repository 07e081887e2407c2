"""The sampler of the monitor's noise has the closed-form law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector.noise import GaussianNoise, MonitorNoise
from support import ALPHA

SAMPLES = 40_000


@pytest.mark.parametrize(("cap", "inner"), [(2.0969, 2.3978), (0.5, 6.0)])
def test_samples_have_the_closed_form_law(cap, inner):
    noise = MonitorNoise(cap, inner)
    samples = noise.sample(SAMPLES, stream(0, "monitor", "samples"))
    assert kstest(samples, noise.cdf).pvalue > ALPHA
    assert kstest(samples, MonitorNoise(1.1 * cap, 1.1 * inner).cdf).pvalue < ALPHA
    one = stream(0, "monitor", "samples")
    assert [noise.draw(one) for _ in range(50)] == samples[:50].tolist()


def test_normal_noise_has_its_law():
    noise, draws = GaussianNoise(3.0), 20_000
    drawn = noise.sample(draws, stream(0, "normal"))
    one_by_one = np.array([noise.draw(rng) for rng in [stream(0, "normal")] for _ in range(50)])
    assert np.array_equal(one_by_one, drawn[:50])
    assert kstest(drawn, lambda z: noise.cdf(z)).pvalue > ALPHA
    assert kstest(drawn, lambda z: GaussianNoise(3.3).cdf(z)).pvalue < ALPHA
    assert noise.sf(noise.isf(1e-9)) == pytest.approx(1e-9)
    assert noise.cdf(noise.lower_quantile(1e-9)) == pytest.approx(1e-9)
    assert np.exp(noise.log_sf([-2.0, 5.0])) == pytest.approx(noise.sf([-2.0, 5.0]))
    assert noise.log_cdf(2.0) == noise.log_sf(-2.0)
