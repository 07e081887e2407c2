"""Each command that takes minutes or hours, in a fresh clone, on its smallest sample, to its end."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from fresh import cloned, run

LONG = {
    "artifact": ('"python -m doctest README.md"', r"python -m doctest README.md +\d"),
    "claims": ("--seeds 1 sparse_vector/threshold_monitor", r"sparse_vector/threshold_monitor +quick"),
    "faults": ("--trials 1 --only run", "run 1/1, .*: as it should"),
    "matrix": (
        f'-s "tests-{sys.version_info[0]}.{sys.version_info[1]}(newest)" -- tests/unit/test_hashing.py',
        "Session tests-.*newest.* was successful",
    ),
    "mutants": ("--chapter evolving --sample 1 --seed 1 tests/unit/test_once.py", "evolving: .*: tests"),
    "peers": ("median", r"'package': 'diffprivlib'.*'error': \d"),
    "planner": ("--questions 1 --seed 9", r"each user once +1 +\d"),
}
OF_AN_INDEX = ("matrix", "peers")  # install packages of others


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cloned(tmp_path_factory.mktemp("fresh") / "evolving-privacy")


@pytest.mark.parametrize("command", LONG)
def test_a_long_command_ends_on_its_smallest_sample(command, clone):
    if command in OF_AN_INDEX and run(clone, "echo pip | .venv/bin/uv pip compile --quiet -").returncode:
        pytest.skip(f"make {command} installs packages of others, and uv reaches no package index")
    sample, said = LONG[command]
    done = run(clone, f"make {command} ARGS='{sample}'")
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.search(said, done.stdout), done.stdout[-3000:]


def test_the_matrix_says_in_a_line_that_it_needs_an_index(clone, tmp_path):
    done = run(clone, "make matrix", UV_OFFLINE="1", UV_CACHE_DIR=str(tmp_path))
    assert "make matrix needs a package index, and uv reaches none\n" in done.stdout
    assert done.returncode != 0
