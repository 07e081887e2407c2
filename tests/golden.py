"""A lock for pure moves: what the library's mechanisms return while the ordinary tests run, written and compared.

    export PYTHONPATH=tests PYTHONHASHSEED=0
    .venv/bin/pytest -p golden --golden write /tmp/before.json tests/unit tests/privacy      # before the move
    .venv/bin/pytest -p golden --golden compare /tmp/before.json tests/unit tests/privacy    # after it

Functions and methods of the rooms below are wrapped when their modules are imported. Of each call that comes from outside
these rooms, what it returned, yielded or raised goes into a fingerprint of the test that made it, whatever it was called.
That something has changed says nothing about privacy, and that nothing has proves nothing. The file is not kept in git.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.abc
import importlib.machinery
import json
import sys
import threading
import types
from collections.abc import Mapping
from pathlib import Path

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers

ROOMS = tuple(
    f"evolvingdp.{room}"
    for room in ("core", "heavy_hitters", "evolving", "continual_mean", "sparse_vector", "streams", "planning")
)
SHOWN = 300  # calls of a test that are kept one by one, so that the first that differs has a name
NOT_WRAPPED = {"__eq__", "__hash__", "__repr__", "__reduce__", "__getattr__"}  # called as often as sets and copies please
inside, calls, told = threading.local(), [], {}


def plain(value, depth=0):
    """What a value is made of, without addresses."""
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
        return f"{type(value).__name__} {value!r}"
    if hasattr(value, "dtype") and hasattr(value, "tobytes"):
        data = repr(value.tolist()) if value.dtype == object else hashlib.sha256(value.tobytes()).hexdigest()
        return f"{value.dtype} {value.shape} {data}"
    if hasattr(value, "to_csv"):
        return f"{type(value).__name__} {value.to_csv()}"
    if depth > 6 or callable(value) or type(value).__name__.endswith("State"):  # a state shows in what it releases
        return type(value).__name__
    if isinstance(value, Mapping):
        parts = [f"{plain(key)}: {plain(each, depth + 1)}" for key, each in value.items()]
    elif isinstance(value, (set, frozenset)):
        parts = sorted(plain(each, depth + 1) for each in value)
    elif isinstance(value, (list, tuple, types.GeneratorType)):
        parts = [plain(each, depth + 1) for each in value] if not isinstance(value, types.GeneratorType) else []
    elif dataclasses.is_dataclass(value):
        parts = [
            f"{field.name}: {plain(getattr(value, field.name, None), depth + 1)}" for field in dataclasses.fields(value)
        ]
    else:
        parts = [f"{name}: {plain(each, depth + 1)}" for name, each in sorted(getattr(value, "__dict__", {}).items())]
    return f"{type(value).__name__} [{', '.join(parts)}]"


def note(name, value):
    calls.append((name, hashlib.sha256(plain(value).encode()).hexdigest()[:10]))


def noting(function):
    """`function`, of whose outermost calls the outcomes are noted; what is computed to note them is not."""

    def step(act, *args, **kwargs):
        if getattr(inside, "library", False):
            return act(*args, **kwargs)
        inside.library = True
        try:
            result = act(*args, **kwargs)
            note(function.__qualname__, result)
        except Exception as error:
            calls.append((function.__qualname__, type(error).__name__))
            raise
        finally:
            inside.library = False
        return result

    def each(items):
        while True:
            try:
                item = step(next, items)
            except StopIteration:
                return
            yield item

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        result = step(function, *args, **kwargs)
        return each(result) if isinstance(result, types.GeneratorType) and not getattr(inside, "library", False) else result

    return wrapper


def wrap(module):
    for holder in [
        module,
        *(each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__),
    ]:
        for name, value in list(vars(holder).items()):
            inner = getattr(value, "__func__", value.fget if isinstance(value, property) else value)
            if (
                not isinstance(inner, types.FunctionType)
                or inner.__code__.co_filename != module.__file__
                or name in NOT_WRAPPED
            ):
                continue
            made = property(noting(inner)) if isinstance(value, property) else noting(inner)
            setattr(holder, name, type(value)(made) if isinstance(value, (classmethod, staticmethod)) else made)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        found = importlib.machinery.PathFinder.find_spec(name, path) if name.startswith(ROOMS) else None
        if found and found.loader:
            execute = found.loader.exec_module
            found.loader.exec_module = lambda module: (execute(module), wrap(module))
        return found


def pytest_addoption(parser):
    parser.addoption("--golden", nargs=2, metavar=("write|compare", "FILE"), help="fingerprints of what mechanisms return")


def pytest_configure(config):
    if config.getoption("--golden"):
        sys.meta_path.insert(0, Finder())


def pytest_collection(session):
    if session.config.getoption("--golden"):  # the same examples each time: after conftest.py has said what it wants
        hypothesis.settings.register_profile("golden", deadline=None, derandomize=True, database=None)
        hypothesis.settings.load_profile("golden")
        providers._get_local_constants = providers.Constants  # and none from the numbers that the sources hold


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    calls.clear()
    result = yield
    every = hashlib.sha256(repr([outcome for _, outcome in calls]).encode()).hexdigest()
    item.user_properties.append(("golden", [len(calls), every, calls[:SHOWN]]))
    return result


def pytest_runtest_logreport(report):
    if report.when == "call" and report.passed and "golden" in dict(report.user_properties):
        told[report.nodeid] = dict(report.user_properties)["golden"]


def pytest_terminal_summary(terminalreporter, config):
    asked = config.getoption("--golden")
    if not asked:
        return
    say, now = terminalreporter.write_line, json.loads(json.dumps(told))
    if asked[0] == "write":
        Path(asked[1]).write_text(json.dumps(now))
        say(f"golden: {sum(count for count, *_ in now.values())} outcomes of {len(now)} tests are in {asked[1]}")
        return
    before = json.loads(Path(asked[1]).read_text())
    both = [test for test in before if test in now]
    differ = [test for test in both if before[test][1] != now[test][1]]
    for test in differ:
        pairs = zip(before[test][2], now[test][2], strict=False)
        first = next((f"{old[0]} -> {new[0]}" for old, new in pairs if old[1] != new[1]), "how many calls, or a later one")
        say(f"golden: DIFFERS {test}: {first}")
    say(f"golden: {len(differ)} of {len(both)} tests differ; {len(before) - len(both)} gone, {len(now) - len(both)} new")
    if differ:
        terminalreporter._session.exitstatus = pytest.ExitCode.TESTS_FAILED
