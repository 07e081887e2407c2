"""The simulation of general streams against the literal ThresholdMonitor, by chi-square, and against wrong laws."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector.general_streams import GeneralStream, random_stream, simulate
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.shifting import solve
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving
from support import ALPHA, pvalue

NOISE = MonitorNoise(0.1, 1.1)
SETS = random_stream(14, 6, 3, 7, stream(0, "sets"), vocabulary=6, held=3, drift=0.3)  # users hold sets
ONES = random_stream(14, 6, 4, 7, stream(0, "ones"), vocabulary=4, held=1, drift=0.3)  # users hold one element each


def tables(data):
    """For each step a bool (elements, users): who holds what."""
    dense = []
    for elements, held in zip(data.elements, data.held, strict=True):
        table = np.zeros((data.n_elements, len(data.users)), dtype=bool)
        table[elements] = held.todense() == 1
        dense.append(np.repeat(table, data.users, axis=1))
    return dense


def line_by_line(monitor, dense, rng):
    """In every step a query for each element of the domain, in order."""
    state, answers = monitor.start(dense[0].shape[1]), []
    for table in dense:
        for row in table:
            state, release = monitor.step(state, table, lambda _, row=row: row, rng)
            answers.append(release.above)
    return np.array(answers)


def by_solver(monitor, dense, rng):
    reported = solve(monitor, (table.argmax(axis=0) for table in dense), dense[0].shape[0], rng)
    return np.concatenate([np.isin(np.arange(dense[0].shape[0]), elements) for elements in reported])


def statistics(held, answers):
    """How often each of the five heaviest is reported, by its bits; the number of other reports, and of absent ones."""
    weights = np.concatenate([table.sum(axis=1) for table in held])
    first = np.argsort(-weights, kind="stable")[:5]
    others = (weights > 0) & ~np.isin(np.arange(len(weights)), first)
    return (*answers[first].tolist(), min(int(answers[others].sum()), 3), min(int(answers[weights == 0].sum()), 1))


def simulated(monitor, data, dense, rng):
    found, absent = simulate(monitor, data, rng)
    answers = np.zeros((len(found), data.n_elements), dtype=bool)
    for row, elements, above in zip(answers, data.elements, found, strict=True):
        row[elements] = above
    one = statistics(dense, answers.ravel())
    return (*one[:-1], min(absent, 1))


@pytest.mark.parametrize(("data", "literal"), [(SETS, line_by_line), (ONES, by_solver)], ids=["sets", "ones"])
@pytest.mark.parametrize("reports", [1, 2])
def test_the_simulation_has_the_law_of_the_literal_monitor(data, literal, reports):
    assert data.users.max() > 1
    monitor, dense = ThresholdMonitorEvolving(NOISE, 4.2, reports), tables(data)
    slow = Counter(statistics(dense, literal(monitor, dense, stream(0, "literal", run))) for run in range(2000))
    assert len(slow) > 20

    def fast(monitor, data, runs=2500):
        return Counter(simulated(monitor, data, dense, stream(0, "simulated", run)) for run in range(runs))

    assert pvalue(slow, fast(monitor, data, 5000)) > ALPHA
    assert pvalue(slow, fast(replace(monitor, threshold=3.7), data)) < ALPHA
    assert pvalue(slow, fast(replace(monitor, reports=reports + 1), data)) < ALPHA
    one_more = GeneralStream(data.users + 1, data.elements, data.held, data.n_elements)
    assert pvalue(slow, fast(monitor, one_more)) < ALPHA
