"""Long commands start; `make claims`: fresh seeds, none left out, and runs that are kept as long as their code is."""

from __future__ import annotations

import json
import runpy
import sys
from types import SimpleNamespace

import pandas as pd
import pytest

from evolvingdp.book.result import Claim
from support import REPOSITORY

WORKERS = ("ours.py", "others.py")  # which `compare.py` starts, and asks
COMMANDS = [
    file
    for file in sorted((REPOSITORY / "benchmarks").glob("*.py"))
    if "__main__" in file.read_text() and file.name not in WORKERS
]


@pytest.mark.parametrize("script", COMMANDS, ids=lambda script: script.stem)
def test_every_long_command_starts_and_says_what_it_does(script, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(script.parent))
    monkeypatch.setattr(sys, "argv", [str(script), "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    assert ended.value.code == 0
    assert "Writes benchmarks/results/" in " ".join(capsys.readouterr().out.split()).replace("writes", "Writes")


@pytest.fixture
def claims(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    import claims

    monkeypatch.setattr(claims.measure, "RESULTS", tmp_path)
    made = SimpleNamespace(as_json=dict)
    monkeypatch.setattr(claims, "params_of", lambda name: SimpleNamespace(make=lambda preset: made))

    def run(params, seed):
        return SimpleNamespace(claims=[Claim("It holds", 0.0, "<=", 1.0), Claim("It may fail", seed % 2, "<=", 0.5)])

    monkeypatch.setattr(claims, "run_of", lambda name: run)
    seeds = iter(range(10, 100))
    monkeypatch.setattr(claims.secrets, "randbelow", lambda _: next(seeds))

    def command(*words):
        monkeypatch.setattr(sys, "argv", [claims.__file__, *words])
        claims.main()
        return pd.read_csv(tmp_path / "claims_runs.csv"), pd.read_csv(tmp_path / "claims_failed.csv")

    return SimpleNamespace(command=command, module=claims, folder=tmp_path)


def test_every_seed_that_is_drawn_stays_with_what_failed(claims):
    runs, failed = claims.command("--seeds", "3", "sparse_vector/threshold_monitor")
    assert runs.seed.tolist() == [10, 11, 12]
    assert failed.seed.tolist() == [11]
    assert failed["claim, value, bound"].tolist() == ["It may fail: 1, ≤ 0.5"]
    summary = pd.read_csv(claims.folder / "claims.csv")
    assert summary[["seeds", "claims", "failures"]].to_numpy().tolist() == [[3, 2, 1]]
    assert list(json.loads((claims.folder / "claims.json").read_text())["notebooks"]) == ["sparse_vector/threshold_monitor"]


def test_the_command_goes_on_where_it_was_stopped_and_starts_anew_with_new_code(claims, monkeypatch, capsys):
    claims.command("--seeds", "2", "sparse_vector/threshold_monitor")
    runs, _ = claims.command("--seeds", "3", "sparse_vector/threshold_monitor")
    assert runs.seed.tolist() == [10, 11, 12]
    capsys.readouterr()
    claims.command("--seeds", "3", "sparse_vector/threshold_monitor")
    assert "threshold_monitor" in capsys.readouterr().out, "nothing is left to be tried: what was found is shown"
    monkeypatch.setattr(claims.module.checkout, "made_of", lambda name: {"library": "another"})
    runs, failed = claims.command("--seeds", "1", "sparse_vector/threshold_monitor")
    assert runs.seed.tolist() == [10, 11, 12, 13]
    assert failed.code.tolist() == ["this", "since mended"]
    monkeypatch.setattr(claims.module, "parameters", lambda name, preset: "others")
    runs, failed = claims.command("--seeds", "1", "sparse_vector/threshold_monitor")
    assert runs.seed.tolist() == [10, 11, 12, 13, 14]
    assert failed.code.tolist() == ["since mended", "since mended"]
