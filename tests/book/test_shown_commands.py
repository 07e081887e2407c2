"""The commands that readers are shown first, in the README and in each command's help, pass the checks they would meet."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from evolvingdp.publish import sweep_run
from evolvingdp.publish.cli import main
from support import REPOSITORY

README = re.findall(
    r"^ *\.venv/bin/(evolvingdp (?:run|sweep|params) .*)$", (REPOSITORY / "README.md").read_text(), re.MULTILINE
)
HELP = [
    line.strip().removeprefix("Example: ")
    for name in ("run", "sweep", "params")
    for line in (main.commands[name].help or "").splitlines()
    if "Example:" in line
]


class AllCheckedError(Exception):
    """Everything has been checked, and the first notebook or point would run now."""


def test_there_are_commands_to_check():
    assert {shlex.split(command)[1] for command in README} == {"run", "sweep", "params"}
    assert len(HELP) == 3


@pytest.mark.parametrize("command", sorted({*README, *HELP}))
def test_a_shown_command_is_valid(command, tmp_path, monkeypatch):
    def stop(*_: object, **__: object) -> None:
        raise AllCheckedError

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("evolvingdp.publish.cli.execute", stop)
    monkeypatch.setattr(sweep_run, "connected", stop)
    result = CliRunner().invoke(main, shlex.split(command)[1:])
    if shlex.split(command)[1] == "params":
        assert result.exit_code == 0
    else:
        assert isinstance(result.exception, AllCheckedError), click.unstyle(result.output)
