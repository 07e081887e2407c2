"""The simulation of general streams against the literal ThresholdMonitor, by chi-square, and against wrong laws.

Sample sizes are from the power, as in `test_shifting`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.shifting import solve
from evolvingdp.sparse_vector.streams.general import GeneralStream, csr_array, simulate
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving
from support import ALPHA, pvalue

NOISE = MonitorNoise(0.1, 1.1)


def drawn(name, horizon, held):
    """14 users of six types, each with `held` of the first elements of seven."""
    rng = stream(0, name)
    holding = [np.argsort(rng.random((6, 3 + held)))[:, :held] for _ in range(horizon)]
    present = [np.unique(now) for now in holding]
    tables = [
        csr_array((elements[:, None, None] == now).any(axis=2).astype(int))
        for elements, now in zip(present, holding, strict=True)
    ]
    return GeneralStream(np.array([5, 3, 2, 2, 1, 1]), tuple(present), tables, 7)


SETS, ONES = drawn("sets", 3, 3), drawn("ones", 4, 1)  # users hold sets, and one element each


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
    answers = np.zeros((len(dense), dense[0].shape[0]), dtype=bool)
    reported = solve(monitor, [table.argmax(axis=0) for table in dense], answers.shape[1], rng)
    for row, elements in zip(answers, reported, strict=True):
        row[elements] = True
    return answers.ravel()


def parts(dense):
    """The queries of the five heaviest elements, of the others that are held, and of the absent ones."""
    weights = np.concatenate([table.sum(axis=1) for table in dense])
    first = np.argsort(-weights, kind="stable")[:5]
    return first, np.setdiff1d(np.flatnonzero(weights), first), np.flatnonzero(weights == 0)


def statistics(parts, answers, absent=None):
    """How often each of the five heaviest is reported, by its bits; the number of other reports, and of absent ones."""
    first, others, gone = parts
    absent = np.count_nonzero(answers[gone]) if absent is None else absent
    return (*answers[first].tolist(), min(np.count_nonzero(answers[others]), 3), min(absent, 1))


def literal_sample(monitor, literal, dense, runs):
    queries, rng = parts(dense), stream(0, "literal")
    return Counter(statistics(queries, literal(monitor, dense, rng)) for _ in range(runs))


def simulated(monitor, data, dense, runs):
    queries, rng = parts(dense), stream(0, "simulated")
    places = [step * data.n_elements + elements for step, elements in enumerate(data.elements)]
    seen, answers = Counter(), np.zeros(len(dense) * data.n_elements, dtype=bool)
    for _ in range(runs):
        found, absent = simulate(monitor, data, rng)
        answers[np.concatenate(places)] = np.concatenate(found)
        seen[statistics(queries, answers, absent)] += 1
    return seen


@pytest.mark.parametrize(
    ("data", "literal", "runs"), [(SETS, line_by_line, 2800), (ONES, by_solver, 1400)], ids=["sets", "ones"]
)
@pytest.mark.parametrize("reports", [1, 2])
def test_the_simulation_has_the_law_of_the_literal_monitor(data, literal, runs, reports):
    assert data.users.max() > 1
    monitor, dense = ThresholdMonitorEvolving(NOISE, 4.2, reports), tables(data)
    slow = literal_sample(monitor, literal, dense, runs)
    assert len(slow) > 20
    assert pvalue(slow, simulated(monitor, data, dense, runs)) > ALPHA
    one_more = GeneralStream(data.users + 1, data.elements, data.held, data.n_elements)
    assert pvalue(slow, simulated(replace(monitor, threshold=3.7), data, dense, runs)) < ALPHA
    for wrong, other in ((replace(monitor, reports=reports + 1), data), (monitor, one_more)):
        assert pvalue(slow, simulated(wrong, other, dense, 900)) < ALPHA
