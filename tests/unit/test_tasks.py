"""Six tasks of a newcomer, each in at most twelve lines of library calls, on numpy and pandas as they are.

Each function is what its reader writes; `LINES` counts its statements, imports aside.
"""

from __future__ import annotations

import ast
import inspect
import pickle
import textwrap

import numpy as np
import pandas as pd
import pytest

from evolvingdp.audit import audit
from evolvingdp.continual_mean import recommended
from evolvingdp.core.exchange import Client, Listed, Server
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import Once
from evolvingdp.evolving.rivals import once
from evolvingdp.planning import Question, plan, reach
from evolvingdp.sparse_vector import stable_monitor

LINES = 12


def daily_share(table):
    """The share of ones in each day of a quarter, from a nullable column of bits of every user and day."""
    days = table.pivot(index="day", columns="user", values="bit")
    method = Once(n_users=days.shape[1], horizon=days.shape[0], epsilon=1.0)
    noise = {name: stream(7, name) for name in ("words", "public", "private")}
    tally = once.run(method, days.to_numpy(dtype=int), **noise)
    found = method.smooth(tally, stream(7, "halves"))
    return pd.DataFrame({"share": found.estimates[:, 1], "low": found.low[:, 1], "high": found.high[:, 1]}, index=days.index)


def top_words(column, dictionary):
    """The hundred most frequent words of devices that report to two shards."""
    made = Listed(tuple(dictionary), epsilon=3.0, public="autumn")
    shards = [Server(made), Server(made)]
    for device, word in enumerate(column):
        shards[device % 2].add([Client(made).send(word, stream(7, "device", device))])
    return (shards[0] + shards[1]).table(top=100)


def mean_that_restarts(table, n_users):
    """The mean after each sample, by a process that stops in the middle and goes on from a file."""
    method = recommended(n_users, samples_per_user=50, epsilon=2.0, low=40, high=160)
    state, means = method.start(stream(7, "noise")), []
    for place, row in enumerate(table.itertuples(index=False)):
        if place == len(table) // 2:
            state = pickle.loads(pickle.dumps(state))
        state, release = method.step(state, row.user, row.value)
        means.append(release.estimate)
    return means


def alerts(table):
    """The groups that many users are in, step by step."""
    steps = table.pivot(index="step", columns="user", values="group").fillna(-1).astype(int)
    method = stable_monitor(epsilon=1.0, delta=1e-6, reports=3, moved=len(steps))
    state, rng, told = method.start(steps.shape[1]), stream(7, "noise"), {}
    for step, held in zip(steps.index, steps.to_numpy(), strict=True):
        state, told[step] = method.step_held(state, held, rng)
    return told


def which_epsilon(users, days, error):
    """The least epsilon at which a share of each week has this error, and by which method."""
    question = Question("mean", users=users, periods=days, target="window", window=7)
    found = min((one for one in reach(question, error) if one.epsilon), key=lambda one: one.epsilon)
    best = plan(Question("mean", users=users, periods=days, target="window", window=7, epsilon=found.epsilon))
    return found, best


def audited(own_function):
    """A lower bound on what a function of one's own loses between two inputs."""
    return audit(own_function, [np.zeros(5), np.ones(5)], stream(7, "audit"), runs=4000)


@pytest.mark.parametrize("task", [daily_share, top_words, mean_that_restarts, alerts, which_epsilon, audited])
def test_a_task_is_at_most_twelve_lines_of_calls(task):
    body = ast.parse(textwrap.dedent(inspect.getsource(task))).body[0].body
    lines = {line for node in body[1:] for line in range(node.lineno, node.end_lineno + 1)}
    assert len(lines) <= LINES


