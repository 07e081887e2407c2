"""What an archive, a journal or a fork finds: metadata that agree, workflows, an appendix."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex

import pandas as pd
import pytest

from evolvingdp.book import dated
from evolvingdp.book.checkout import Project
from evolvingdp.book.running import Job
from support import REPOSITORY


@pytest.fixture(scope="module")
def release():
    spec = importlib.util.spec_from_file_location("release", REPOSITORY / ".ci" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_version_date_licence_and_requirements_are_the_same_everywhere(release):
    assert release.faults() == []
    assert "CC-BY-4.0" in (REPOSITORY / "LICENSE-CONTENT").read_text()
    assert all((REPOSITORY / name).is_file() for name in (*release.DESCRIBED, "SECURITY.md"))


def test_binder_installs_the_checkout_beside_the_lock_s_packages():
    script = (REPOSITORY / "postBuild").read_text()
    assert os.access(REPOSITORY / "postBuild", os.X_OK)
    assert "pip install --quiet --no-deps --no-build-isolation -e ." in script


def test_the_artifact_appendix_has_valid_commands_costs_and_numbers_of_the_same_notebook():
    page = (REPOSITORY / "book" / "artifact.md").read_text()
    rows = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in re.findall(r"^\| [^|]* \| `.*$", page, re.M)]
    measured = pd.read_csv(REPOSITORY / "benchmarks" / "results" / "artifact.csv", dtype=str).set_index("command")
    shown = []
    for _, command, *cost, number in rows:
        words = shlex.split(command.strip("`"))
        if command.strip("`") in measured.index:
            minutes, memory, disk = measured.loc[command.strip("`")]
            told = [
                "below 0.1" if minutes == "0.0" else minutes,
                f"{int(memory):,} MB",
                "none" if disk == "0.0" else f"{disk} MB",
            ]
            assert cost == told, "make artifact has measured something else"
        else:
            assert cost == ["not yet"] * 3, "a cost that nobody has measured"
        if words[0] == "evolvingdp":
            _, _, notebook, *options = words
            assert options == ["--preset", "paper", "--out", "my-run"]
            Job.make(Project(), notebook, "paper")
            assert set(re.findall(r"\{value\}`(\S+) ", number)) == {notebook}
            shown.append(notebook)
        else:
            assert words == ["python", "-m", "doctest", "README.md"]
    landing = (REPOSITORY / "book" / "index.md").read_text()
    assert set(re.findall(r"\{value\}`(\S+) ", landing)) <= set(shown), "each number of the landing page has its command"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ([], "GB)."),
        (["evolving/thresh"], "; since then the code of evolving/thresh has changed."),
        (["a", "b", "c", "d"], "; since then the code of 4 of 5 notebooks has changed."),
    ],
)
def test_a_dated_result_says_which_code_has_changed_since(changed, said, tmp_path, monkeypatch):
    stamped = tmp_path / "benchmarks" / "results"
    stamped.mkdir(parents=True)
    notebooks = dict.fromkeys([*changed, *"vwxyz"][:5], "then")
    dated.stamp("made", REPOSITORY / "benchmarks" / "commands.py", "make artifact", stamped, notebooks)
    now = {name: {"library": "now" if name in changed else "then"} for name in notebooks}
    monkeypatch.setattr(dated.checkout, "made_of", now.get)
    assert dated.sentence(tmp_path, "made").endswith(said)
