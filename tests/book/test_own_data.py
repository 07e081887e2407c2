"""A reader's own file through every notebook that takes `data`: its page, its tables and files, and its labels as data."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hostile import LETTERS, counted

from evolvingdp.book.cell import module_of
from evolvingdp.book.checkout import params_of
from evolvingdp.book.cli import main
from evolvingdp.book.own import own
from evolvingdp.book.result import RESULTS
from evolvingdp.core.checks import ParameterError
from evolvingdp.core.seeds import stream


def test_what_is_released_is_near_the_file_and_within_its_interval(tmp_path):
    """Of six words, or sixty, as often as 95 % intervals promise; and nothing of the truth is in what is published."""
    counted(LETTERS).to_csv(tmp_path / "words.csv", index=False)
    for notebook in ("heavy_hitters/treehist", "heavy_hitters/bitstogram", "heavy_hitters/rappor"):
        params = params_of(notebook).make("quick", {"data": str(tmp_path / "words.csv")})
        made = module_of(notebook).of_own(params, 3)
        assert "truth" not in made.private
        real = made.estimates[made.estimates.truth > 0]
        assert set(real.word) >= set(LETTERS[:4])
        off = np.abs(real.estimate - real.truth) / ((real.high - real.low) / 2 / 1.96)
        assert off.max() < 5.5


def strangers():
    """A file for each notebook, made for none of them: other orders and capitals of columns, other types, other scripts."""
    rng = stream(0, "strangers")
    cities = pd.Series(rng.choice(["Zürich", "北京", "Москва", "New York, NY", "NA", "007", "7"], 20_000)).astype("category")
    days, users = pd.date_range("2024-01-01", periods=5, freq="7D"), [f"{number:032x}" for number in range(400)]
    answers = pd.DataFrame(
        [(user, day, rng.random() < 0.3) for day in days for user in users], columns=["User", "Period", "Bit"]
    )
    visits = pd.DataFrame([("café" if user < 300 else f"g{user}", day, user) for day in ("Mo", "Di") for user in range(400)])
    samples = pd.DataFrame({"Value": rng.integers(0, 50, 900), "USER": rng.integers(10**17, 10**17 + 40, 900)})
    counts = pd.DataFrame([(10.0 + month, word, day) for month, day in enumerate(days) for word in ("ja", "weiß$nicht")])
    return {
        "heavy_hitters/treehist": (counted(LETTERS)[["count", "word"]].astype({"count": "Int64", "word": "string"}), {}),
        "heavy_hitters/bitstogram": (counted(LETTERS).rename(columns=str.upper), {}),
        "heavy_hitters/rappor": (pd.DataFrame({"Word ": cities}, index=rng.permutation(len(cities))), {}),
        "evolving/thresh": (answers.astype({"Bit": "boolean", "User": "category"}), {}),
        "continual_mean/user_mean": (samples.astype({"Value": "Int16", "USER": "Int64"}), {"high": 50}),
        "continual_mean/past_the_paper": (samples.astype({"Value": "float32", "USER": str}), {"high": 50}),
        "sparse_vector/shifting_heavy_hitters": (visits.set_axis(["group", "step", "user"], axis=1), {}),
        "streams/two_centuries": (
            counts.set_axis(["Count", "Word", "Date"], axis=1),
            {"n_users": 10**5, "n_users_sweep": [10**5, 2 * 10**5], "repetitions": 2, "sample_users": 1000, "window": 2},
        ),
    }


@pytest.mark.parametrize("notebook", strangers())
@pytest.mark.parametrize("name", ["theirs.parquet", "theirs.csv.gz"])
def test_a_file_that_was_made_for_something_else_is_read_as_it_is(tmp_path, notebook, name):
    """And what is released of it is near it: within five standard errors; groups are those that enough users are in."""
    (table, more), path, module = strangers()[notebook], tmp_path / name, module_of(notebook)
    table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=False, encoding="utf-8-sig")
    params = params_of(notebook).make("quick", {"data": str(path), **more})
    made = module.of_own(params, module.run(params, 1) if notebook == "streams/two_centuries" else 1)
    assert made.line.startswith("Released: ")
    assert "differential privacy of" in made.line
    if made.kind == "events":
        assert made.private.to_dict("list") == {"step": ["Mo", "Di"], "group": ["café", "café"]}
    else:
        off = (made.estimates.estimate - made.estimates.truth) / (made.estimates.high - made.estimates.low) * 2 * 1.96
        assert len(made.private) >= 5
        assert off.abs().max() < 5.5


@pytest.mark.parametrize(
    ("notebook", "text", "columns"),
    [
        ("heavy_hitters/treehist", "word,count\ncat,3\ndog,4\n", "word,estimate,low,high"),
        ("heavy_hitters/bitstogram", "word,count\ncat,3\ndog,4\n", "word,estimate,low,high"),
        ("sparse_vector/shifting_heavy_hitters", "step,user,group\n1,a,x\n2,a,y\n", "step,group"),
    ],
)
def test_where_too_few_users_are_to_report_anything_the_page_says_so(tmp_path, monkeypatch, notebook, text, columns):
    (tmp_path / "few.csv").write_text(text)
    monkeypatch.setenv(RESULTS, str(tmp_path))
    own(module_of(notebook), params_of(notebook).make("quick", {"data": str(tmp_path / "few.csv")}), 0)
    assert (tmp_path / "estimates.csv").read_text() == f"{columns}\n"
    released = json.loads((tmp_path / "values.json").read_text())["released"]
    assert re.search(r" 0 rows, by .+, from [\d,]+ users on, under ", released)


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
        (
            "evolving/thresh",
            "period,share,users\n1,.5,59\n2,.5,59\n3,.5,59\n",
            "must have 60 users or more, 20 for each of its 3 periods, .*, got 59; join periods",
        ),
        (
            "sparse_vector/shifting_heavy_hitters",
            "date,word,count\n" + "".join(f"{year},a,990000\n{year},b,1\n" for year in range(1000, 1200)),
            "at most 100,000,000 dates times users, got 200 times 990,001; join dates",
        ),
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
