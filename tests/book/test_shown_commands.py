"""The commands that readers are shown, in the README, on the page Reproduce and in each command's help, pass every check."""

from __future__ import annotations

import doctest
import re
import shlex

import pytest
from click.testing import CliRunner

from evolvingdp.audit.empirical import auditor
from evolvingdp.book import running as execute
from evolvingdp.book import sweeping
from evolvingdp.book.cli import main
from evolvingdp.book.rendering import build, comparing
from support import REPOSITORY

PAGE = (REPOSITORY / "book" / "reproduce.md").read_text()
CLUSTERS = (REPOSITORY / "book" / "clusters.md").read_text()
README = (REPOSITORY / "README.md").read_text()
HELP = "\n".join(command.help or "" for command in main.commands.values())
COMMAND = re.compile(r"^(?: *\.venv/bin/|    Example: |Example: |)(evolvingdp (?:\w+) [^\n#&]*)", re.MULTILINE)
PRINTED = [text.replace("\\\n", " ") for text in (README, PAGE, CLUSTERS, HELP)]
SHOWN = sorted({found.strip() for text in PRINTED for found in COMMAND.findall(text)})
ELSEWHERE = {"pdf", "zip", "data"}  # need the rendered book or the corpus: test_offline.py, test_repository.py


class AllCheckedError(Exception):
    """Everything has been checked, and the first notebook, point or run would come now."""


def test_every_command_is_shown_somewhere():
    assert {shlex.split(command)[1] for command in SHOWN} | ELSEWHERE >= set(main.commands)


@pytest.mark.parametrize("command", [one for one in SHOWN if shlex.split(one)[1] not in ELSEWHERE])
def test_a_shown_command_is_valid(command, tmp_path, monkeypatch):
    def stop(*_: object, **__: object) -> None:
        raise AllCheckedError

    monkeypatch.chdir(tmp_path)
    for module, name in (
        (execute, "run"),
        (build, "compute"),
        (comparing, "compute"),
        (sweeping, "connected"),
        (auditor, "audit"),
    ):
        monkeypatch.setattr(module, name, stop)
    (yaml,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "mine.yaml").write_text(yaml)
    (tmp_path / "my_mechanism.py").write_text("def release(value, rng):\n    return value\n")
    (tmp_path / "cluster.json").write_text('{"address": "tcp://127.0.0.1:8786"}')
    result = CliRunner().invoke(main, shlex.split(command)[1:])
    if shlex.split(command)[1] in ("params", "plan"):
        assert result.exit_code == 0
    else:
        reached = isinstance(result.exception, AllCheckedError) or AllCheckedError.__name__ in result.output  # of an audit
        assert reached, result.output


def test_the_readme_s_python_prints_what_it_says():
    failed, tried = doctest.testfile(str(REPOSITORY / "README.md"), module_relative=False)
    assert tried >= 4
    assert failed == 0
