"""Commands in this process: refused in a line, and sweeps whose points run one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evolvingdp.book import sweeping
from evolvingdp.book.cli import main

TABLES = ("sweep.parquet", "values.parquet", "claims.parquet")


def sweep(notebook: str, *arguments: str | Path) -> Result:
    done = CliRunner().invoke(main, ["sweep", notebook, *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def refused(*arguments: str | Path, code: int = 2) -> str:
    """The one line with which a command refuses these arguments, before it says anything else."""
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (code, "", 1), done.output
    return done.stderr


class Serial:
    """A cluster in this process: runs a task when it is submitted, keeps its arguments, and can break a seed.

    It is the client, too, as far as a sweep asks one.
    """

    status = "running"

    def __init__(self) -> None:
        self.ran: list[tuple] = []
        self.broken: set[int] = set()

    def submit(self, function, notebook, params, seed, *rest, pure):
        self.ran.append((json.dumps(params), seed))
        outcome = "the third term diverged" if seed in self.broken else None
        return Done(outcome or function(notebook, params, seed, *rest))


class Done:
    status = "finished"

    def __init__(self, outcome) -> None:
        self.outcome = outcome

    def add_done_callback(self, function) -> None:
        function(self)

    def result(self, timeout):
        return self.outcome

    def release(self) -> None:
        pass


def alone(monkeypatch: pytest.MonkeyPatch) -> Serial:
    """What sweeps run on from now on."""
    client = Serial()

    @contextmanager
    def connected(*_: object) -> Iterator[Serial]:
        yield client

    monkeypatch.setattr(sweeping, "connected", connected)
    return client
