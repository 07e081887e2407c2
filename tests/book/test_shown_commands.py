"""Every command that is printed on a page, run as printed and in the order printed, in a fresh clone, to its end; and a
release."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from evolvingdp.book.cli import main
from fresh import printed
from support import REPOSITORY


def test_every_printed_command_and_a_release_run_in_the_order_printed_in_a_fresh_clone(clone, typed):
    """At the quick preset; a release without its tests, of which this is one."""
    assert {*re.findall(r"evolvingdp (\w+)", printed(clone)), "pdf", "zip"} >= set(main.commands)
    assert typed.returncode == 0, typed.stdout[-5000:]
    assert typed.stdout.count("\nReleased: ") == printed(clone).count(" -p data ")
    sums = (clone / "_build" / "release" / "SHA256SUMS").read_text()
    assert {".whl", ".pdf", ".zip", ".cff"} <= {Path(line).suffix for line in sums.splitlines()}


def test_the_readme_s_python_prints_what_it_says():
    failed, tried = doctest.testfile(str(REPOSITORY / "README.md"), module_relative=False)
    assert tried >= 4
    assert failed == 0
