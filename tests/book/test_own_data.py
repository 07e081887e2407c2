"""A reader's own file through every notebook that takes `data`: its page, its tables and files, and its labels as data."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from evolvingdp.book.cell import module_of
from evolvingdp.book.checkout import params_of
from evolvingdp.book.cli import main
from evolvingdp.core.checks import ParameterError

LETTERS = ["apple", "pear", "kiwi", "fig", "plum", "lime"]


def words(names):
    return pd.DataFrame({"word": names, "count": [400_000 // (1 + place) for place in range(len(names))]})


def test_what_is_released_is_near_the_file_and_within_its_interval(tmp_path):
    """Of six words, or sixty, as often as 95 % intervals promise; and nothing of the truth is in what is published."""
    words(LETTERS).to_csv(tmp_path / "words.csv", index=False)
    for notebook in ("heavy_hitters/treehist", "heavy_hitters/bitstogram", "heavy_hitters/rappor"):
        params = params_of(notebook).make("quick", {"data": str(tmp_path / "words.csv")})
        made = module_of(notebook).of_own(params, 3)
        assert "truth" not in made.private
        real = made.estimates[made.estimates.truth > 0]
        assert set(real.word) >= set(LETTERS[:4])
        off = np.abs(real.estimate - real.truth) / ((real.high - real.low) / 2 / 1.96)
        assert off.max() < 5.5


@pytest.mark.parametrize(
    ("notebook", "text", "said"),
    [
        ("heavy_hitters/treehist", "word\ncat\nnew york\n", "data .*mine.csv, row 3: word must have 1 to 12 letters"),
        (
            "continual_mean/user_mean",
            "user,value\na,0.5\nb,2\n",
            "row 3: value must be a number from 0 to 1",
        ),
        ("evolving/thresh", "day,bit\n1,1\n", "must name its columns period, user, bit or period, share, users"),
    ],
)
def test_a_bad_file_is_refused_before_anything_runs(tmp_path, notebook, text, said):
    (tmp_path / "mine.csv").write_text(text)
    with pytest.raises(ParameterError, match=said):
        params_of(notebook).make("quick", {"data": str(tmp_path / "mine.csv")})
    refused = CliRunner().invoke(
        main, ["run", notebook, "-p", "data", str(tmp_path / "gone.csv"), "--out", str(tmp_path / "o")]
    )
    assert refused.exit_code == 2
    assert "does not exist" in refused.output
    assert refused.output.count("\n") == 1


@pytest.mark.parametrize("notebook", ["continual_mean/user_mean", "continual_mean/past_the_paper"])
def test_bounds_between_which_no_value_lies_are_refused_without_a_file_too(notebook):
    with pytest.raises(ParameterError, match="low must be less than high = 1, got 2"):
        params_of(notebook).make("quick", {"low": 2})


def test_the_command_ends_with_a_page_a_table_and_a_line(tmp_path, monkeypatch):
    monkeypatch.setenv("EVOLVINGDP_CACHE", str(tmp_path / "cache"))
    words(["new york", "中文", "<b>x</b>", "{value}"]).to_csv(tmp_path / "mine.csv", index=False)
    out = tmp_path / "mine"
    told = CliRunner().invoke(
        main, ["run", "heavy_hitters/rappor", "-p", "data", str(tmp_path / "mine.csv"), "--out", str(out)]
    )
    assert told.exit_code == 0, told.output
    assert told.output.splitlines()[-1].startswith("Released: users by word, 4 rows, by RAPPOR")
    table = pd.read_csv(out / "rappor" / "estimates.csv")
    assert sorted(table.word) == sorted(["new york", "中文", "<b>x</b>", "{value}"])
    notebook = json.loads((out / "rappor.ipynb").read_text())
    assert len(notebook["cells"]) <= 5, "nothing else of the notebook is run"
    assert any("own-rappor" in json.dumps(cell.get("outputs", "")) for cell in notebook["cells"])