def test_a_quarter_s_shares_are_near_the_truth_and_within_their_bands():
    rng, days = stream(0, "days"), 91
    table = pd.DataFrame({"day": np.repeat(pd.date_range("2026-01-01", periods=days), 3000), "user": [*range(3000)] * days})
    table["bit"] = pd.array(rng.random(len(table)) < 0.3, dtype="boolean")
    found = daily_share(table.sample(frac=1, random_state=1))
    assert (found.index == table.day.unique()).all()
    assert found.share.mean() == pytest.approx(0.3, abs=0.1)
    assert (found.low < found.share).all()
    assert (found.share < found.high).all()
    assert ((found.low < 0.3) & (found.high > 0.3)).mean() > 0.7


def test_words_of_two_shards_are_those_of_all_devices():
    column = pd.Series(["the", "of", "the", "and"] * 250, dtype="string")
    found = top_words(column, column.unique()).set_index("word")
    assert found.index[0] == "the"
    assert found.estimate["the"] == pytest.approx(0.5, abs=0.12)
    assert (found.low <= found.estimate).all()


def test_a_mean_goes_on_where_it_stopped():
    """Real values in [40, 160]; at the end near the samples' own mean, as the error that it states allows."""
    rng = stream(0, "values")
    table = pd.DataFrame({"user": rng.integers(0, 300, 6000), "value": rng.normal(83.5, 5, 6000).clip(40, 160)})
    table.index = rng.permutation(6000)
    means = mean_that_restarts(table, 300)
    assert len(means) == 6000
    assert means[-1] == pytest.approx(table.value.mean(), abs=20)


def test_alerts_name_what_many_hold_and_nothing_else():
    held = [(step, user, 5 if user < 800 and step == 3 else 1000 + user) for step in range(6) for user in range(2000)]
    told = alerts(pd.DataFrame(held, columns=["step", "user", "group"]))
    assert {step: groups.tolist() for step, groups in told.items() if len(groups)} == {3: [5]}


def test_an_epsilon_keeps_its_error_and_is_the_best_method_s():
    found, answer = which_epsilon(200_000, 91, 0.01)
    again = {one.method: one for one in answer.predictions}[found.method]
    assert again.standard_error <= 0.01


def test_an_own_function_that_loses_more_than_it_says_is_found():
    def noisy_sum(values, rng):
        return values.sum() + rng.laplace(scale=1.0)  # five users move it by five

    assert audited(noisy_sum).refutes(1.0)


def test_a_function_of_the_input_alone_is_audited_and_any_other_is_refused_in_one_line():
    own = np.random.default_rng(3)
    assert audited(lambda values: values.sum() + own.laplace(scale=1.0)).refutes(1.0)
    with pytest.raises(ValueError, match=r"mechanism must take \(input, rng\), or \(input\) alone, got \(\)"):
        audited(lambda: 1)


def test_columns_of_pandas_are_taken_as_they_are_or_refused_in_one_line():
    """Nullable, with any index; what is missing is no number. Seen to fail where columns of objects are refused."""
    bits, index = pd.DataFrame({"a": [True, False], "b": [True, True]}, index=[7, 3]), [9, 2, 5]
    noise = {name: stream(7, name) for name in ("words", "public", "private")}
    for kind in ("boolean", "Int64", "bool", "Float64"):
        assert once.run(Once(2, 2, 1.0), bits.astype(kind), **noise).reports.sum() == 2
    with pytest.raises(ValueError, match="got <NA> for user 0 in epoch 2: who holds none"):
        once.run(Once(2, 2, 1.0), bits.astype("boolean").where(bits.a), **noise)
    users, values = (pd.Series(pd.array(column, dtype="Int64"), index=index) for column in ([0, 1, 0], [1, 0, 1]))
    assert len(recommended(2, 2, 1.0).release(users, values, stream(7, "noise")).estimate) == 3
    with pytest.raises(TypeError, match="samples must be a one-dimensional array of numbers"):
        recommended(2, 2, 1.0).release(users, values.astype("string"), stream(7, "noise"))
    monitor = stable_monitor(epsilon=1.0, delta=1e-6, reports=3, moved=2)
    assert len(monitor.step_held(monitor.start(3), users, stream(7, "noise"))[1]) == 0
